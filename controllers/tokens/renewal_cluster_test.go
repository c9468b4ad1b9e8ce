// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/token"
)

// A cluster that lies, or fails, is asked now and then, and nothing that it says gets into the Secret but a token of the account.
func TestOwnTokenOfALiar(t *testing.T) {
	const secret = "hunter2"
	good := func(m *renewable) string { return jwt(ownAccount, m.clock.Now(), m.clock.Now().Add(time.Hour)) }
	for name, tc := range map[string]struct {
		answer func(*renewable) (string, time.Time, *probe.Failure)
		writes bool
		apart  time.Duration
	}{
		"GivesNone": {func(*renewable) (string, time.Time, *probe.Failure) {
			return "", time.Time{}, &probe.Failure{Message: "refused"}
		}, false, firstRetry},
		"OfAnotherAccount": {func(*renewable) (string, time.Time, *probe.Failure) {
			return jwt("kube-system:"+secret, now, now.Add(time.Hour)), now.Add(time.Hour), nil
		}, false, firstRetry},
		"NoToken": {func(*renewable) (string, time.Time, *probe.Failure) { return secret, now.Add(time.Hour), nil }, false, firstRetry},
		"MoreThanAToken": {func(m *renewable) (string, time.Time, *probe.Failure) {
			return good(m) + "}}, {name: v, user: {token: " + secret, now.Add(time.Hour), nil
		}, false, firstRetry},
		"AnotherServer": {func(m *renewable) (string, time.Time, *probe.Failure) {
			return good(m) + "}}]\nclusters: [{name: c, cluster: {server: https://203.0.113.9}}]\nx: [{y: {z: " + secret, now.Add(time.Hour), nil
		}, false, firstRetry},
		"ALineBreak": {func(m *renewable) (string, time.Time, *probe.Failure) { return good(m) + "\n", now.Add(time.Hour), nil }, false, firstRetry},
		"ExpiredLongAgo": {func(m *renewable) (string, time.Time, *probe.Failure) {
			return jwt(ownAccount, m.clock.Now(), now.AddDate(-9, 0, 0)), now.AddDate(-9, 0, 0), nil
		}, true, token.Apart},
		"NeverExpires": {func(m *renewable) (string, time.Time, *probe.Failure) {
			return jwt(ownAccount, m.clock.Now(), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), nil
		}, true, tenDays},
	} {
		t.Run(name, func(t *testing.T) {
			m := newRenewable(t, nil)
			m.clock.SetTime(now.Add(tenDays))
			m.answer = func(types.NamespacedName, time.Duration) (string, time.Time, *probe.Failure) { return tc.answer(m) }
			after, again := m.look(t)
			if (m.writes > 0) != tc.writes || again != tc.apart {
				t.Errorf("%d writes, again in %s", m.writes, again)
			}
			if told := m.events(); strings.Contains(string(after.Data["value"])+strings.Join(told, ""), secret) || tc.writes != (len(told) == 0) {
				t.Errorf("told %q, the Secret has\n%s", told, after.Data["value"])
			}
			for range 50 { // whatever wakes the controller
				m.pass(t, time.Second)
				m.look(t)
			}
			if len(m.asked) > 1+int(50*time.Second/tc.apart) {
				t.Errorf("asked %d times within a minute", len(m.asked))
			}
		})
	}
}

// A cluster gives no tokens for a while, as in a long upgrade of its control plane, or it does not answer at all. It is asked again
// before the token is over, however often it has failed.
func TestOwnTokenIsAskedForInTime(t *testing.T) {
	const life = time.Hour
	for name, well := range map[string]time.Duration{"Soon": 21 * time.Minute, "Late": 51 * time.Minute, "AtTheEnd": 58 * time.Minute} {
		for _, noted := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, noted %t", name, noted), func(t *testing.T) {
				m := newRenewable(t, func(m *renewable) {
					raw := []byte(registered(jwt(ownAccount, now, now.Add(life))))
					m.secret.Data["value"], m.secret.Annotations = raw, map[string]string{}
					if noted {
						m.secret.Annotations = token.Notes{Issued: now, Expires: now.Add(life), Fingerprint: parse(t, raw).Fingerprint()}.Annotations()
					}
					m.secret.Annotations[hubv1.RenewTokenAnnotation] = "1h"
				})
				m.answer = func(a types.NamespacedName, l time.Duration) (string, time.Time, *probe.Failure) {
					at := m.clock.Now()
					if at.Sub(now) < well {
						return "", time.Time{}, &probe.Failure{Reason: probe.ReasonNotReady, Message: "later"}
					}
					return jwt(a.Namespace+":"+a.Name, at, at.Add(l)), at.Add(l), nil
				}
				for m.clock.Now().Sub(now) < life {
					_, again := m.look(t)
					if m.writes > 0 {
						if len(m.asked) > 60 {
							t.Errorf("asked %d times", len(m.asked))
						}
						return
					}
					m.clock.SetTime(m.clock.Now().Add(again))
					m.events()
				}
				t.Errorf("the cluster gives tokens after %s, and the hub has asked %d times, and not since", well, len(m.asked))
			})
		}
	}
}

// A cluster that has been away is asked at once, and one that has just given a token is not.
func TestOwnTokenOfAClusterThatComesBack(t *testing.T) {
	for name, gives := range map[string]bool{"GaveNone": false, "GaveOne": true} {
		t.Run(name, func(t *testing.T) {
			m := newRenewable(t, nil)
			m.clock.SetTime(now.Add(tenDays))
			if !gives {
				m.answer = func(types.NamespacedName, time.Duration) (string, time.Time, *probe.Failure) {
					return "", time.Time{}, &probe.Failure{Message: "refused"}
				}
			}
			m.look(t)
			for _, online := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionTrue} {
				s := &corev1.Secret{}
				must.Do(t, m.api.Get(t.Context(), client.ObjectKeyFromObject(m.secret), s))
				s.Data = m.secret.Data // the old token is put back
				must.Do(t, m.api.Update(t.Context(), s))
				status.Set(m.reg, hubv1.ReachableCondition, online, "Test", "", m.clock.Now())
				m.pass(t, time.Second)
				m.look(t)
			}
			if want := map[bool]int{false: 2, true: 1}[gives]; len(m.asked) != want {
				t.Errorf("asked %d times, want %d", len(m.asked), want)
			}
		})
	}
}

// The clock of a cluster is hours away, and its tokens live for less time than that. They are renewed after a third of it, as those of
// ten minutes are.
func TestOwnTokenOfAWrongClock(t *testing.T) {
	for _, skew := range []time.Duration{-3 * time.Hour, 0, 3 * time.Hour} {
		for _, life := range []time.Duration{token.Shortest, time.Hour} {
			m := newRenewable(t, nil)
			m.clock.SetTime(now.Add(tenDays))
			m.answer = func(types.NamespacedName, time.Duration) (string, time.Time, *probe.Failure) {
				at := m.clock.Now().Add(skew)
				return jwt(ownAccount, at, at.Add(life)), at.Add(life), nil
			}
			for range 3 {
				_, again := m.look(t)
				if again != life/3 {
					t.Errorf("the clock is %s ahead: a token of %s is renewed after %s", skew, life, again)
				}
				m.pass(t, again)
			}
			if len(m.asked) != 3 {
				t.Errorf("the clock is %s ahead: asked %d times for tokens of %s", skew, len(m.asked), life)
			}
		}
	}
}

// The cluster gives a token to which it does not answer. The old one stays, and somebody is told; the cluster is asked again, and what
// works then is written.
func TestOwnTokenThatDoesNotWork(t *testing.T) {
	m := newRenewable(t, nil)
	m.clock.SetTime(now.Add(tenDays))
	m.refuses = &probe.Failure{Reason: probe.ReasonUnauthorized, Message: "it does not accept the credential (401)"}
	after, again := m.look(t)
	if m.writes > 0 || again != firstRetry || string(after.Data["value"]) != string(m.secret.Data["value"]) {
		t.Errorf("%d writes, again in %s", m.writes, again)
	}
	if told := strings.Join(m.events(), ""); !strings.Contains(told, "the old one stays") || !strings.Contains(told, "(401)") {
		t.Errorf("told %q", told)
	}
	m.refuses = nil
	m.pass(t, again)
	after, _ = m.look(t)
	if is := parse(t, after.Data["value"]).RESTConfig().BearerToken; m.writes != 1 || len(m.tried) != 2 || m.tried[1] != is || m.tried[0] == is {
		t.Errorf("%d writes of what was tried %d times; it tried %q, and wrote %q", m.writes, len(m.tried), m.tried, is)
	}
}
