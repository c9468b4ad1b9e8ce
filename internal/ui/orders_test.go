// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/ui/uitest"
	"github.com/chandler-hub/chandler/internal/ui/view"
)

// waiting is a fleet whose first set waits for an approval, after its canary.
func waiting() *view.Fleet {
	f := uitest.Fleet(20, 2)
	s := f.Sets[0]
	s.Spec.Rollout = &hubv1.Rollout{Waves: []hubv1.Wave{{Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{hubv1.NameLabel: "cluster-0000"}}, Approval: "Manual"}}}
	r := s.Status.Rollout
	r.Phase, r.Wave, r.CompletedRevision, r.WaitingFor = hubv1.RolloutWaitingForApproval, "canary", "cert-manager-1111111111-e3", "an approval of wave canary"
	r.Waves = []hubv1.WaveStatus{{Name: "canary", Total: 1, Done: 1}, {Name: "rest", Total: 19}}
	for _, d := range f.Deliveries[2:] {
		if d.Spec.AddonSetRef.Name == s.Name {
			d.Spec.RevisionName, d.Status.ReadyRevision = r.CompletedRevision, r.CompletedRevision
		}
	}
	return f
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)

// form fills in the form that confirms an order.
func (s *served) form(path string) url.Values {
	s.t.Helper()
	code, body, _ := s.get(path)
	if code != http.StatusOK {
		s.t.Fatalf("%s: %d %s", path, code, body)
	}
	_, body, _ = strings.Cut(body, `<form method="post"`)
	out := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(body, -1) {
		out.Set(m[1], m[2])
	}
	return out
}

func (s *served) annotation(key string) string {
	s.t.Helper()
	set := &hubv1.AddonSet{}
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Namespace: "flux-system", Name: "cert-manager"}, set); err != nil {
		s.t.Fatal(err)
	}
	return set.Annotations[key]
}

const approval = "/sets/flux-system/cert-manager/order/approve"

// TestAnOrderIsConfirmed: a page says what it does to how many clusters, and changes nothing; its form does it, once.
func TestAnOrderIsConfirmed(t *testing.T) {
	f := waiting()
	s := serve(t, f, f.Sets[0])
	form := s.form(approval)
	_, body, _ := s.get(approval)
	for _, want := range []string{"wave canary is approved for revision cert-manager-2222222222-e3; wave rest begins", "Wave rest starts: 19 clusters, at most 19 at a time."} {
		if !strings.Contains(body, want) {
			t.Errorf("it does not say %q:\n%s", want, body)
		}
	}
	if got := s.annotation(hubv1.ApproveAnnotation); got != "" {
		t.Fatalf("to look at it approves %s", got)
	}
	code, body, _ := s.do(http.MethodPost, approval, map[string]string{"Origin": s.base}, form)
	if code != http.StatusOK || !strings.Contains(body, "wave canary is approved for revision") {
		t.Errorf("%d %s", code, body)
	}
	if got := s.annotation(hubv1.ApproveAnnotation); got != "cert-manager-2222222222-e3/canary" {
		t.Errorf("it is %q", got)
	}
}

// TestTheOneThingToDo: the order that a rollout waits for looks like it, and no other does; a command is there to copy; and the way to a
// removal warns.
func TestTheOneThingToDo(t *testing.T) {
	f := waiting()
	f.Sets[0].Status.HeldRemovals = &hubv1.HeldRemovals{Count: 3}
	began := metav1.NewTime(uitest.Now.Add(-321 * time.Second))
	f.Sets[0].Status.Removals = &hubv1.Removals{Counts: []hubv1.RemovalCount{{Time: began, Count: 1}}}
	s := serve(t, f, f.Sets[0])
	_, body, _ := s.get("/sets/flux-system/cert-manager")
	if !strings.Contains(body, `: 1 removal began</a> <span class="quiet">about 5m ago</span>`) {
		t.Error("the page says more exactly than the hub knows when a removal began")
	}
	for _, want := range []string{`<a class="main" href="` + approval + `">Approve`, `<a class="danger" href="` + heldList + `">Review the removals`,
		"<code>chandler rollout approve cert-manager -n flux-system --revision cert-manager-2222222222-e3</code>", "Last 24 hours"} {
		if strings.Count(body, want) != 1 {
			t.Errorf("it has %d times %q:\n%s", strings.Count(body, want), want, body)
		}
	}
	if n := strings.Count(body, `class="main"`); n != 1 {
		t.Errorf("%d orders look like the one to give", n)
	}
}

// TestAnOrderOfAnother: without the form of our own page, from another page, or about what has changed meanwhile, nothing happens.
func TestAnOrderOfAnother(t *testing.T) {
	f := waiting()
	s := serve(t, f, f.Sets[0])
	right := s.form(approval)
	without := func(key, value string) url.Values {
		out := url.Values{}
		for k := range right {
			out.Set(k, right.Get(k))
		}
		out.Set(key, value)
		return out
	}
	ours := map[string]string{"Origin": s.base}
	for name, tc := range map[string]struct {
		path   string
		header map[string]string
		form   url.Values
		want   int
	}{
		"NoForm":        {approval, ours, url.Values{}, 403},
		"WrongForm":     {approval, ours, without("form", "x"), 403},
		"NoOrigin":      {approval, nil, right, 403},
		"OtherOrigin":   {approval, map[string]string{"Origin": "https://evil.example"}, right, 403},
		"OtherPort":     {approval, map[string]string{"Origin": "http://127.0.0.1:1"}, right, 403},
		"CrossSite":     {approval, map[string]string{"Origin": s.base, "Sec-Fetch-Site": "cross-site"}, right, 403},
		"InTheAddress":  {approval + "?" + right.Encode(), ours, url.Values{}, 403},
		"Changed":       {approval, ours, without("seen", "cert-manager-1111111111-e3"), 409},
		"UnknownVerb":   {"/sets/flux-system/cert-manager/order/delete", ours, right, 404},
		"UnknownSet":    {"/sets/flux-system/none/order/approve", ours, right, 404},
		"NotASet":       {"/sets/flux-system/..%2Fx/order/approve", ours, right, 404},
		"NotNow":        {"/sets/flux-system/cert-manager/order/retry", ours, right, 409},
		"NotADuration":  {"/sets/flux-system/cert-manager/order/pause", ours, without("until", "soon"), 409},
		"FormTooLarge":  {approval, ours, without("reason", strings.Repeat("x", 1<<20)), 403},
		"ThroughStream": {"/live?at=" + url.QueryEscape(approval), ours, right, 405},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			if code, body, _ := s.do(http.MethodPost, tc.path, tc.header, tc.form); code != tc.want {
				t.Errorf("%d, want %d: %.300s", code, tc.want, body)
			}
		})
	}
	s.t = t
	if got := s.annotation(hubv1.ApproveAnnotation); got != "" {
		t.Errorf("it is approved: %q", got)
	}
}

// TestWhoMayNotOrder: the page says so, and offers nothing.
func TestWhoMayNotOrder(t *testing.T) {
	f := waiting()
	s := serve(t, f, f.Sets[0])
	s.forbid.Store(true)
	_, body, _ := s.get("/sets/flux-system/cert-manager")
	if !strings.Contains(body, "You may not patch this set") || strings.Contains(body, "order/approve") {
		t.Errorf("%s", body)
	}
	form := s.form(approval)
	if code, body, _ := s.do(http.MethodPost, approval, map[string]string{"Origin": s.base}, form); code != http.StatusConflict || !strings.Contains(body, "you may not patch AddonSet") {
		t.Errorf("%d %s", code, body)
	}
}

// TestARolloutIsShown: its waves, what it waits for, what can be ordered, and each cluster.
func TestARolloutIsShown(t *testing.T) {
	f := waiting()
	s := serve(t, f, f.Sets[0])
	_, body, _ := s.get("/sets/flux-system/cert-manager")
	for _, want := range []string{"WaitingForApproval", "an approval of wave canary", `aria-current="step"`, "1 done", "order/approve", "order/pause", "cluster-0019"} {
		if !strings.Contains(body, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if strings.Contains(body, "order/retry") || strings.Contains(body, "order/resume") {
		t.Error("it offers what cannot be ordered now")
	}
	if _, body, _ := s.get("/sets"); !strings.Contains(body, "flux-system/cilium") || strings.Index(body, "cert-manager") > strings.Index(body, "cilium") {
		t.Errorf("who waits for somebody does not come first: %s", body)
	}
}

// TestAnOrderToACompleteRollout: one that is in no wave can be paused as well.
func TestAnOrderToACompleteRollout(t *testing.T) {
	f := uitest.Fleet(20, 2)
	s := serve(t, f, f.Sets[0])
	const pause = "/sets/flux-system/cert-manager/order/pause"
	form := s.form(pause)
	form.Set("reason", "a freeze")
	if code, body, _ := s.do(http.MethodPost, pause, map[string]string{"Origin": s.base}, form); code != http.StatusOK || !strings.Contains(body, "paused; no cluster") {
		t.Errorf("%d %s", code, body)
	}
}

// TestAnEditMeanwhileAsksAgain: whoever approved one cluster has not approved nineteen, though wave and revision are the same.
func TestAnEditMeanwhileAsksAgain(t *testing.T) {
	for name, edit := range map[string]func(*hubv1.AddonSet){
		"Waves":     func(s *hubv1.AddonSet) { s.Generation++; s.Spec.Rollout.Waves = s.Spec.Rollout.Waves[:1] },
		"Phase":     func(s *hubv1.AddonSet) { s.Status.Rollout.Phase = hubv1.RolloutPaused },
		"Completed": func(s *hubv1.AddonSet) { s.Status.Rollout.CompletedRevision = "cert-manager-0000000000-e2" },
	} {
		t.Run(name, func(t *testing.T) {
			f := waiting()
			f.Sets[0].Spec.Rollout.Waves = append(f.Sets[0].Spec.Rollout.Waves, hubv1.Wave{Name: "second", Approval: "Manual",
				ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{hubv1.NameLabel: "cluster-0001"}}})
			s := serve(t, f, f.Sets[0])
			form := s.form(approval)
			set := &hubv1.AddonSet{}
			must.Do(t, s.hub.Get(t.Context(), client.ObjectKeyFromObject(f.Sets[0]), set))
			edit(set)
			wanted := set.DeepCopy()
			must.Do(t, s.hub.Update(t.Context(), set))
			wanted.ResourceVersion = set.ResourceVersion
			must.Do(t, s.hub.Status().Update(t.Context(), wanted))
			code, body, _ := s.do(http.MethodPost, approval, map[string]string{"Origin": s.base}, form)
			if got := s.annotation(hubv1.ApproveAnnotation); got != "" || code != http.StatusConflict || !strings.Contains(body, "has changed since you looked") {
				t.Errorf("%d, approved is %q", code, got)
			}
		})
	}
}

// TestAnOrderSeesOneLine: what a form sends back is what was seen, whatever of it is empty.
func TestAnOrderSeesOneLine(t *testing.T) {
	for _, status := range []hubv1.AddonSetStatus{{}, {Rollout: &hubv1.RolloutStatus{}}, {Revision: "a-1-e1", Rollout: &hubv1.RolloutStatus{Revision: "a-1-e1"}}} {
		if seen := view.Seen(&hubv1.AddonSet{Status: status}); seen != excerpt.Line(seen) {
			t.Errorf("%q", seen)
		}
	}
}

// TestAnApprovalOfAnotherWave: the page counts the clusters after the wave that it approves.
func TestAnApprovalOfAnotherWave(t *testing.T) {
	f := waiting()
	f.Sets[0].Spec.Rollout.Waves = append(f.Sets[0].Spec.Rollout.Waves, hubv1.Wave{Name: "second", Approval: "Manual",
		ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{hubv1.NameLabel: "cluster-0001"}}})
	s := serve(t, f, f.Sets[0])
	for address, want := range map[string]string{approval: "Wave second starts: 1 cluster,", approval + "?wave=second": "Wave rest starts: 18 clusters,"} {
		if _, body, _ := s.get(address); !strings.Contains(body, want) {
			t.Errorf("%s does not say %q: %s", address, want, body)
		}
	}
}

// TestAnUndoNamesItsTarget: the form goes to the revision that the page has shown, also if another one is the last completed one by then.
func TestAnUndoNamesItsTarget(t *testing.T) {
	f := uitest.Fleet(20, 1)
	set := f.Sets[0]
	objects := []client.Object{set}
	for i, name := range []string{"cert-manager-0000000000-e1", "cert-manager-1111111111-e2", "cert-manager-2222222222-e3"} {
		objects = append(objects, &appsv1.ControllerRevision{Revision: int64(i + 1), Data: runtime.RawExtension{Raw: []byte(`{}`)},
			ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name, Labels: map[string]string{hubv1.AddonSetLabel: "cert-manager"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, hubv1.GroupVersion.WithKind("AddonSet"))}}})
	}
	set.Status.Rollout.CompletedRevision, set.Status.Rollout.Phase = "cert-manager-0000000000-e1", hubv1.RolloutProgressing
	s := serve(t, f, objects...)
	const undo = "/sets/flux-system/cert-manager/order/undo"
	form := s.form(undo)
	if got := form.Get("to"); got != "cert-manager-0000000000-e1" {
		t.Errorf("the form goes to %q", got)
	}
	if code, _, _ := s.do(http.MethodPost, undo, map[string]string{"Origin": s.base}, form); code != http.StatusOK {
		t.Errorf("%d", code)
	}
	if got := s.annotation(hubv1.UndoAnnotation); !strings.HasSuffix(got, "/cert-manager-0000000000-e1") {
		t.Errorf("it is %q", got)
	}
}

// TestWhatIsNotKnownIsNotCounted: a page that has read one namespace does not say how many clusters a set of the platform has.
func TestWhatIsNotKnownIsNotCounted(t *testing.T) {
	f := waiting()
	f.Namespace, f.Registrations = "flux-system", nil
	s := serve(t, f, f.Sets[0])
	const page = "/sets/flux-system/cert-manager"
	counts := regexp.MustCompile(`[0-9]+ (clusters?\b|at once|done|to come)`)
	for _, path := range []string{page, approval, page + "/order/pause"} {
		_, body, _ := s.get(path)
		if got := counts.FindString(body); got != "" || !strings.Contains(body, "not known how many clusters: only namespace flux-system was read") {
			t.Errorf("%s says %q: %s", path, got, body)
		}
	}
	if code, _, _ := s.do(http.MethodPost, approval, map[string]string{"Origin": s.base}, s.form(approval)); code != http.StatusOK || s.annotation(hubv1.ApproveAnnotation) == "" {
		t.Errorf("it cannot be ordered: %d", code)
	}
}
