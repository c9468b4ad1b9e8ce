// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
)

// secretOfACluster: the Secret that a cluster was registered by is deleted, under a finalizer first, as by a deletion in the foreground, and
// then for good. The cluster lives on, and nothing happens to it.
func (f *teardownFleet) secretOfACluster(t *testing.T) {
	ctx := t.Context()
	before := f.witness(t, secretName)
	reg := f.registration(secretName)
	check(t, f.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg))
	uid := reg.UID
	s := secret(secretNamespace, secretName, nil)
	finalizers := func(list string) {
		check(t, f.Client.Patch(ctx, s, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"finalizers":%s}}`, list))))
	}
	served := func(what string, valid metav1.ConditionStatus) {
		soon(t, what, func() error {
			return errors.Join(
				condition(ctx, f.Client, reg, hubv1.UnregisteringCondition, metav1.ConditionTrue, hubv1.OriginMissingReason),
				condition(ctx, f.Client, reg, hubv1.KubeConfigValidCondition, valid, ""),
				condition(ctx, f.Client, reg, hubv1.ReachableCondition, metav1.ConditionTrue, ""), f.base(ctx, secretName), f.team(ctx, secretName))
		})
	}
	finalizers(`["example.org/hold"]`)
	check(t, f.Client.Delete(ctx, s))
	served("while it is being deleted its kubeconfig is used", metav1.ConditionTrue)
	finalizers("null")
	served("when it is gone the hub's copy is", metav1.ConditionFalse)
	f.makeOrigin(t, secretName)
	soon(t, "it is back, as if nothing had been", func() error {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg); err != nil {
			return err
		}
		if reason := status.Reason(reg, hubv1.UnregisteringCondition); reason != "" {
			return fmt.Errorf("it is still about to be orphaned: %s", reason)
		}
		return errors.Join(condition(ctx, f.Client, reg, hubv1.KubeConfigValidCondition, metav1.ConditionTrue, ""), f.ready(ctx, secretName))
	})
	if reg.UID != uid {
		t.Error("the registration was made anew")
	}
	f.untouched(t, before, secretName)
}

const teardownHalf = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: half, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {chandler.dev/name: s1}}
  rollout: {strategy: AllAtOnce}
  sources: [{name: fleet, kind: GitRepository, spec: {url: $GIT, interval: 2s, ref: {branch: main}}}]
  addons:
    - {name: td-half, kustomization: {interval: 1h, path: ./td-half, sourceRef: {name: fleet}}}
`

// appliedInPart: Flux applies the Namespace of a folder, and fails at what is in it, which it has never done before. When the add-on goes it
// removes nothing, and the hub says what it knows to be left.
func (f *teardownFleet) appliedInPart(t *testing.T) {
	ctx := t.Context()
	files := teardownFiles()
	files["td-half/namespace.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: td-half}\n"
	files["td-half/secret.yaml"] = "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {name: half, namespace: td-half}\n"
	_, err := f.git.Commit("fleet", files)
	check(t, err)
	f.apply(t, teardownHalf)
	there := func() error {
		return f.mortal.Client.Get(ctx, types.NamespacedName{Name: "td-half"}, &corev1.Namespace{})
	}
	soon(t, "half of it arrives", func() error {
		return errors.Join(there(), f.addonOf(ctx, secretName, "half", "td-half", hubv1.AddonFailed, ""))
	})
	check(t, f.Client.Delete(ctx, addonSet("flux-system", "half")))
	soon(t, "the set is gone, and an event says what is left", func() error {
		return errors.Join(wantGone(ctx, f.Client, addonSet("flux-system", "half")), f.orphanEvent(ctx, "flux-system", `"td-half"`, "fleet/s1", "Flux has noted nothing of it"))
	})
	reg := f.registration(secretName)
	check(t, f.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg))
	check(t, there())
	found := false
	for _, o := range reg.Status.Orphans {
		found = found || o.Addon == "td-half"
	}
	if !found {
		t.Errorf("the orphans of the registration are %v", reg.Status.Orphans)
	}
}
