// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// TestOrder covers what spans several add-ons and sets of one cluster: dependencies, both ways, conflicts, and add-ons that are
// to stay.
func TestOrder(t *testing.T) {
	beside(t)
	ctx := t.Context()
	c := workload(t, "workload-b")
	h := startHub(t, hubOptions{name: "hub-order", flux: &localfleet.FluxOptions{}})
	charts, _ := serve(t)
	s := register(t, h.Client, "fleet", "one", c, nil)
	apply(t, h.Client, fmt.Sprintf("{apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {name: charts, namespace: flux-system}, spec: {url: %q, interval: 1m}}", charts.URL()))
	set := func(name, more, color string, addons ...string) {
		t.Helper()
		var b strings.Builder
		fmt.Fprintf(&b, "apiVersion: chandler.dev/v1alpha1\nkind: AddonSet\nmetadata: {name: %s, namespace: flux-system}\nspec:\n  selectAll: true\n%s  addons:\n", name, more)
		for _, a := range addons {
			addon, after, _ := strings.Cut(a, " after ")
			fmt.Fprintf(&b, "    - name: %s\n", addon)
			if after != "" {
				fmt.Fprintf(&b, "      dependsOn: [{name: %s}]\n", after)
			}
			fmt.Fprintf(&b, "      helmRelease: {interval: 1h, chart: {spec: {chart: settings, sourceRef: {kind: HelmRepository, name: charts}}}, values: {color: %s}}\n", color)
		}
		apply(t, h.Client, b.String())
	}
	release := func(addon string) (*helmv2.HelmRelease, error) {
		list := &helmv2.HelmReleaseList{}
		if err := h.Client.List(ctx, list, client.MatchingLabels{hubv1.AddonLabel: addon}); err != nil {
			return nil, err
		}
		if len(list.Items) != 1 {
			return nil, fmt.Errorf("%d HelmReleases of %s", len(list.Items), addon)
		}
		return &list.Items[0], nil
	}

	t.Run("dependencies", func(t *testing.T) {
		set("chain", "", "blue", "ord-a", "ord-b after ord-a")
		soon(t, "both are there", func() error { return wantData(ctx, c, "ord-b", "ord-b", "color", "blue") })
		first, err := release("ord-a")
		check(t, err)
		second, err := release("ord-b")
		check(t, err)
		if len(second.Spec.DependsOn) != 1 || second.Spec.DependsOn[0].Name != first.Name {
			t.Errorf("ord-b depends on %+v, want %s", second.Spec.DependsOn, first.Name)
		}
		// A finalizer of ours on the dependant stands for an uninstall that takes its time.
		hold := func(finalizers string) {
			check(t, h.Client.Patch(ctx, second, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))))
		}
		hold(`["finalizers.fluxcd.io","example.org/slow"]`)
		check(t, h.Client.Delete(ctx, addonSet("flux-system", "chain")))
		soon(t, "the dependant is uninstalled", func() error { return wantNoConfigMap(ctx, c, "ord-b", "ord-b") })
		soon(t, "the delivery says what waits for what", func() error {
			list := &hubv1.AddonDeliveryList{}
			if err := h.Client.List(ctx, list); err != nil || len(list.Items) != 1 {
				return fmt.Errorf("%d deliveries (%v)", len(list.Items), err)
			}
			for _, a := range list.Items[0].Status.Addons {
				if a.Name == "ord-a" && a.State == hubv1.AddonRemoving && strings.Contains(a.Message, "waits for add-on ord-b") {
					return nil
				}
			}
			return fmt.Errorf("add-ons are %+v", list.Items[0].Status.Addons)
		})
		check(t, wantData(ctx, c, "ord-a", "ord-a", "color", "blue"))
		if first, err = release("ord-a"); err != nil || first.DeletionTimestamp != nil {
			t.Errorf("the dependency is being deleted before its dependant is gone (%v)", err)
		}
		check(t, h.Client.Get(ctx, client.ObjectKeyFromObject(second), second))
		hold(`null`)
		soon(t, "then the dependency is", func() error { return wantNoConfigMap(ctx, c, "ord-a", "ord-a") })
		soon(t, "the set is gone", func() error { return wantGone(ctx, h.Client, addonSet("flux-system", "chain")) })
	})

	t.Run("a conflict is settled and handed over", func(t *testing.T) {
		set("high", "  priority: 5\n", "red", "ord-c")
		soon(t, "the winner delivers", func() error { return wantData(ctx, c, "ord-c", "ord-c", "color", "red") })
		set("low", "", "green", "ord-c")
		soon(t, "the loser says who won", func() error {
			return h.wantAddon(t, "low", "ord-c", hubv1.AddonLostTo, "AddonSet flux-system/high delivers")
		})
		before, err := release("ord-c")
		check(t, err)
		check(t, h.Client.Delete(ctx, addonSet("flux-system", "high")))
		soon(t, "the other takes over", func() error { return wantData(ctx, c, "ord-c", "ord-c", "color", "green") })
		soon(t, "the winner is gone", func() error { return wantGone(ctx, h.Client, addonSet("flux-system", "high")) })
		after, err := release("ord-c")
		check(t, err)
		if after.UID != before.UID {
			t.Error("the HelmRelease was made anew, which reinstalls the workload")
		}
		check(t, h.Client.Delete(ctx, addonSet("flux-system", "low")))
		soon(t, "it is uninstalled", func() error { return wantNoConfigMap(ctx, c, "ord-c", "ord-c") })
	})

	t.Run("orphaned add-ons stay, and nothing on the hub does", func(t *testing.T) {
		set("keep", "  deletionPolicy: Orphan\n", "blue", "ord-d", "ord-e")
		for _, addon := range []string{"ord-d", "ord-e"} {
			soon(t, addon+" is there", func() error { return wantData(ctx, c, addon, addon, "color", "blue") })
		}
		check(t, h.Client.Delete(ctx, addonSet("flux-system", "keep")))
		soon(t, "the set is gone", func() error { return wantGone(ctx, h.Client, addonSet("flux-system", "keep")) })
		for _, addon := range []string{"ord-d", "ord-e"} {
			soon(t, "an event names what was left", func() error {
				return wantEvent(ctx, h, deliveryName("keep"), fmt.Sprintf("add-on %q (HelmRelease", addon))
			})
		}
		check(t, h.Client.Patch(ctx, s, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:"false"}}}`, hubv1.RegisterLabel))))
		soon(t, "nothing of ours is left on the hub", func() error { return wantNothingOfOurs(ctx, h.Client) })
		for _, addon := range []string{"ord-d", "ord-e"} {
			check(t, wantData(ctx, c, addon, addon, "color", "blue"))
			check(t, c.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: addon}}))
		}
	})
}

// wantAddon wants an add-on of a set's only delivery in a state, with a text in its message.
func (h *hub) wantAddon(t *testing.T, set, addon string, state hubv1.AddonState, text string) error {
	list := &hubv1.AddonDeliveryList{}
	if err := h.Client.List(t.Context(), list, client.MatchingLabels{hubv1.AddonSetLabel: set}); err != nil || len(list.Items) != 1 {
		return fmt.Errorf("%d deliveries (%v)", len(list.Items), err)
	}
	return expect.Addon(&list.Items[0], addon, state, text)
}

func deliveryName(set string) string {
	return identity.Delivery(set, types.NamespacedName{Namespace: "fleet", Name: "one"})
}
