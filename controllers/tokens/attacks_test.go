// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/probe"
)

// forged is a Secret with the name of the kubeconfig copy that a member of the team writes.
func forged() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-team", Name: identity.KubeconfigCopy("hub", cluster),
		Labels: map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", cluster)}}}
}

// A member writes a delivery, a Secret and a HelmRelease by hand. The hub asks a cluster that is not the Team's for a token.
func TestForgedRenewal(t *testing.T) {
	m := newFixture(t)
	m.reg.Labels["env"] = "prod"   // never was the Team's
	m.rights.Namespace = "nowhere" // there never were rights on it
	m.objects = append(m.objects, forged(), release("c1"))
	copied, _, _ := m.reconcile(t)
	if len(m.asked) > 0 {
		t.Errorf("the hub asks a cluster that is not the Team's for a token of %v; the copy has %q", m.asked, copied.Data["value"])
	}
}

// The same, and the cluster has no such ServiceAccount: the hub asks every fifteen seconds, for ever, and warns of it at a
// registration that has nothing to do with the Team.
func TestForgedRenewalNeverEnds(t *testing.T) {
	m := newFixture(t)
	m.reg.Labels["env"] = "prod"
	m.rights.Namespace = "nowhere"
	m.answer = failure404()
	m.objects = append(m.objects, forged(), release("c1"))
	if _, again, told := m.reconcile(t); again > 0 || len(told.Events) > 0 {
		t.Errorf("again in %s, with %d events", again, len(told.Events))
	}
}

// A Team of another platform namespace has the same name and the same ServiceAccount on its clusters.
func TestNamesakeTeam(t *testing.T) {
	m := newFixture(t)
	m.platforms = []string{"flux-system", "platform-b"}
	m.reg.Labels["env"] = "prod"
	m.rights.Namespace = "platform-b" // the rights that are there are those of Team platform-b/shop
	other := m.team.DeepCopy()
	other.Namespace, other.Spec.HubNamespaces = "platform-b", []string{"other-team"}
	other.Spec.ClusterSelector.MatchLabels = map[string]string{"env": "prod"}
	m.objects = append(m.objects, other, forged(), release("c1"))
	copied, _, _ := m.reconcile(t)
	if len(m.asked) > 0 {
		t.Errorf("Team flux-system/shop gets a token of %v, which is the ServiceAccount of Team platform-b/shop: %s", m.asked, copied.Data["value"])
	}
}

// The rights have been made again, as after `kubectl delete addonset team-shop`: the ServiceAccount is another one, and every
// token of the former one is worth nothing.
func TestRightsMadeAgain(t *testing.T) {
	m := newFixture(t)
	m.rights.UID = "first"
	copied := m.written(t, time.Hour)
	m.asked = nil
	m.rights.UID = "second"
	m.rights.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
	m.objects = append(m.objects, copied, release("c1"))
	if _, again, _ := m.reconcile(t); len(m.asked) == 0 {
		t.Errorf("the dead token stays for %s", again)
	}
}

// The rights of the Team have gone. What is left keeps the hub asking.
func TestRightsHaveGone(t *testing.T) {
	m := newFixture(t)
	copied := m.written(t, 8*time.Hour)
	m.asked = nil
	m.reg.Labels["env"] = "prod"
	m.rights.Namespace = "nowhere"
	m.answer = failure404()
	m.objects = append(m.objects, copied, release("c1"))
	if _, again, told := m.reconcile(t); len(m.asked) > 0 {
		t.Errorf("asked, again in %s, %d events", again, len(told.Events))
	}
}

func failure404() *probe.Failure {
	return &probe.Failure{Reason: probe.ReasonNotReady, Message: "the server does not have the ServiceAccount (404)"}
}

// A cluster says that its token expires at the end of time. The hub cannot read back what it writes of that, so it asks again whenever it looks, and each
// answer changes the copy, which has it look again: if the cluster takes a second for each answer, without end.
func TestEndOfTime(t *testing.T) {
	var said metav1.Time
	if err := said.UnmarshalJSON([]byte(`"9999-12-31T23:59:59-23:59"`)); err != nil {
		t.Fatal(err)
	}
	m := newFixture(t)
	m.expires = said.Time
	copied := m.written(t, 2*time.Second)
	m.asked = nil
	m.objects = append(m.objects, copied)
	after, _, _ := m.reconcile(t)
	if len(m.asked) > 0 {
		t.Errorf("the hub asks again after two seconds, and writes %v after %v, which wakes it", after.Annotations, copied.Annotations)
	}
}

// A cluster's clock is sixty days ahead, or it says so. Its token lives for a day, and the hub renews it after more than that.
func TestClockAhead(t *testing.T) {
	m := newFixture(t)
	m.expires = m.now.Add(24*time.Hour + 60*24*time.Hour)
	if _, again, _ := m.reconcile(t); again > 24*time.Hour {
		t.Errorf("a token that was asked for 24 hours is renewed after %s", again)
	}
}

// The last delivery of the Team's sets to a cluster is on its way out, and the delivery controller has just dropped the copy, which wakes this controller. It writes
// the copy again, and no later pass would drop it.
func TestCopyComesBack(t *testing.T) {
	m := newFixture(t)
	m.delivery.Finalizers, m.delivery.DeletionTimestamp = []string{hubv1.Finalizer}, &metav1.Time{Time: now}
	m.delivery.Spec.Withdrawal = "x"
	copied, _, _ := m.reconcile(t)
	if copied != nil {
		t.Errorf("a token for nobody: %v, finalizers %v", copied.Labels, copied.Finalizers)
	}
}
