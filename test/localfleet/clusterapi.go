// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// ClusterAPI is Cluster API on a management cluster: its own core manager with its webhooks, and a small provider of
// infrastructure and control planes.
type ClusterAPI struct {
	c        *Cluster
	provider *provider
}

// StartClusterAPI starts Cluster API on a cluster. It ends with the cluster. Where something is to be collected when its owner
// goes, such as the Secrets of a control plane, the cluster needs a controller manager.
func (c *Cluster) StartClusterAPI(ctx context.Context) (*ClusterAPI, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	server := webhookServer{url: fmt.Sprintf("https://127.0.0.1:%d", port), authority: c.authority.pem()}
	if err := c.installClusterAPI(server); err != nil {
		return nil, fmt.Errorf("install the CRDs of Cluster API: %w", err)
	}
	if err := c.startClusterAPIManager(ctx, port); err != nil {
		return nil, err
	}
	if err := c.registerWebhooks(ctx, server); err != nil {
		return nil, fmt.Errorf("register the webhooks of Cluster API: %w", err)
	}
	a := &ClusterAPI{c: c}
	if a.provider, err = c.startProvider(); err != nil {
		return nil, fmt.Errorf("start the provider for Cluster API: %w", err)
	}
	return a, nil
}

// webhookServer is where the API server finds webhooks: at a URL, as no Service leads to a process of this machine.
type webhookServer struct {
	url       string
	authority []byte
}

// installClusterAPI installs the CRDs of Cluster API, as clusterctl labels them, and those of the provider.
func (c *Cluster) installClusterAPI(server webhookServer) error {
	dir, err := parts.Files(parts.ClusterAPICRDs)
	if err != nil {
		return err
	}
	options := envtest.CRDInstallOptions{Paths: []string{dir}, ErrorIfPathMissing: true, MaxTime: readyTimeout}
	if err := envtest.ReadCRDFiles(&options); err != nil {
		return err
	}
	path := server.url + "/convert"
	for _, crd := range options.CRDs {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ConversionReviewVersions: []string{"v1"},
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &path, CABundle: server.authority},
			},
		}
	}
	options.CRDs = append(options.CRDs, providerCRDs()...)
	for _, crd := range options.CRDs {
		if crd.Labels == nil {
			crd.Labels = map[string]string{}
		}
		crd.Labels["clusterctl.cluster.x-k8s.io"] = ""
	}
	options.Paths = nil // they have been read
	_, err = envtest.InstallCRDs(c.Config, options)
	return err
}

func (c *Cluster) startClusterAPIManager(ctx context.Context, webhooks int) error {
	path, err := parts.Path(parts.ClusterAPI)
	if err != nil {
		return err
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	certificate, key, err := c.authority.server(c.authority.cert.NotBefore, c.authority.cert.NotAfter)
	if err != nil {
		return err
	}
	certificates := filepath.Join(c.dir, parts.ClusterAPI)
	if err := os.Mkdir(certificates, 0o700); err != nil {
		return err
	}
	if err := writeFiles(map[string][]byte{filepath.Join(certificates, "tls.crt"): certificate,
		filepath.Join(certificates, "tls.key"): key}); err != nil {
		return err
	}
	health := fmt.Sprintf("127.0.0.1:%d", port)
	return c.run(ctx, command{
		name: parts.ClusterAPI, path: path,
		args: []string{
			"--kubeconfig=" + c.KubeconfigFile(), "--leader-elect=false", "--diagnostics-address=0", "--health-addr=" + health,
			fmt.Sprintf("--webhook-port=%d", webhooks), "--webhook-cert-dir=" + certificates,
			// Its rate limit reconciles each object at most once a second, and tests would have to wait for that.
			"--feature-gates=ClusterTopology=true,ReconcilerRateLimiting=false",
		},
		env:   []string{"NO_PROXY=127.0.0.1,localhost"},
		ready: answers(c.probe, "http://"+health+"/readyz"),
	})
}

// registerWebhooks applies the module's own manifest of webhooks, with a URL in the place of the Service.
func (c *Cluster) registerWebhooks(ctx context.Context, server webhookServer) error {
	dir, err := parts.Files(parts.ClusterAPIWebhooks)
	if err != nil {
		return err
	}
	return eachObject(filepath.Join(dir, "manifests.yaml"), func(u *unstructured.Unstructured) error {
		var o client.Object
		var clients []*admissionregistrationv1.WebhookClientConfig
		switch u.GetKind() {
		case "MutatingWebhookConfiguration":
			m := &admissionregistrationv1.MutatingWebhookConfiguration{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, m); err != nil {
				return err
			}
			for i := range m.Webhooks {
				clients = append(clients, &m.Webhooks[i].ClientConfig)
			}
			o = m
		case "ValidatingWebhookConfiguration":
			v := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, v); err != nil {
				return err
			}
			for i := range v.Webhooks {
				clients = append(clients, &v.Webhooks[i].ClientConfig)
			}
			o = v
		default:
			return fmt.Errorf("a webhook manifest has a %s", u.GetKind())
		}
		for _, w := range clients {
			if w.Service == nil || w.Service.Path == nil {
				return errors.New("a webhook names no path of a Service")
			}
			url := server.url + *w.Service.Path
			*w = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: server.authority}
		}
		o.SetName("capi-" + o.GetName())
		return c.Client.Create(ctx, o)
	})
}

// Serve sets the cluster whose API server is behind the control plane of a Cluster. Until then the provider has none
// to offer.
func (a *ClusterAPI) Serve(namespace, name string, workload *Cluster) {
	a.provider.serve(client.ObjectKey{Namespace: namespace, Name: name}, workload)
}

// Rotate writes new credentials into the kubeconfig Secret of a Cluster, and revokes the old ones.
func (a *ClusterAPI) Rotate(ctx context.Context, namespace, name string) error {
	return a.provider.rotate(ctx, client.ObjectKey{Namespace: namespace, Name: name})
}

// Move moves the Clusters of a namespace to another management cluster that has Cluster API, with clusterctl.
func (a *ClusterAPI) Move(ctx context.Context, namespace string, to *ClusterAPI) error {
	path, err := parts.Path(parts.Clusterctl)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, "move", "--namespace="+namespace, "--kubeconfig="+a.c.KubeconfigFile(), "--to-kubeconfig="+
		to.c.KubeconfigFile())
	// clusterctl reads a configuration from there, and would ask the internet for newer versions.
	cmd.Env = append(os.Environ(), "HOME="+a.c.dir, "XDG_CONFIG_HOME="+a.c.dir, "CLUSTERCTL_DISABLE_VERSIONCHECK=true")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("clusterctl move: %w\n%s", err, out)
	}
	return nil
}
