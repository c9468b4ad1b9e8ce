// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// edit is what somebody tries to do.
type edit struct {
	name string
	do   func(context.Context, client.Client) error
	// denied is what jane is told, and broken what she is told as a member of the break-glass group: nothing if it then works.
	denied, broken string
}

// namesObject is how each message begins.
var namesObject = regexp.MustCompile(` denied request: [A-Z][A-Za-z]+ [a-z-]+/[a-z0-9-]+ `)

func patched(u *unstructured.Unstructured, patch string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, u.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

func patchedStatus(u *unstructured.Unstructured, patch string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Status().Patch(ctx, u.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

func deleted(u *unstructured.Unstructured) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error { return c.Delete(ctx, u.DeepCopy()) }
}

// forged makes an object of another name that looks like one of the hub's, with only some of its labels.
func forged(u *unstructured.Unstructured, labels ...string) func(context.Context, client.Client) error {
	f := u.DeepCopy()
	delete(f.Object, "status")
	f.Object["metadata"] = map[string]any{"name": "forged", "namespace": u.GetNamespace()}
	kept := map[string]string{}
	for _, l := range labels {
		kept[l] = u.GetLabels()[l]
	}
	f.SetLabels(kept)
	return func(ctx context.Context, c client.Client) error { return c.Create(ctx, f.DeepCopy()) }
}

func (p *guarded) denied(t *testing.T) {
	ctx := t.Context()
	since := time.Now()
	hr, k := p.find(t, helmAPI, "HelmRelease", hubv1.AddonLabel, "pol-chart"), p.find(t, kustomizeAPI, "Kustomization", hubv1.AddonLabel, "pol-git")
	chart, git := p.find(t, sourceAPI, "HelmChart", hubv1.ChartLabel, ""), p.find(t, sourceAPI, "GitRepository", hubv1.SourceLabel, "")
	copied := p.find(t, "v1", "Secret", hubv1.CopyLabel, "true")
	delivery, revision := p.find(t, hubAPI, "AddonDelivery", hubv1.AddonSetLabel, "pol"), p.find(t, "apps/v1", "ControllerRevision", hubv1.AddonSetLabel, "pol")
	reg := &unstructured.Unstructured{}
	reg.SetAPIVersion(hubAPI)
	reg.SetKind("ClusterRegistration")
	check(t, p.Client.Get(ctx, client.ObjectKey{Namespace: "fleet", Name: "one"}, reg))
	own := hr.DeepCopy()
	own.Object["metadata"] = map[string]any{"name": "of-jane", "namespace": "flux-system"}
	own.Object["spec"] = map[string]any{"interval": "1m", "suspend": true, "chartRef": map[string]any{"kind": "HelmChart", "name": "none"}}
	ownSecret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "of-jane", "namespace": "flux-system"}}}
	ownConfigMap := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "of-jane", "namespace": "flux-system"}}}
	for _, u := range []*unstructured.Unstructured{own, ownSecret, ownConfigMap} {
		check(t, p.jane.Create(ctx, u)) // with no label of the hub they are hers
	}

	instead := "Change AddonSet flux-system/pol, or spec.overrides of ClusterRegistration fleet/one. In an emergency, act as a member of group " + breakGlass
	marks := "of its labels and annotations only annotations reconcile.fluxcd.io/* are yours to change, not "
	const owner = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}}`
	edits := []edit{
		{"values of a HelmRelease", patched(hr, `{"spec":{"values":{"color":"pink"}}}`), "of its spec only suspend is yours to change, not values. " + instead, ""},
		{"two fields, and suspend", patched(hr, `{"spec":{"suspend":true,"interval":"1h","releaseName":null}}`), "is yours to change, not interval, releaseName. " + instead, ""},
		{"a field by server-side apply", func(ctx context.Context, c client.Client) error {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"timeout": "1s"}}}
			u.SetGroupVersionKind(hr.GroupVersionKind())
			u.SetNamespace(hr.GetNamespace())
			u.SetName(hr.GetName())
			return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl"))
		}, "not timeout. " + instead, ""},
		{"a label of the hub taken off", patched(hr, `{"metadata":{"labels":{"chandler.dev/cluster-key":null}}}`), marks + "chandler.dev/cluster-key: the hub knows it again by them", ""},
		{"all labels taken off", patched(hr, `{"metadata":{"labels":null}}`), "chandler.dev/cluster-key", ""},
		{"a label of the hub changed", patched(k, `{"metadata":{"labels":{"chandler.dev/addon":"other"}}}`), marks + "chandler.dev/addon: the hub knows it again by them", ""},
		{"an annotation of the hub", patched(hr, `{"metadata":{"annotations":{"chandler.dev/delivery":"other"}}}`), marks + "chandler.dev/delivery: the hub knows it again by them", ""},
		{"an annotation that stops Flux", patched(k, `{"metadata":{"annotations":{"kustomize.toolkit.fluxcd.io/reconcile":"disabled"}}}`), marks + "kustomize.toolkit.fluxcd.io/reconcile: the hub knows it again by them", ""},
		{"finalizers of Flux", patched(hr, `{"metadata":{"finalizers":null}}`), "has finalizers so that Flux tidies up before it goes", ""},
		{"an owner", patched(k, owner), "leave its ownerReferences as they are", ""},
		{"a HelmRelease deleted", deleted(hr), "deleting it would uninstall what runs, for the hub to make it again. Drop the add-on from AddonSet flux-system/pol, or exclude it in spec.overrides of ClusterRegistration fleet/one", ""},
		{"a collection deleted", func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, k.DeepCopy(), client.InNamespace("flux-system"), client.HasLabels{hubv1.ClusterKeyLabel})
		}, "deleting it would uninstall", ""},
		{"path of a Kustomization", patched(k, `{"spec":{"path":"./other"}}`), "not path. " + instead, ""},
		{"a forged HelmRelease", forged(hr, hubv1.ClusterKeyLabel), "would be taken for one", ""},
		{"a forged Kustomization", forged(k, hubv1.ClusterKeyLabel, hubv1.AddonLabel), "would be taken for one", ""},
		{"a HelmRelease that becomes a forged one", patched(own, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, hubv1.ClusterKeyLabel, hr.GetLabels()[hubv1.ClusterKeyLabel])), "would be taken for one", ""},
		{"version of a HelmChart", patched(chart, `{"spec":{"version":"9"}}`), "not version. Change AddonSet. In an emergency", ""},
		{"a HelmChart deleted", deleted(chart), "goes by itself when none does", ""},
		{"a forged HelmChart", forged(chart, hubv1.ChartLabel), "would be taken for one", ""},
		{"url of a source", patched(git, `{"spec":{"url":"https://example.org/other"}}`), "not url. Change AddonSet flux-system/pol", ""},
		{"a label of a source", patched(git, `{"metadata":{"labels":{"chandler.dev/source":null}}}`), marks + "chandler.dev/source: the hub knows it again by them", ""},
		{"a source deleted", deleted(git), "goes by itself when none does", ""},
		{"a forged source", forged(git, hubv1.SourceLabel), "would be taken for one", ""},

		{"a copy's content", patched(copied, `{"stringData":{"value":"x"}}`), "is the hub's copy of a kubeconfig: nothing of it is to be edited. Change the Secret that ClusterRegistration fleet/one names", ""},
		{"a copy's labels", patched(copied, `{"metadata":{"labels":{"chandler.dev/copy":null,"chandler.dev/cluster-key":null}}}`), "nothing of it is to be edited", ""},
		{"an annotation of a copy", patched(copied, `{"metadata":{"annotations":{"chandler.dev/kubeconfig-fingerprint":"x"}}}`), "nothing of it is to be edited", ""},
		{"an owner of a copy", patched(copied, owner), "nothing of it is to be edited", ""},
		{"a copy made immutable", patched(copied, `{"immutable":true}`), "nothing of it is to be edited", ""},
		{"a copy's finalizer", patched(copied, `{"metadata":{"finalizers":null}}`), "nothing of it is to be edited", ""},
		{"a copy deleted", deleted(copied), "without which Flux can neither change nor uninstall anything on that cluster", ""},
		{"a forged copy", forged(copied, hubv1.CopyLabel), "would be taken for one. To register a cluster, label a Secret chandler.dev/register", ""},
		{"a forged copy of a workload identity", forged(ownConfigMap, hubv1.CopyLabel), "ConfigMap flux-system/forged has a label by which the hub knows", ""},
		{"a Secret that becomes a forged copy", patched(ownSecret, `{"metadata":{"labels":{"chandler.dev/cluster-key":"x"}}}`), "would be taken for one", ""},
		{"a forged copy, as the hub knows them", forged(copied, hubv1.ClusterKeyLabel), "would be taken for one", ""},

		{"revision of a delivery", patched(delivery, `{"spec":{"revisionName":"other"}}`), "says what the hub decided, and only the hub writes that. Change AddonSet flux-system/pol", "says what the hub decided"},
		{"status of a delivery", patchedStatus(delivery, `{"status":{"addons":null}}`), "has a status that only the hub writes", "has a status that only the hub writes"},
		{"an annotation of a delivery", patched(delivery, `{"metadata":{"annotations":{"a":"b"}}}`), "is to be read only", ""},
		{"a label of a delivery", patched(delivery, `{"metadata":{"labels":{"chandler.dev/cluster-key":null}}}`), "is to be read only", ""},
		{"an owner of a delivery", patched(delivery, owner), "is to be read only", ""},
		{"finalizers of a delivery", patched(delivery, `{"metadata":{"finalizers":null}}`), "is to be read only", ""},
		{"a delivery deleted", deleted(delivery), "goes by itself when AddonSet flux-system/pol does not need it any more", ""},
		{"a forged delivery", forged(delivery), "would be a decision of the hub, which alone makes them", "would be a decision of the hub"},
		{"number of a revision", patched(revision, `{"revision":99}`), "says what the hub decided", "says what the hub decided"},
		{"a label of a revision", patched(revision, `{"metadata":{"labels":{"chandler.dev/addonset":null}}}`), "is to be read only", ""},
		{"a revision deleted", deleted(revision), "goes by itself", ""},
		{"a forged revision", forged(revision, hubv1.AddonSetLabel), "would be a decision of the hub", "would be a decision of the hub"},

		{"status of a registration", patchedStatus(reg, `{"status":{"clusterUID":"other"}}`), "has a status that the hub finds out by asking the cluster", ""},
		{"name of a registration", patched(reg, `{"metadata":{"labels":{"chandler.dev/name":"two"}}}`), "gets chandler.dev/name from the hub, and sets select by it: neither set nor change it", ""},
		{"two labels of a registration", patched(reg, `{"metadata":{"labels":{"chandler.dev/provider":"Kamaji","chandler.dev/kubernetes-minor":null}}}`), "gets chandler.dev/provider, chandler.dev/kubernetes-minor from the hub", ""},
		{"a registration that its origin asks for, deleted", deleted(reg), "comes from Secret one, which asks to be registered: it would be made again", ""},
		{"a registration that brings its labels", forged(reg, hubv1.ProviderLabel), "gets chandler.dev/provider from the hub", ""},
	}
	dry := client.NewDryRunClient(p.glass)
	for _, e := range edits {
		t.Run(strings.ReplaceAll(e.name, " ", "-"), func(t *testing.T) {
			err := e.do(ctx, p.jane)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), e.denied) || !namesObject.MatchString(err.Error()) {
				t.Errorf("jane is told %v, want %q", err, e.denied)
			}
			switch err := e.do(ctx, dry); {
			case e.broken == "" && err != nil:
				t.Errorf("having broken the glass, she is told %v", err)
			case e.broken != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), e.broken)):
				t.Errorf("having broken the glass, she is told %v, want %q", err, e.broken)
			}
		})
	}
	check(t, p.jane.Delete(ctx, ownSecret))
	check(t, p.jane.Delete(ctx, own))
	soon(t, "what is hers goes as she likes", func() error { return wantGone(ctx, p.Client, own) })
	p.audited(t, since)
}

// audited wants the audit log to say who broke the glass, and for what.
func (p *guarded) audited(t *testing.T, since time.Time) {
	events, err := p.Writes(testAgent, since)
	check(t, err)
	said := map[string]bool{}
	for _, e := range events {
		for policy, text := range e.Annotations {
			if name, ok := strings.CutSuffix(policy, "/break-glass"); ok && strings.HasPrefix(text, "jane: ") {
				said[name] = true
			}
		}
		if e.Annotations["chandler-generated/break-glass"] != "" && e.ImpersonatedUser == nil {
			t.Errorf("%s is said to have broken the glass", e.User.Username)
		}
	}
	if len(said) != 4 {
		t.Errorf("the audit log tells of a broken glass for %v, want all four policies", said)
	}
}
