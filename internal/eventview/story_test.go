// SPDX-License-Identifier: Apache-2.0

package eventview_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/eventview"
)

func flux(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func story(t *testing.T) *eventview.Story {
	t.Helper()
	at := metav1.NewTime(noon.Add(-20 * time.Minute))
	s := &eventview.Story{Addon: "web", Registration: &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "edge1"},
		Spec: hubv1.ClusterRegistrationSpec{OriginRef: &hubv1.OriginReference{Kind: "Secret", Name: "origin"}}}}
	s.Registration.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "AddonsFailed", Message: "web failed", LastTransitionTime: at}}
	s.Deliveries = []hubv1.AddonDelivery{{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base-edge1"},
		Spec: hubv1.AddonDeliverySpec{AddonSetRef: hubv1.DeliveredSetReference{Name: "base"}},
		Status: hubv1.AddonDeliveryStatus{Addons: []hubv1.AddonStatus{
			{Name: "web", Kind: "HelmRelease", Object: "edge1-web", State: hubv1.AddonFailed, Reason: "UpgradeFailed", Message: "no such image", Version: "1.2.2", Since: &at},
			{Name: "dns", Kind: "Kustomization", Object: "edge1-dns", State: hubv1.AddonReady, Since: &at}}}}}
	s.Flux = []*unstructured.Unstructured{
		flux(t, `{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: flux-system, name: edge1-web}, spec: {values: {password: hunter2}}, status: {
  conditions: [{type: Ready, status: "False", reason: UpgradeFailed, message: no such image, lastTransitionTime: "2026-06-01T11:41:00Z"},
    {type: Released, status: "False", reason: UpgradeFailed, message: no such image, lastTransitionTime: "2026-06-01T11:41:00Z"},
    {type: Remediated, status: "True", reason: RollbackSucceeded, message: back, lastTransitionTime: "2026-06-01T11:42:00Z"}],
  history: [
    {name: web, namespace: apps, version: 2, chartName: web, chartVersion: 1.2.3, status: failed, lastDeployed: "2026-06-01T11:40:30Z"},
    {name: web, namespace: apps, version: 1, chartName: web, chartVersion: 1.2.2, status: superseded, lastDeployed: "2026-06-01T10:00:00Z"}]}}`),
		flux(t, `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: flux-system, name: other}, status: {
  history: [{digest: "sha256:1", firstReconciled: "2026-06-01T09:00:00Z", lastReconciled: "2026-06-01T11:00:00Z", lastReconciledDuration: 1s, lastReconciledStatus: ReconciliationSucceeded, totalReconciliations: 9, metadata: {revision: "main@sha1:3affad9b"}}]}}`),
		flux(t, `{apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, metadata: {namespace: flux-system, name: charts}, status: {conditions: [
  {type: Ready, status: "True", reason: Succeeded, message: stored, lastTransitionTime: "2026-05-30T00:00:00Z"}, nonsense]}}`),
	}
	return s
}

// TestStory: what the objects say of the past, in order, of this add-on alone.
func TestStory(t *testing.T) {
	var out strings.Builder
	for _, e := range story(t).Entries() {
		mark := " "
		if e.Bad {
			mark = "!"
		}
		fmt.Fprintln(&out, mark, strings.Join(e.Row().Cells, " | "))
	}
	want := `  2026-05-30T00:00:00Z | HelmRepository flux-system/charts | Ready=True | Succeeded: stored
  2026-06-01T09:00:00Z | Kustomization flux-system/other | applied | main@sha1:3affad9b, ReconciliationSucceeded
  2026-06-01T10:00:00Z | HelmRelease flux-system/edge1-web | revision 1 | Helm release apps/web: chart web 1.2.2, superseded
! 2026-06-01T11:40:00Z | AddonDelivery flux-system/base-edge1 | Failed (UpgradeFailed) | add-on "web", version 1.2.2: no such image
! 2026-06-01T11:40:00Z | ClusterRegistration fleet/edge1 | Ready=False | AddonsFailed: web failed
! 2026-06-01T11:40:30Z | HelmRelease flux-system/edge1-web | revision 2 | Helm release apps/web: chart web 1.2.3, failed
! 2026-06-01T11:41:00Z | HelmRelease flux-system/edge1-web | Ready=False Released=False | UpgradeFailed: no such image
  2026-06-01T11:42:00Z | HelmRelease flux-system/edge1-web | Remediated=True | RollbackSucceeded: back
`
	if out.String() != want {
		t.Errorf("it tells\n%s\nwant\n%s", out.String(), want)
	}
}

// TestTold: events of this add-on, its sources, its set and its cluster belong to the story, and those of another add-on do not.
func TestTold(t *testing.T) {
	const ours, helm = "chandler.dev/v1alpha1", "helm.toolkit.fluxcd.io/v2"
	about := func(kind, name, message string) func(*corev1.Event) {
		return func(e *corev1.Event) {
			e.Message, e.CreationTimestamp = message, metav1.NewTime(noon)
			if name != "" {
				e.Related = &corev1.ObjectReference{Kind: kind, Namespace: "flux-system", Name: name}
			}
		}
	}
	for _, c := range []struct {
		e    corev1.Event
		want bool
	}{
		{event(ours, "ClusterRegistration", "fleet", "edge1", nil), true},
		{event(ours, "ClusterRegistration", "fleet", "edge2", nil), false},
		{event("v1", "Secret", "fleet", "origin", nil), true},
		{event(ours, "AddonSet", "flux-system", "base", nil), true},
		{event(ours, "AddonDelivery", "flux-system", "base-edge1", about("HelmRelease", "edge1-web", `add-on "web": failed`)), true},
		{event(ours, "AddonDelivery", "flux-system", "base-edge1", about("Kustomization", "edge1-dns", "its HelmRelease takes over")), false},
		{event(ours, "AddonDelivery", "flux-system", "base-edge1", about("", "", `add-on "dns" is Ready again`)), false},
		{event(ours, "AddonDelivery", "flux-system", "base-edge1", about("", "", "all add-ons are Ready")), true},
		{event(helm, "HelmRelease", "flux-system", "edge1-web", nil), true},
		{event(helm, "HelmRelease", "flux-system", "edge2-web", nil), false},
		{event("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "edge1-dns", nil), false},
		{event("source.toolkit.fluxcd.io/v1", "HelmRepository", "flux-system", "charts", nil), true},
	} {
		if got := story(t).Told(&c.e); (len(got) == 1) != c.want {
			t.Errorf("of %+v it tells %v", c.e.InvolvedObject, got)
		}
	}
	many := event(ours, "AddonSet", "flux-system", "base", func(e *corev1.Event) { e.Count, e.Type = 3, "Warning" })
	if got := story(t).Told(&many); len(got) != 1 || got[0].What != "Happened (x3)" || !got[0].Bad || got[0].Row().Cells[3] != "it happened" {
		t.Errorf("it tells %+v", got)
	}
}
