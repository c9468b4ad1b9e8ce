// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
)

func wantLabels(ctx context.Context, h *hub, name string, want map[string]string) error {
	reg := registration("tenants", name)
	if err := h.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg); err != nil {
		return err
	}
	for k, v := range want {
		if reg.Labels[k] != v {
			return fmt.Errorf("label %s is %q, want %q", k, reg.Labels[k], v)
		}
	}
	return nil
}

func wantEvent(ctx context.Context, h *hub, about, text string) error {
	events := &eventsv1.EventList{}
	if err := h.Client.List(ctx, events); err != nil {
		return err
	}
	for _, e := range events.Items {
		if e.Regarding.Name == about && strings.Contains(e.Note, text) {
			return nil
		}
	}
	return fmt.Errorf("no event about %s says %q", about, text)
}

// marker stands for the secret bytes that must not get out.
const marker = "c2VjcmV0LW1hcmtlcg"

// TestBadKubeconfigs wants a condition that says which Secret, which key and what is wrong, and none of the Secret's bytes.
func TestBadKubeconfigs(t *testing.T) {
	beside(t)
	ctx := t.Context()
	h := startHub(t, hubOptions{name: "hub-kubeconfigs", origins: true})
	namespace(t, h.Client, "fleet")
	good, err := h.Kubeconfig("someone")
	check(t, err)
	elsewhere := func(server string) []byte { return []byte(strings.Replace(string(good), h.Server(), server, 1)) }
	cases := map[string]struct {
		data   map[string][]byte
		reason string
		says   string
	}{
		"no-key":    {map[string][]byte{"a": []byte(marker), "b": []byte(marker)}, "KeyNotFound", "it has a, b"},
		"empty":     {map[string][]byte{"value": []byte("  \n")}, "KubeConfigEmpty", `key "value"`},
		"malformed": {map[string][]byte{"value": []byte("a: [" + marker)}, "KubeConfigMalformed", `key "value"`},
		"exec": {map[string][]byte{"kubeconfig": []byte(strings.Replace(string(good), "user:\n", "user:\n    exec: {apiVersion: client.authentication.k8s.io/v1, command: "+marker+"}\n", 1))},
			"ExecForbidden", `key "kubeconfig"`},
		"hub":        {map[string][]byte{"value": good}, "TargetIsHub", "127.0.0.1 is the hub's own API server"},
		"service":    {map[string][]byte{"value": elsewhere("https://one.tenants.svc:6443")}, "AddressForbidden", "--allow-services"},
		"service-ip": {map[string][]byte{"value": elsewhere("https://10.96.3.4:6443")}, "AddressForbidden", "in the range of the management cluster's Services"},
	}
	for name, tc := range cases {
		s := secret("fleet", name, tc.data)
		s.Labels = map[string]string{hubv1.RegisterLabel: "true"}
		check(t, h.Client.Create(ctx, s))
	}
	apply(t, h.Client, "{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: missing, namespace: fleet}, spec: {kubeConfig: {secretRef: {name: nowhere}}}}")
	cases["missing"] = struct {
		data   map[string][]byte
		reason string
		says   string
	}{nil, hubv1.SecretNotFoundReason, `Secret "nowhere" is not in namespace "fleet"`}
	for name, tc := range cases {
		reg := registration("fleet", name)
		soon(t, name+" is refused with a reason", func() error {
			return condition(ctx, h.Client, reg, hubv1.KubeConfigValidCondition, metav1.ConditionFalse, tc.reason)
		})
		message := conditionOf(reg, hubv1.KubeConfigValidCondition).Message
		if !strings.Contains(message, tc.says) || tc.data != nil && !strings.Contains(message, name) {
			t.Errorf("%s: the message is %q; want the Secret's name and %q", name, message, tc.says)
		}
		if strings.Contains(fmt.Sprintf("%+v", reg), marker) {
			t.Errorf("%s: the status holds bytes of the Secret", name)
		}
	}
	// A name is looked at when it is dialed: this one leads to the hub, and its other ports are the workload clusters'.
	alias := secret("fleet", "alias", map[string][]byte{"value": elsewhere(strings.Replace(h.Server(), "127.0.0.1", "localhost", 1))})
	alias.Labels = map[string]string{hubv1.RegisterLabel: "true"}
	check(t, h.Client.Create(ctx, alias))
	soon(t, "the hub is found out by another name", func() error {
		reg := registration("fleet", "alias")
		if err := condition(ctx, h.Client, reg, hubv1.ReachableCondition, metav1.ConditionFalse, "ForbiddenAddress"); err != nil {
			return err
		}
		if m := conditionOf(reg, hubv1.ReachableCondition).Message; !strings.Contains(m, "own API server") {
			return fmt.Errorf("message %q", m)
		}
		return nil
	})
	// What Kamaji itself has written may name a Service: it is dialed, and no name server knows it here.
	check(t, localfleet.Tenant(ctx, h.Client, "fleet", "tenant", map[string]string{hubv1.RegisterLabel: "true"}, elsewhere("https://one.tenants.svc:6443")))
	soon(t, "the kubeconfig of a TenantControlPlane is accepted", func() error {
		return condition(ctx, h.Client, registration("fleet", "tenant"), hubv1.KubeConfigValidCondition, metav1.ConditionTrue, "")
	})
	if strings.Contains(h.process.Tail(1000000), marker) {
		t.Error("the hub's log holds bytes of a Secret")
	}
}

// TestSetsSayWhatIsWrong covers sets that the API server refuses, that do not compile, and that select nothing; and Flux
// objects that somebody edits, or that are somebody else's.
func TestSetsSayWhatIsWrong(t *testing.T) {
	beside(t)
	ctx := t.Context()
	c := workload(t, "workload-a")
	h := startHub(t, hubOptions{name: "hub-sets"})
	namespace(t, h.Client, "fleet")
	register(t, h.Client, "fleet", "one", c, map[string]string{"tier": "prod"})
	const addon = "{name: a, helmRelease: {chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: r}}}}}"
	set := func(selector, addons string) string {
		return "{apiVersion: chandler.dev/v1alpha1, kind: AddonSet, metadata: {name: s, namespace: flux-system}, spec: {" + selector + ", addons: [" + addons + "]}}"
	}
	for what, text := range map[string]string{
		"write a spec.clusterSelector that is not empty":                set("clusterSelector: {}", addon),
		"or spec.selectAll: true for every cluster, and not both":       set("selectAll: true, clusterSelector: {matchLabels: {a: b}}", addon),
		"write exactly one of helmRelease, kustomization and manifests": set("selectAll: true", "{name: a}"),
	} {
		if err := applyAll(ctx, h.Client, text); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("the API server answered %v, want %q", err, what)
		}
	}
	obj := addonSet("flux-system", "s")
	apply(t, h.Client, set("clusterSelector: {matchLabels: {tier: gold}}", addon))
	soon(t, "a set that selects nothing says why", func() error {
		if err := condition(ctx, h.Client, obj, hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.NoClusterMatchesReason); err != nil {
			return err
		}
		if m := conditionOf(obj, hubv1.ReadyCondition).Message; !strings.Contains(m, `one wants tier=gold, and the label is "prod"`) {
			return fmt.Errorf("message %q", m)
		}
		return nil
	})
	apply(t, h.Client, set("clusterSelector: {matchLabels: {tier: prod}}", addon))
	releases := &helmv2.HelmReleaseList{}
	soon(t, "the HelmRelease is made", func() error {
		if err := h.Client.List(ctx, releases); err != nil || len(releases.Items) != 1 {
			return fmt.Errorf("%d HelmReleases (%v)", len(releases.Items), err)
		}
		return nil
	})
	hr := &releases.Items[0]
	key := client.ObjectKeyFromObject(hr)

	apply(t, h.Client, set("clusterSelector: {matchLabels: {tier: prod}}", strings.Replace(addon, "chart: c,", "chrat: c,", 1)))
	soon(t, "a typo stalls the set, with its path", func() error {
		if err := condition(ctx, h.Client, obj, hubv1.StalledCondition, metav1.ConditionTrue, hubv1.InvalidSpecReason); err != nil {
			return err
		}
		if m := conditionOf(obj, hubv1.StalledCondition).Message; !strings.Contains(m, `add-on "a": helmRelease.chart.spec.chrat: is not a field of a Flux HelmRelease`) {
			return fmt.Errorf("message %q", m)
		}
		return nil
	})
	there := &helmv2.HelmRelease{}
	check(t, h.Client.Get(ctx, key, there))
	if there.UID != hr.UID || there.Generation != hr.Generation {
		t.Error("the typo touched what was delivered")
	}
	const prod = "clusterSelector: {matchLabels: {tier: prod}}"
	apply(t, h.Client, set(prod+", dependsOn: [{name: later}]", strings.Replace(addon, "{chart: ", "{values: {a: 1}, chart: ", 1)))
	soon(t, "a set that depends on one that does not exist says which", func() error {
		if err := condition(ctx, h.Client, obj, hubv1.StalledCondition, metav1.ConditionTrue, hubv1.InvalidSpecReason); err != nil {
			return err
		}
		if m := conditionOf(obj, hubv1.StalledCondition).Message; !strings.Contains(m, `there is no AddonSet "later" in this namespace`) {
			return fmt.Errorf("message %q", m)
		}
		return nil
	})
	check(t, h.Client.Get(ctx, key, there))
	if there.UID != hr.UID || there.Generation != hr.Generation {
		t.Error("that touched what was delivered")
	}
	apply(t, h.Client, strings.Replace(set("clusterSelector: {matchLabels: {tier: gold}}", addon), "name: s,", "name: later,", 1))
	soon(t, "it goes on when the other comes, though that is on none of its clusters", func() error {
		if err := h.Client.Get(ctx, key, there); err != nil {
			return err
		}
		if there.UID != hr.UID || there.Generation == hr.Generation {
			return fmt.Errorf("it has generation %d still", there.Generation)
		}
		return nil
	})
	const crd, field = "helmreleases.helm.toolkit.fluxcd.io", "brandNew"
	apply(t, h.Client, set("clusterSelector: {matchLabels: {tier: prod}}", strings.Replace(addon, "{chart: ", "{"+field+": true, chart: ", 1)))
	soon(t, "a field that the installed CRD does not have stalls the set", func() error {
		if err := condition(ctx, h.Client, obj, hubv1.StalledCondition, metav1.ConditionTrue, hubv1.InvalidSpecReason); err != nil {
			return err
		}
		if m := conditionOf(obj, hubv1.StalledCondition).Message; !strings.Contains(m, "helmRelease."+field+": is not a field of a Flux HelmRelease") {
			return fmt.Errorf("message %q", m)
		}
		return nil
	})
	check(t, h.Client.Patch(ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd}}, client.RawPatch(types.JSONPatchType,
		[]byte(`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/`+field+`","value":{"type":"boolean"}}]`))))
	soon(t, "a CRD that has it lets it pass, and nobody touches the set", func() error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(helmv2.GroupVersion.WithKind("HelmRelease"))
		if err := h.Client.Get(ctx, key, u); err != nil {
			return err
		}
		if is, _, _ := unstructured.NestedBool(u.Object, "spec", field); !is {
			return fmt.Errorf("the HelmRelease has spec %v", u.Object["spec"])
		}
		return nil
	})
	apply(t, h.Client, set(prod, strings.Replace(addon, "{chart: ", "{driftDetection: {mode: \"<< 'brand' + 'New' >>\"}, chart: ", 1)))
	soon(t, "what the CRD refuses on the cluster is told there", func() error {
		list := &hubv1.AddonDeliveryList{}
		if err := h.Client.List(ctx, list); err != nil || len(list.Items) == 0 {
			return fmt.Errorf("%d deliveries (%v)", len(list.Items), err)
		}
		for i := range list.Items {
			if a := list.Items[i].Status.Addons; len(a) == 1 && strings.Contains(a[0].Message, `driftDetection.mode: is "brandNew"`) {
				return nil
			}
		}
		return fmt.Errorf("status %+v", list.Items[0].Status)
	})
	check(t, h.Client.Patch(ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd}}, client.RawPatch(types.JSONPatchType,
		[]byte(`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/driftDetection/properties/mode/enum/-","value":"`+field+`"}]`))))
	soon(t, "and written when the CRD takes it, though nothing else wakes the cluster", func() error {
		if err := h.Client.Get(ctx, key, there); err != nil {
			return err
		}
		if there.UID != hr.UID || there.Spec.DriftDetection == nil || there.Spec.DriftDetection.Mode != field {
			return fmt.Errorf("it has %+v", there.Spec.DriftDetection)
		}
		return nil
	})
	apply(t, h.Client, set(prod, addon))

	t.Run("foreign edits are undone, suspend is not", func(t *testing.T) {
		edit := `{"metadata":{"labels":{"chandler.dev/addon":null}},"spec":{"suspend":true,"targetNamespace":"elsewhere"}}`
		check(t, h.Client.Patch(ctx, there, client.RawPatch(types.MergePatchType, []byte(edit)), client.FieldOwner("flux")))
		soon(t, "the hub takes its fields back", func() error {
			if err := h.Client.Get(ctx, key, there); err != nil {
				return err
			}
			if there.Spec.TargetNamespace != "a" || !there.Spec.Suspend || there.Labels[hubv1.AddonLabel] != "a" {
				return fmt.Errorf("targetNamespace %q, suspend %t, labels %v", there.Spec.TargetNamespace, there.Spec.Suspend, there.Labels)
			}
			return nil
		})
	})
	t.Run("what is not ours is left alone", func(t *testing.T) {
		foreign := there.DeepCopy()
		foreign.ObjectMeta = metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
		foreign.Spec.TargetNamespace, foreign.Spec.Suspend = "theirs", false
		check(t, h.Client.Delete(ctx, obj))
		soon(t, "the set is gone", func() error { return wantGone(ctx, h.Client, obj) })
		check(t, h.Client.Create(ctx, foreign))
		obj = addonSet("flux-system", "s")
		apply(t, h.Client, set("clusterSelector: {matchLabels: {tier: prod}}", addon))
		soon(t, "the add-on is NotOwned", func() error {
			list := &hubv1.AddonDeliveryList{}
			if err := h.Client.List(ctx, list); err != nil || len(list.Items) != 1 || len(list.Items[0].Status.Addons) != 1 {
				return fmt.Errorf("%d deliveries (%v)", len(list.Items), err)
			}
			if a := list.Items[0].Status.Addons[0]; a.State != hubv1.AddonNotOwned {
				return fmt.Errorf("state %s: %s", a.State, a.Message)
			}
			return nil
		})
		check(t, h.Client.Get(ctx, key, there))
		if there.Spec.TargetNamespace != "theirs" || len(there.Labels) > 0 {
			t.Errorf("it was changed: %+v", there)
		}
	})
}
