// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

const (
	etcdImage   = "local.test/etcd:1"
	kamajiImage = "local.test/kamaji"
	storeHost   = "etcd." + localfleet.KamajiNamespace + ".svc.cluster.local"
	hookHost    = "kamaji-webhook-service." + localfleet.KamajiNamespace + ".svc"
)

// store is an etcd in place of the one that Kamaji's chart brings, which needs volumes, and images that are no module's.
const store = `
apiVersion: v1
kind: Service
metadata: {name: etcd, namespace: kamaji-system}
spec: {selector: {app: etcd}, ports: [{port: 2379}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: etcd, namespace: kamaji-system}
spec:
  selector: {matchLabels: {app: etcd}}
  strategy: {type: Recreate}
  template:
    metadata: {labels: {app: etcd}}
    spec:
      containers:
      - name: etcd
        image: ` + etcdImage + `
        imagePullPolicy: Never
        args: [--data-dir=/data/etcd, "--listen-client-urls=https://0.0.0.0:2379", "--advertise-client-urls=https://` + storeHost + `:2379",
          --client-cert-auth=true, --trusted-ca-file=/keys/ca.crt, --cert-file=/keys/tls.crt, --key-file=/keys/tls.key,
          "--listen-peer-urls=http://127.0.0.1:0", "--listen-metrics-urls=http://0.0.0.0:2381", --unsafe-no-fsync=true, --log-level=warn]
        readinessProbe: {httpGet: {path: /readyz, port: 2381}, periodSeconds: 1}
        volumeMounts: [{name: data, mountPath: /data}, {name: keys, mountPath: /keys, readOnly: true}]
      volumes: [{name: data, emptyDir: {}}, {name: keys, secret: {secretName: etcd-server}}]
`

// certManager lets in what Kamaji's chart asks cert-manager for. Here the tests make the Secret that it would make.
const certManager = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.cert-manager.io}
spec:
  group: cert-manager.io
  scope: Namespaced
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]ss, singular: %[1]s}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// neverPull takes back what Kamaji asks for its API servers: to pull their image each time. Here images are loaded into the node.
const neverPull = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: never-pull}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        object.spec.containers.map(c, JSONPatch{op: "replace",
        path: "/spec/containers/" + string(object.spec.containers.indexOf(c)) + "/imagePullPolicy", value: "IfNotPresent"})
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: never-pull}
spec: {policyName: never-pull}
`

// InstallKamaji installs Kamaji from its own chart, with its webhooks and with a store, so that its tenants' control planes run as
// pods in these versions of Kubernetes. Whatever they are, what runs is our kube-apiserver.
func (n *Node) InstallKamaji(ctx context.Context, versions ...string) error {
	keys, err := localfleet.NewKamajiKeys()
	if err != nil {
		return err
	}
	if err := n.loadKamaji(ctx, versions); err != nil {
		return err
	}
	for _, text := range []string{
		neverPull, fmt.Sprintf(certManager, "certificate", "Certificate"), fmt.Sprintf(certManager, "issuer", "Issuer"),
		"{apiVersion: v1, kind: Namespace, metadata: {name: " + localfleet.KamajiNamespace + "}}",
	} {
		if err := n.Apply(ctx, text); err != nil {
			return err
		}
	}
	if err := n.startStore(ctx, keys); err != nil {
		return fmt.Errorf("Kamaji's store: %w", err)
	}
	if err := n.serverSecret(ctx, keys, "kamaji-webhook-server-cert", hookHost); err != nil {
		return err
	}
	chart, err := parts.Files(parts.KamajiChart)
	if err != nil {
		return err
	}
	// The chart's limits are less than what the operator takes with two tenants.
	if err := n.Helm(ctx, "install", parts.Kamaji, chart+"/kamaji", "--namespace", localfleet.KamajiNamespace, "--set",
		"image.repository="+kamajiImage+",image.tag=1,image.pullPolicy=Never,telemetry.disabled=true,resources.limits=null,etcd.deploy=false,"+
			"etcd.overrides.endpoints.etcd-0="+storeHost+",etcd.overrides.endpoints.etcd-1=null,etcd.overrides.endpoints.etcd-2=null",
		"--wait", "--timeout", readyTimeout.String()); err != nil {
		return err
	}
	return n.trustWebhooks(ctx, keys.Authority())
}

func (n *Node) loadKamaji(ctx context.Context, versions []string) error {
	path, err := parts.Path(parts.Kamaji)
	if err != nil {
		return err
	}
	etcd, err := parts.Path(parts.Etcd)
	if err != nil {
		return err
	}
	images := []Image{
		{Ref: etcdImage, Files: map[string]string{"/etcd": etcd}, Entrypoint: []string{"/etcd"}},
		{Ref: kamajiImage + ":1", Files: map[string]string{"/kamaji": path}, Entrypoint: []string{"/kamaji"}, User: "65532"},
	}
	for _, part := range []string{parts.KubeAPIServer, parts.KubeControllerManager, parts.KubeScheduler} {
		path, err := parts.Path(part)
		if err != nil {
			return err
		}
		image := Image{Files: map[string]string{"/usr/local/bin/" + part: path}, Entrypoint: []string{part}}
		for _, version := range versions {
			image.Refs = append(image.Refs, "registry.k8s.io/"+part+":"+version)
		}
		images = append(images, image)
	}
	return n.Load(ctx, images...)
}

func (n *Node) startStore(ctx context.Context, keys *localfleet.KamajiKeys) error {
	secrets, err := keys.Secrets()
	if err != nil {
		return err
	}
	for _, s := range secrets {
		if err := n.Client.Create(ctx, s); err != nil {
			return err
		}
	}
	if err := n.serverSecret(ctx, keys, "etcd-server", storeHost); err != nil {
		return err
	}
	if err := n.Apply(ctx, store); err != nil {
		return err
	}
	if err := n.Available(ctx, client.ObjectKey{Namespace: localfleet.KamajiNamespace, Name: "etcd"}); err != nil {
		return err
	}
	return await(ctx, "it can be reached", func(ctx context.Context) error { return keys.EnableAuth(ctx, "https://"+storeHost+":2379") })
}

// serverSecret makes the Secret of a server by its name.
func (n *Node) serverSecret(ctx context.Context, keys *localfleet.KamajiKeys, name, host string) error {
	data, err := keys.Server(host)
	if err != nil {
		return err
	}
	return n.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: localfleet.KamajiNamespace, Name: name}, Type: corev1.SecretTypeTLS, Data: data,
	})
}

// trustWebhooks does what cert-manager would: the API server is told whom to trust.
func (n *Node) trustWebhooks(ctx context.Context, authority []byte) error {
	mutating := &admissionv1.MutatingWebhookConfiguration{}
	validating := &admissionv1.ValidatingWebhookConfiguration{}
	if err := errors.Join(
		n.Client.Get(ctx, client.ObjectKey{Name: "kamaji-mutating-webhook-configuration"}, mutating),
		n.Client.Get(ctx, client.ObjectKey{Name: "kamaji-validating-webhook-configuration"}, validating),
	); err != nil {
		return err
	}
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig.CABundle = authority
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.CABundle = authority
	}
	return errors.Join(n.Client.Update(ctx, mutating), n.Client.Update(ctx, validating))
}
