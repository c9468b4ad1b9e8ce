// SPDX-License-Identifier: Apache-2.0

package onehub

import (
	"errors"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// lease is one that was made and renewed so long ago.
func lease(namespace string, made, renewed time.Duration) coordinationv1.Lease {
	return coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hub.chandler.dev", CreationTimestamp: metav1.NewTime(now.Add(-made)),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: "chandler", UID: "1"}}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(namespace + "-a"), RenewTime: &metav1.MicroTime{Time: now.Add(-renewed)}},
	}
}

func TestFirst(t *testing.T) {
	const h, s = time.Hour, time.Second
	going := lease("going", 9*h, s)
	going.DeletionTimestamp = &metav1.Time{Time: now}
	never := lease("never", 9*h, s)
	never.Spec.RenewTime = nil
	other := lease("other", 9*h, s)
	other.Name = "kube-scheduler"
	// A tenant may write a Lease, and name as its owner what is in his namespace.
	forged, nobodys, pods := lease("forged", 9*h, s), lease("nobodys", 9*h, s), lease("pods", 9*h, s)
	nobodys.OwnerReferences, pods.OwnerReferences[0].Kind = nil, "Pod"
	for name, tc := range map[string]struct {
		leases []coordinationv1.Lease
		want   string
	}{
		"nobody else":                          {nil, ""},
		"itself":                               {[]coordinationv1.Lease{lease("own", h, s)}, ""},
		"another, before it has a Lease":       {[]coordinationv1.Lease{lease("a", s, s)}, "a"},
		"a younger one":                        {[]coordinationv1.Lease{lease("own", 2*h, 2*s), lease("a", h, s)}, ""},
		"a younger one, while it was down":     {[]coordinationv1.Lease{lease("own", 20*h, 10*h), lease("a", h, s)}, ""},
		"a younger one that says it is ahead":  {[]coordinationv1.Lease{lease("own", 2*h, s), lease("a", h, -9*h)}, ""},
		"an older one":                         {[]coordinationv1.Lease{lease("own", h, s), lease("a", 2*h, s)}, "a"},
		"an older one that is down for now":    {[]coordinationv1.Lease{lease("own", h, s), lease("a", 2*h, h)}, "a"},
		"an older one that is gone":            {[]coordinationv1.Lease{lease("own", h, s), lease("a", 2*h, h+s)}, ""},
		"the oldest of several":                {[]coordinationv1.Lease{lease("own", h, s), lease("a", 2*h, s), lease("b", 3*h, s), lease("c", 2*h, s)}, "b"},
		"of the same second":                   {[]coordinationv1.Lease{lease("own", h, s), lease("a", h, s)}, "a"},
		"of the same second, a later name":     {[]coordinationv1.Lease{lease("own", h, s), lease("z", h, s)}, ""},
		"one that is being deleted":            {[]coordinationv1.Lease{lease("own", h, s), going}, ""},
		"one that nobody has ever held":        {[]coordinationv1.Lease{lease("own", h, s), never}, ""},
		"one whose owner is no hub":            {[]coordinationv1.Lease{lease("own", h, s), forged}, ""},
		"one whose owner is no hub, and a hub": {[]coordinationv1.Lease{lease("own", h, s), forged, lease("a", 2*h, s)}, "a"},
		"one that nobody owns":                 {[]coordinationv1.Lease{lease("own", h, s), nobodys, pods}, ""},
		"a Lease of something else":            {[]coordinationv1.Lease{other}, ""},
		"one without a holder: it is upgraded": {[]coordinationv1.Lease{func() coordinationv1.Lease { l := lease("a", h, s); l.Spec.HolderIdentity = nil; return l }()}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			first, err := First("own", tc.leases, now, func(r *authorizationv1.SubjectAccessReview) (bool, error) {
				a := r.Spec.ResourceAttributes
				if a.Namespace != "" || a.Verb != "create" || a.Group != "chandler.dev" || a.Resource != "addondeliveries" {
					t.Errorf("it asks for %+v", a)
				}
				return r.Spec.User != "system:serviceaccount:forged:chandler", nil
			})
			if err != nil {
				t.Error(err)
			}
			if first != nil {
				got = first.Namespace
			}
			if got != tc.want {
				t.Errorf("the first is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	l := lease("chandler-system", time.Hour, time.Second)
	l.Spec.HolderIdentity = ptr.To(strings.Repeat("x", 1000))
	got := Refused("second", &l)
	for _, want := range []string{"the hub in namespace second does nothing", "in namespace chandler-system", "delete that Lease"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
	if len(got) > 600 {
		t.Errorf("%d characters: anybody may have written the holder's name", len(got))
	}
}

func TestOnceAsksOnceAboutEachAccount(t *testing.T) {
	asked := map[string]int{}
	may := Once(func(r *authorizationv1.SubjectAccessReview) (bool, error) {
		asked[r.Spec.User]++
		if strings.HasSuffix(r.Spec.User, ":unknown") {
			return false, errors.New("the API server is overloaded")
		}
		return strings.HasSuffix(r.Spec.User, ":hub"), nil
	})
	for range 3 {
		for account, want := range map[string]bool{"hub": true, "default": false} {
			if is, err := may(Review("a", account)); err != nil || is != want {
				t.Errorf("%s: %v, %v", account, is, err)
			}
		}
		if _, err := may(Review("a", "unknown")); err == nil {
			t.Error("an error is forgotten")
		}
	}
	for user, n := range asked {
		if n != 1 {
			t.Errorf("asked %d times about %s", n, user)
		}
	}
}
