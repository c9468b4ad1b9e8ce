// SPDX-License-Identifier: Apache-2.0

package eventview_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/eventview"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/page"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func event(apiVersion, kind, namespace, name string, change func(*corev1.Event)) corev1.Event {
	e := corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Type: "Normal", Reason: "Happened", Message: "it\nhappened",
		InvolvedObject: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}}
	if change != nil {
		change(&e)
	}
	return e
}

func TestScope(t *testing.T) {
	const ours, helm = "chandler.dev/v1alpha1", "helm.toolkit.fluxcd.io/v2"
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "edge1"}, Spec: hubv1.ClusterRegistrationSpec{OriginRef: &hubv1.OriginReference{Kind: "Secret", Name: "origin"}}}
	key := types.NamespacedName{Namespace: "fleet", Name: "edge1"}
	delivery := hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base-edge1"},
		Status: hubv1.AddonDeliveryStatus{Addons: []hubv1.AddonStatus{{Name: "web", Kind: "HelmRelease", Object: "edge1-web"}, {Name: "none"}}}}
	set := eventview.Set(&hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base"}})
	set.Delivery(&delivery)
	scopes := map[string]*eventview.Scope{"hub": eventview.Hub(), "cluster": eventview.Cluster(reg, []hubv1.AddonDelivery{delivery}), "set": set}
	if got := fmt.Sprint(scopes["hub"].Namespaces, scopes["cluster"].Namespaces, set.Namespaces); got != "[] [fleet flux-system] [flux-system]" {
		t.Errorf("the namespaces are %s", got)
	}
	for _, c := range []struct {
		e    corev1.Event
		want string
	}{
		{event(ours, "ClusterRegistration", "fleet", "edge1", nil), "hub cluster"},
		{event(ours, "ClusterRegistration", "other", "edge1", nil), "hub"},
		{event("v1", "Secret", "fleet", "origin", nil), "cluster"},
		{event(ours, "AddonDelivery", "flux-system", "base-edge1", nil), "hub cluster set"},
		{event(ours, "AddonSet", "flux-system", "base", nil), "hub set"},
		{event(helm, "HelmRelease", "flux-system", "edge1-web", nil), "cluster"},
		{event(helm, "HelmRelease", "flux-system", "edge2-web", nil), ""},
		{event("v1", "Pod", "fleet", "edge1", nil), ""},
		{event(ours, "AddonDelivery", "shop", identity.Delivery("shop", key), nil), "hub cluster"}, // it is gone
		{event(ours, "AddonDelivery", "shop", identity.Delivery("shop", types.NamespacedName{Namespace: "other", Name: "edge1"}), nil), "hub"},
		{event(ours, "AddonDelivery", "shop", "edge1", nil), "hub"},
	} {
		var in []string
		for _, name := range []string{"hub", "cluster", "set"} {
			if scopes[name].Has(&c.e) {
				in = append(in, name)
			}
		}
		if got := strings.Join(in, " "); got != c.want {
			t.Errorf("an event of %+v is in %q, want %q", c.e.InvolvedObject, got, c.want)
		}
	}
}

// TestOrder: the newest is last, whichever field says when it was.
func TestOrder(t *testing.T) {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	events := []corev1.Event{
		event("", "AddonSet", "a", "series", func(e *corev1.Event) {
			e.CreationTimestamp = metav1.NewTime(ago(time.Hour))
			e.Series = &corev1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(ago(time.Minute))}
		}),
		event("", "AddonSet", "a", "old", func(e *corev1.Event) { e.LastTimestamp, e.Count = metav1.NewTime(ago(30*time.Minute)), 7 }),
		event("", "AddonSet", "a", "new", func(e *corev1.Event) { e.EventTime, e.Type = metav1.NewMicroTime(ago(time.Second)), "Warning" }),
	}
	eventview.Sort(events)
	var out strings.Builder
	list := &page.List{Columns: eventview.Columns}
	rows := make([]page.Row, len(events))
	for i := range events {
		rows[i] = eventview.Row(&events[i], noon)
	}
	if err := list.Write(&out, rows); err != nil {
		t.Fatal(err)
	}
	want := `LAST-SEEN   TYPE      REASON     OBJECT              MESSAGE
30m (x7)    Normal    Happened   AddonSet a/old      it happened
60s (x3)    Normal    Happened   AddonSet a/series   it happened
1s          Warning   Happened   AddonSet a/new      it happened
`
	if out.String() != want {
		t.Errorf("it shows\n%s\nwant\n%s", out.String(), want)
	}
}
