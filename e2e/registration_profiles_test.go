// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// TestClusterProfiles has one hub show its cluster as a ClusterProfile, a consumer of SIG Multicluster's get in by it, and another hub,
// on another management cluster, deliver an add-on by a copy of it.
func TestClusterProfiles(t *testing.T) {
	beside(t)
	ctx := t.Context()
	check(t, inventoryv1alpha1.AddToScheme(scheme))
	cluster := workload(t, "workload-a")
	crds, err := localfleet.CRDs(parts.ClusterInventory)
	check(t, err)
	producer := startHub(t, hubOptions{name: "hub-shows", args: []string{"--cluster-profiles", "--hub-id=shows"}})
	source := register(t, producer.Client, "fleet", "w1", cluster, map[string]string{"env": "prod"})
	reg := registration("fleet", "w1")
	soon(t, "the cluster answers", func() error {
		return condition(ctx, producer.Client, reg, hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.ProbeSucceededReason)
	})
	installCRDs(t, producer, crds...)
	profile := &inventoryv1alpha1.ClusterProfile{}
	key := client.ObjectKey{Namespace: "fleet", Name: "w1"}
	shown := func() error {
		if err := producer.Client.Get(ctx, key, profile); err != nil {
			return err
		}
		return wantShown(profile, cluster)
	}
	soon(t, "a CRD that comes later is picked up: the cluster is shown", shown)

	t.Run("a consumer gets in by it", func(t *testing.T) {
		plugin, err := parts.Path(parts.SecretReader)
		check(t, err)
		config, err := access.New([]access.Provider{{Name: origin.SecretReader, ExecConfig: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: plugin, InteractiveMode: clientcmdapi.NeverExecInteractiveMode, ProvideClusterInfo: true,
			Env: []clientcmdapi.ExecEnvVar{{Name: "KUBECONFIG", Value: producer.KubeconfigFile()}},
		}}}).BuildConfigFromCP(profile)
		check(t, err)
		c, err := client.New(config, client.Options{})
		check(t, err)
		there := &corev1.Namespace{}
		check(t, c.Get(ctx, client.ObjectKey{Name: "kube-system"}, there))
		if uid := string(there.UID); property(profile, "chandler.dev/cluster-uid") != uid {
			t.Errorf("the profile says cluster %q, and it is %q", property(profile, "chandler.dev/cluster-uid"), uid)
		}
	})
	t.Run("what somebody writes into it is undone", func(t *testing.T) {
		check(t, producer.Client.Patch(ctx, profile.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))))
		for what, patch := range map[string]string{
			"another address": `{"op":"replace","path":"/status/accessProviders/0/cluster/server","value":"https://192.0.2.66"}`,
			"a proxy":         `{"op":"add","path":"/status/accessProviders/0/cluster/proxy-url","value":"http://192.0.2.66:3128"}`,
			"a provider":      `{"op":"add","path":"/status/accessProviders/-","value":{"name":"eks","cluster":{"server":"https://192.0.2.66"}}}`,
			"an old field":    `{"op":"add","path":"/status/credentialProviders","value":[{"name":"eks","cluster":{"server":"https://192.0.2.66"}}]}`,
		} {
			check(t, producer.Client.Status().Patch(ctx, profile.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte("["+patch+"]"))))
			soon(t, what+" is gone, and the registration owns the profile", func() error {
				if err := shown(); err != nil {
					return err
				}
				if access := profile.Status.AccessProviders[0].Cluster; access.ProxyURL != "" || len(profile.Status.CredentialProviders) > 0 || len(profile.OwnerReferences) != 1 {
					return fmt.Errorf("owners %v, status %+v", profile.OwnerReferences, profile.Status)
				}
				return nil
			})
		}
	})
	t.Run("labels come and go", func(t *testing.T) {
		check(t, producer.Client.Patch(ctx, source, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"env":null,"region":"eu"}}}`))))
		soon(t, "the profile has the labels of the registration", func() error {
			check(t, producer.Client.Get(ctx, key, profile))
			if _, env := profile.Labels["env"]; env || profile.Labels["region"] != "eu" {
				return fmt.Errorf("labels %v", profile.Labels)
			}
			return nil
		})
	})
	t.Run("somebody else's is left alone", func(t *testing.T) {
		theirs := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "w2"}}
		theirs.Spec.ClusterManager.Name = "theirs"
		check(t, producer.Client.Create(ctx, theirs))
		register(t, producer.Client, "fleet", "w2", cluster, nil)
		soon(t, "an event says so", func() error { return wantEvent(ctx, producer, "w2", "which the hub did not make") })
		check(t, producer.Client.Get(ctx, client.ObjectKeyFromObject(theirs), theirs))
		if theirs.Spec.ClusterManager.Name != "theirs" || len(theirs.OwnerReferences) > 0 || len(theirs.Status.AccessProviders) > 0 {
			t.Errorf("it was changed: %+v", theirs)
		}
	})
	t.Run("its own are not registered", func(t *testing.T) {
		check(t, producer.Client.Patch(ctx, profile.DeepCopy(), client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, hubv1.RegisterLabel))))
		soon(t, "an event says why", func() error { return wantEvent(ctx, producer, "w1", "the hub itself made it") })
	})
	t.Run("another hub delivers by a copy", func(t *testing.T) { consumed(t, producer, profile, cluster, crds) })
	t.Run("it comes again with its CRD", func(t *testing.T) {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: origin.ClusterProfile.CRD}}
		check(t, producer.Client.Delete(ctx, crd.DeepCopy()))
		soon(t, "the CRD is gone", func() error { return wantGone(ctx, producer.Client, crd.DeepCopy()) })
		installCRDs(t, producer, crds...)
		soon(t, "the cluster is shown again", shown)
	})
	// There is no garbage collector on this management cluster: it is the hub that removes the profile.
	unregister := func(asks string) {
		check(t, producer.Client.Patch(ctx, source, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, hubv1.RegisterLabel, asks))))
	}
	t.Run("it goes with the registration", func(t *testing.T) {
		unregister("false")
		soon(t, "the profile is gone", func() error { return wantGone(ctx, producer.Client, profile.DeepCopy()) })
	})
	t.Run("the registration went unseen", func(t *testing.T) {
		unregister("true")
		soon(t, "the cluster is shown again", shown)
		producer.stop()
		unregister("false")
		check(t, producer.Client.Patch(ctx, reg, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		check(t, producer.Client.Delete(ctx, reg))
		producer.start(t)
		soon(t, "the profile is gone", func() error { return wantGone(ctx, producer.Client, profile.DeepCopy()) })
	})
}

// wantShown wants a profile to say what is true of a cluster that answers.
func wantShown(p *inventoryv1alpha1.ClusterProfile, cluster *localfleet.Cluster) error {
	var errs []error
	if c := meta.FindStatusCondition(p.Status.Conditions, inventoryv1alpha1.ClusterConditionControlPlaneHealthy); c == nil || c.Status != metav1.ConditionTrue {
		errs = append(errs, fmt.Errorf("ControlPlaneHealthy is %+v", c))
	}
	if p.Spec.ClusterManager.Name != "chandler-shows" || p.Labels[inventoryv1alpha1.LabelClusterManagerKey] != "chandler-shows" {
		errs = append(errs, fmt.Errorf("cluster manager %q, labels %v", p.Spec.ClusterManager.Name, p.Labels))
	}
	if !strings.HasPrefix(p.Status.Version.Kubernetes, "v1.") {
		errs = append(errs, fmt.Errorf("version %q", p.Status.Version.Kubernetes))
	}
	if len(p.Status.AccessProviders) != 1 || p.Status.AccessProviders[0].Cluster.Server != cluster.Config.Host {
		errs = append(errs, fmt.Errorf("access providers %+v, want server %s", p.Status.AccessProviders, cluster.Config.Host))
	}
	return errors.Join(errs...)
}

func property(p *inventoryv1alpha1.ClusterProfile, name string) string {
	for _, have := range p.Status.Properties {
		if have.Name == name {
			return have.Value
		}
	}
	return ""
}

// consumed has a second hub register a cluster by a copy of its profile and Secret, as a tool makes them that carries an inventory from one
// management cluster to another.
func consumed(t *testing.T, producer *hub, profile *inventoryv1alpha1.ClusterProfile, cluster *localfleet.Cluster, crds []string) {
	ctx := t.Context()
	consumer := startHub(t, hubOptions{name: "hub-consumes", flux: &localfleet.FluxOptions{}, args: []string{"--secret-namespaces=inventory", "--deselection-delay=1s", "--teardown-grace=30s"}})
	installCRDs(t, consumer, crds...)
	for _, ns := range []string{"fleet", "inventory"} {
		namespace(t, consumer.Client, ns)
	}
	kubeconfig := &corev1.Secret{}
	check(t, producer.Client.Get(ctx, client.ObjectKey{Namespace: "fleet", Name: "w1"}, kubeconfig))
	carry := func(ns string) *inventoryv1alpha1.ClusterProfile {
		c := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "remote", Labels: map[string]string{hubv1.RegisterLabel: "true", "env": "prod"}},
			Spec: profile.Spec}
		check(t, consumer.Client.Create(ctx, c))
		c.Status = *profile.Status.DeepCopy()
		c.Status.AccessProviders[0].Cluster.Extensions[0].Extension.Raw = fmt.Appendf(nil, `{"name":"w1","key":"value","namespace":%q}`, ns)
		check(t, consumer.Client.Status().Update(ctx, c))
		return c
	}
	elsewhere := carry("fleet")
	soon(t, "where nobody may register clusters, it registers none", func() error {
		return wantEvent(ctx, consumer, elsewhere.Name, "ClusterProfiles in namespace \"fleet\" may not register clusters")
	})
	if err := consumer.Client.Get(ctx, client.ObjectKeyFromObject(elsewhere), registration("fleet", "remote")); !apierrors.IsNotFound(err) {
		t.Errorf("it is registered: %v", err)
	}
	carried, reg := carry("inventory"), registration("inventory", "remote")
	soon(t, "the Secret is missing", func() error {
		return condition(ctx, consumer.Client, reg, hubv1.KubeConfigValidCondition, metav1.ConditionFalse, hubv1.SecretNotFoundReason)
	})
	check(t, consumer.Client.Create(ctx, secret("inventory", "w1", kubeconfig.Data)))
	apply(t, consumer.Client, `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: shown, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {env: prod}}
  rollout: {strategy: AllAtOnce}
  addons:
    - name: shown
      manifests:
        objects:
          - apiVersion: v1
            kind: ConfigMap
            metadata: {name: by-profile, namespace: default}
            data: {cluster: "<< cluster.name >>"}
`)
	soon(t, "the add-on is there", func() error { return wantData(ctx, cluster, "default", "by-profile", "cluster", "remote") })
	check(t, consumer.Client.Patch(ctx, carried, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:"false"}}}`, hubv1.RegisterLabel))))
	soon(t, "the add-on is gone, and the registration", func() error {
		return errors.Join(wantGone(ctx, consumer.Client, reg), goneThere(ctx, cluster, "by-profile"))
	})
	t.Run("a cloud's needs an identity that somebody names", func(t *testing.T) { cloud(t, consumer, profile) })
}

// cloud: the address and the program of a cloud's access provider count for nothing. A registration names the identity and the cluster, and
// has the profile's labels.
func cloud(t *testing.T, consumer *hub, profile *inventoryv1alpha1.ClusterProfile) {
	ctx := t.Context()
	eks := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "inventory", Name: "eks", Labels: map[string]string{hubv1.RegisterLabel: "true", "region": "eu"}},
		Spec: profile.Spec}
	check(t, consumer.Client.Create(ctx, eks))
	reg := registration("inventory", "eks")
	expect.Lasts(t, time.Second, "before it says how to reach its cluster, nothing is registered", func() error { return wantGone(ctx, consumer.Client, reg) })
	eks.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{Name: "eks", Cluster: clientcmdv1.Cluster{Server: "https://192.0.2.66"}}}
	check(t, consumer.Client.Status().Update(ctx, eks))
	soon(t, "an event says how to register it", func() error {
		return wantEvent(ctx, consumer, "eks", "write a ClusterRegistration with spec.originRef")
	})
	if err := wantGone(ctx, consumer.Client, reg); err != nil {
		t.Errorf("it is registered: %v", err)
	}
	apply(t, consumer.Client, `
apiVersion: chandler.dev/v1alpha1
kind: ClusterRegistration
metadata: {name: eks, namespace: inventory}
spec:
  originRef: {apiGroup: multicluster.x-k8s.io, kind: ClusterProfile, name: eks}
  kubeConfig: {workloadIdentity: {provider: aws, cluster: "arn:aws:eks:eu-central-1:123456789012:cluster/prod", serviceAccountName: fleet}}
`)
	apply(t, consumer.Client, `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: clouds, namespace: inventory}
spec:
  clusterSelector: {matchLabels: {region: eu}}
  rollout: {strategy: AllAtOnce}
  addons: [{name: clouds, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: clouds}}]}}]
`)
	soon(t, "it has the profile's labels, and Flux logs in by the identity", func() error {
		if err := condition(ctx, consumer.Client, reg, hubv1.KubeConfigValidCondition, metav1.ConditionTrue, ""); err != nil {
			return err
		}
		if reg.Labels["region"] != "eu" {
			return fmt.Errorf("labels %v", reg.Labels)
		}
		list := &corev1.ConfigMapList{}
		if err := consumer.Client.List(ctx, list, client.InNamespace("inventory"), client.HasLabels{hubv1.ClusterKeyLabel}); err != nil {
			return err
		}
		if len(list.Items) != 1 || list.Items[0].Data["serviceAccountName"] != "fleet" || list.Items[0].Data["address"] != "" {
			return fmt.Errorf("%+v", list.Items)
		}
		return nil
	})
	check(t, consumer.Client.Patch(ctx, eks, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:"false"}}}`, hubv1.RegisterLabel))))
	soon(t, "it goes as its profile says", func() error { return wantGone(ctx, consumer.Client, reg) })
}

func goneThere(ctx context.Context, cluster *localfleet.Cluster, name string) error {
	return wantGone(ctx, cluster.Client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
}
