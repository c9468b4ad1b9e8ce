// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/test/localfleet"
)

const trustSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  addons: [{name: %[2]s, manifests: {interval: 2s, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: %[2]s}, data: {color: %[3]s}}]}}]
`

// TestTrust: who may have the hub deliver what, and where. The platform has cluster one, a team has cluster two, and Secrets of the
// team register clusters as long as the team's Namespace says so.
func TestTrust(t *testing.T) {
	beside(t)
	ctx := t.Context()
	one, two := workload(t, "workload-a"), workload(t, "workload-b")
	h := startHub(t, hubOptions{name: "hub-trust", flux: &localfleet.FluxOptions{NoCrossNamespaceRefs: true}, args: []string{"--secret-namespaces=fleet", "--removal-delay=1s"}})
	namespace(t, h.Client, "fleet")
	namespace(t, h.Client, "team")
	register(t, h.Client, "fleet", "one", one, nil)
	register(t, h.Client, "team", "two", two, nil)
	reg := registration("team", "two")
	allow := func(value string) {
		t.Helper()
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
		check(t, h.Client.Patch(ctx, ns, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, hubv1.RegisterSecretsLabel, value))))
	}
	set := func(namespace, name, color string) {
		t.Helper()
		apply(t, h.Client, fmt.Sprintf(trustSet, namespace, name, color))
	}

	t.Run("a registration that is deleted while its origin is labelled uninstalls nothing", func(t *testing.T) {
		set("flux-system", "tru-base", "blue")
		soon(t, "the add-on arrives", func() error { return wantData(ctx, one, "default", "tru-base", "color", "blue") })
		before := &corev1.ConfigMap{}
		check(t, one.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "tru-base"}, before))
		release := func() types.UID {
			list := &helmv2.HelmReleaseList{}
			check(t, h.Client.List(ctx, list, client.MatchingLabels{hubv1.ClusterLabel: "one", hubv1.AddonLabel: "tru-base"}))
			if len(list.Items) != 1 || list.Items[0].DeletionTimestamp != nil {
				t.Fatalf("%d HelmReleases, or one that goes", len(list.Items))
			}
			return list.Items[0].UID
		}
		was, old := release(), registration("fleet", "one")
		check(t, h.Client.Get(ctx, client.ObjectKeyFromObject(old), old))
		check(t, h.Client.Delete(ctx, registration("fleet", "one")))
		soon(t, "it is made again, and Ready", func() error {
			again := registration("fleet", "one")
			if err := condition(ctx, h.Client, again, hubv1.ReadyCondition, metav1.ConditionTrue, ""); err != nil {
				return err
			}
			if again.UID == old.UID {
				return errors.New("the old one is still there")
			}
			return nil
		})
		soon(t, "an event says so", func() error { return wantEvent(ctx, h, "one", "nothing is uninstalled") })
		set("flux-system", "tru-base", "green")
		soon(t, "it is served as before", func() error { return wantData(ctx, one, "default", "tru-base", "color", "green") })
		after := &corev1.ConfigMap{}
		check(t, one.Client.Get(ctx, client.ObjectKeyFromObject(before), after))
		if before.UID != after.UID || release() != was {
			t.Error("it was uninstalled, and installed again")
		}
	})
	t.Run("deliveries that somebody deletes are made again, and Flux does not notice", func(t *testing.T) {
		content := &corev1.ConfigMap{}
		check(t, one.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "tru-base"}, content))
		release := func() helmv2.HelmRelease {
			list := &helmv2.HelmReleaseList{}
			check(t, h.Client.List(ctx, list, client.MatchingLabels{hubv1.ClusterLabel: "one", hubv1.AddonLabel: "tru-base"}))
			if len(list.Items) != 1 || list.Items[0].DeletionTimestamp != nil || len(list.Items[0].Status.History) == 0 {
				t.Fatalf("%d HelmReleases, or one that goes", len(list.Items))
			}
			return list.Items[0]
		}
		before := release()
		soon(t, "Flux has reported the last change", func() error {
			return condition(ctx, h.Client, &before, hubv1.ReadyCondition, metav1.ConditionTrue, "")
		})
		d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: identity.Delivery("tru-base", client.ObjectKey{Namespace: "fleet", Name: "one"})}}
		check(t, h.Client.Get(ctx, client.ObjectKeyFromObject(d), d))
		old := d.UID
		check(t, h.Client.DeleteAllOf(ctx, &hubv1.AddonDelivery{}, client.InNamespace("flux-system")))
		soon(t, "it is made again, and Ready", func() error {
			if err := condition(ctx, h.Client, d, hubv1.ReadyCondition, metav1.ConditionTrue, ""); err != nil {
				return err
			}
			if d.UID == old {
				return errors.New("the old one is still there")
			}
			return nil
		})
		soon(t, "an event says how to remove add-ons", func() error { return wantEvent(ctx, h, d.Name, "To remove its add-ons from cluster fleet/one") })
		after := release()
		if after.UID != before.UID || after.Generation != before.Generation || after.Status.History[0].Version != before.Status.History[0].Version {
			t.Errorf("the HelmRelease was %s, generation %d, revision %d, and is %s, %d, %d", before.UID, before.Generation, before.Status.History[0].Version,
				after.UID, after.Generation, after.Status.History[0].Version)
		}
		still := &corev1.ConfigMap{}
		check(t, one.Client.Get(ctx, client.ObjectKeyFromObject(content), still))
		if still.UID != content.UID || still.ResourceVersion != content.ResourceVersion {
			t.Error("it was uninstalled, and installed again")
		}
	})
	t.Run("a delivery that somebody writes gets no kubeconfig", func(t *testing.T) {
		d := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: identity.Delivery("mine", client.ObjectKey{Namespace: "fleet", Name: "one"})}}
		d.Spec.RegistrationRef = hubv1.RegistrationReference{Namespace: "fleet", Name: "one"}
		d.Spec.AddonSetRef.Name, d.Spec.RevisionName = "mine", "mine-e2"
		check(t, h.Client.Create(ctx, d))
		soon(t, "it says why", func() error {
			return condition(ctx, h.Client, d, hubv1.ReadyCondition, metav1.ConditionFalse, hubv1.OutOfReachReason)
		})
		copied := secret("team", identity.KubeconfigCopy("chandler", client.ObjectKey{Namespace: "fleet", Name: "one"}), nil)
		if err := h.Client.Get(ctx, client.ObjectKeyFromObject(copied), copied); !apierrors.IsNotFound(err) {
			t.Errorf("the kubeconfig of cluster one lies in namespace team: %v", err)
		}
		check(t, h.Client.Delete(ctx, d))
	})
	t.Run("Secrets register where the Namespace says so", func(t *testing.T) {
		soon(t, "the team's Secret says why it is not registered", func() error {
			return wantEvent(ctx, h, "two", "may not register clusters; label "+hubv1.RegisterSecretsLabel)
		})
		if err := h.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg); !apierrors.IsNotFound(err) {
			t.Fatalf("it is registered: %v", err)
		}
		allow(`"true"`)
		soon(t, "it is registered when the Namespace has the label", func() error { return wantData(ctx, two, "default", "tru-base", "color", "green") })
	})
	t.Run("a set of the team reaches its own clusters, and refers to its own namespace", func(t *testing.T) {
		set("team", "tru-team", "blue")
		soon(t, "the add-on arrives", func() error { return wantData(ctx, two, "default", "tru-team", "color", "blue") })
		soon(t, "the set is content with one cluster", func() error {
			s := addonSet("team", "tru-team")
			if err := condition(ctx, h.Client, s, hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason); err != nil {
				return err
			}
			if n := s.Status.Clusters.Matched; n != 1 {
				return fmt.Errorf("it counts %d clusters", n)
			}
			return nil
		})
		check(t, wantNoConfigMap(ctx, one, "default", "tru-team"))
		apply(t, h.Client, `{apiVersion: chandler.dev/v1alpha1, kind: AddonSet, metadata: {name: greedy, namespace: team}, spec: {selectAll: true, addons: [
  {name: greedy, kustomization: {sourceRef: {kind: GitRepository, name: fleet, namespace: flux-system}}}]}}`)
		soon(t, "one that refers to another namespace is told so", func() error {
			s := addonSet("team", "greedy")
			if err := condition(ctx, h.Client, s, hubv1.StalledCondition, metav1.ConditionTrue, hubv1.InvalidSpecReason); err != nil {
				return err
			}
			if m := conditionOf(s, hubv1.StalledCondition).Message; !strings.Contains(m, "only to sources in its own namespace") {
				return fmt.Errorf("message %q", m)
			}
			return nil
		})
		check(t, h.Client.Delete(ctx, addonSet("team", "greedy")))
	})
	t.Run("the Namespace loses its label", func(t *testing.T) {
		allow("null")
		soon(t, "the registration says so", func() error {
			return condition(ctx, h.Client, reg, hubv1.KubeConfigValidCondition, metav1.ConditionFalse, hubv1.NamespaceNotAllowedReason)
		})
		content := func(c *localfleet.Cluster) {
			t.Helper()
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"stringData":{"value":%q}}`, kubeconfigOf(t, c)))
			check(t, h.Client.Patch(ctx, secret("team", "two", nil), patch))
		}
		register(t, h.Client, "team", "more", two, nil)
		soon(t, "nothing new is registered", func() error { return wantEvent(ctx, h, "more", "may not register clusters") })
		content(one)
		set("team", "tru-team", "green")
		soon(t, "the cluster is served by the kubeconfig that it had", func() error { return wantData(ctx, two, "default", "tru-team", "color", "green") })
		check(t, wantNoConfigMap(ctx, one, "default", "tru-team"))
		if err := h.Client.Get(ctx, client.ObjectKey{Namespace: "team", Name: "more"}, registration("", "")); !apierrors.IsNotFound(err) {
			t.Errorf("the new Secret is registered: %v", err)
		}
		content(two)
		allow(`"true"`)
		soon(t, "the label is back, and all is well", func() error {
			return condition(ctx, h.Client, reg, hubv1.KubeConfigValidCondition, metav1.ConditionTrue, "")
		})
	})
	for _, s := range []*hubv1.AddonSet{addonSet("team", "tru-team"), addonSet("flux-system", "tru-base")} {
		check(t, h.Client.Delete(ctx, s))
		soon(t, "set "+s.Name+" is gone", func() error { return errors.Join(approveHeld(t.Context(), h.Client), wantGone(ctx, h.Client, s)) })
	}
}
