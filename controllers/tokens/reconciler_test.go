// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"context"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/credential"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/status"
)

var (
	now     = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	cluster = types.NamespacedName{Namespace: "fleet", Name: "one"}
)

const adminConfig = `{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "https://192.0.2.7:6443", insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: the-admins}}]}`

// controller is a hub with a Team that has one cluster, and a set that delivers there.
type fixture struct {
	reg      *hubv1.ClusterRegistration
	team     *hubv1.Team
	rights   *hubv1.AddonDelivery
	delivery *hubv1.AddonDelivery
	objects  []client.Object
	now      time.Time
	answer   *probe.Failure
	asked    []types.NamespacedName
	with     string
	// admin is the registration's kubeconfig.
	admin string
	// platforms are the platform namespaces, if there are others.
	platforms []string
	// expires is what the cluster says of its token, if it says something of its own.
	expires time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	config := parse(t, []byte(adminConfig))
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name, Labels: map[string]string{"env": "staging"}}}
	reg.Status.ClusterUID = "c1"
	reg.Status.Credential = &hubv1.CredentialStatus{SecretName: "admin", Key: "value", Fingerprint: config.Fingerprint(), TargetFingerprint: config.TargetFingerprint()}
	status.Set(reg, hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.ProbeSucceededReason, "", now)
	team := &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "shop"}}
	team.Spec = hubv1.TeamSpec{HubNamespaces: []string{"shop-team"}, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "staging"}},
		Namespaces: []hubv1.TeamNamespace{{Name: "shop-apps"}}}
	delivery := func(namespace, set string) *hubv1.AddonDelivery {
		return &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: identity.Delivery(set, cluster)}, Spec: hubv1.AddonDeliverySpec{
			AddonSetRef:     hubv1.DeliveredSetReference{Name: set},
			RegistrationRef: hubv1.RegistrationReference{Namespace: cluster.Namespace, Name: cluster.Name},
		}}
	}
	m := &fixture{reg: reg, team: team, rights: delivery("flux-system", "team-shop"), delivery: delivery("shop-team", "shop"), now: now, admin: adminConfig}
	m.rights.Status.Addons = []hubv1.AddonStatus{{Name: "team-shop", State: hubv1.AddonReady}}
	return m
}

func rules() kubeconfig.Rules { return kubeconfig.Rules{AllowInsecureTLS: true, AllowProxy: true} }

// adminSecret is the Secret with the kubeconfig of the cluster.
func (m *fixture) adminSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "admin"}, Data: map[string][]byte{"value": []byte(m.admin)}}
}

// reconcile returns the copy afterwards, nil if there is none, and after how long the controller looks again.
func (m *fixture) reconcile(t *testing.T) (*corev1.Secret, time.Duration, *events.FakeRecorder) {
	t.Helper()
	b := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(append(m.objects, m.reg, m.team, m.rights, m.delivery, m.adminSecret())...)
	api, told := b.Build(), events.NewFakeRecorder(10)
	r := &Reconciler{Client: api, Live: api, Clock: clocktesting.NewFakePassiveClock(m.now), Recorder: told,
		Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: append([]string{"flux-system"}, m.platforms...)}, Rules: rules()},
		Token: func(_ context.Context, cfg *kubeconfig.Config, account types.NamespacedName, lifetime time.Duration, _ probe.Options) (string, time.Time, *probe.Failure) {
			m.asked, m.with = append(m.asked, account), cfg.RESTConfig().BearerToken
			if m.answer != nil {
				return "", time.Time{}, m.answer
			}
			if !m.expires.IsZero() {
				return "the-teams", m.expires, nil
			}
			return "the-teams", m.now.Add(lifetime), nil
		}}
	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: cluster})
	if err != nil {
		t.Fatal(err)
	}
	copied := &corev1.Secret{}
	err = api.Get(t.Context(), types.NamespacedName{Namespace: "shop-team", Name: identity.KubeconfigCopy("hub", cluster)}, copied)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return nil, result.RequeueAfter, told
	}
	return copied, result.RequeueAfter, told
}

// written is a copy with a token that the hub asked for a while ago.
func (m *fixture) written(t *testing.T, ago time.Duration) *corev1.Secret {
	t.Helper()
	before := *m
	before.now = m.now.Add(-ago)
	copied, _, _ := before.reconcile(t)
	if copied == nil {
		t.Fatal("there is no copy")
	}
	copied.ResourceVersion = ""
	return copied
}

// A Team gets a token when its rights are on the cluster, and not before, and nothing of the admin's with it.
func TestFirstToken(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*fixture)
		want   bool
	}{
		"RightsAreReady":    {func(*fixture) {}, true},
		"RightsAreNotReady": {func(m *fixture) { m.rights.Status.Addons[0].State = hubv1.AddonProgressing }, false},
		"NoRights":          {func(m *fixture) { m.rights.Namespace = "elsewhere" }, false},
		"DoesNotAnswer": {func(m *fixture) {
			status.Set(m.reg, hubv1.ReachableCondition, metav1.ConditionFalse, "Test", "", now)
		}, false},
		"NotTheTeams": {func(m *fixture) { m.reg.Labels["env"] = "prod" }, false},
		"TeamIsBeingDeleted": {func(m *fixture) {
			m.team.Finalizers, m.team.DeletionTimestamp = []string{hubv1.Finalizer}, &metav1.Time{Time: now}
		}, false},
		"TeamOfATenant": {func(m *fixture) { m.team.Namespace = "mallory" }, false},
		"ObjectsOfAnotherCluster": {func(m *fixture) {
			m.objects = append(m.objects, release("c0"))
		}, false},
		"ObjectsOfThisCluster": {func(m *fixture) { m.objects = append(m.objects, release("c1")) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newFixture(t)
			tc.change(m)
			copied, again, _ := m.reconcile(t)
			if (copied != nil) != tc.want {
				t.Fatalf("there is a copy: %t", copied != nil)
			}
			if name == "ObjectsOfAnotherCluster" && again != otherTime {
				t.Errorf("looks again in %s, and nobody tells it when they are gone", again)
			}
			if !tc.want {
				return
			}
			if m.asked[0] != (types.NamespacedName{Namespace: "chandler-shop", Name: "shop"}) || m.with != "the-admins" {
				t.Errorf("asked for %v with %q", m.asked, m.with)
			}
			if text := string(copied.Data["value"]); strings.Contains(text, "the-admins") || !strings.Contains(text, "the-teams") {
				t.Errorf("the copy has %s", text)
			}
			if again != 8*time.Hour {
				t.Errorf("again in %s", again)
			}
		})
	}
}

func release(uid string) *helmv2.HelmRelease {
	return &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-team", Name: "x",
		Labels: map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", cluster)}, Annotations: map[string]string{hubv1.ClusterUIDAnnotation: uid}}}
}

// A token is renewed in time, and for another endpoint at once; also after the Team has lost the cluster, while
// something of it is there.
func TestRenewal(t *testing.T) {
	for name, tc := range map[string]struct {
		ago    time.Duration
		change func(*fixture, *corev1.Secret)
		want   bool
		again  time.Duration
	}{
		"Fresh":              {ago: time.Hour, want: false, again: 7 * time.Hour},
		"AThirdIsOver":       {ago: 8 * time.Hour, want: true, again: 8 * time.Hour},
		"Expired":            {ago: 30 * time.Hour, want: true, again: 8 * time.Hour},
		"OtherEndpoint":      {ago: time.Hour, change: func(m *fixture, _ *corev1.Secret) { m.reg.Status.ClusterUID = "c2" }, want: true, again: 8 * time.Hour},
		"SomebodyEditsIt":    {ago: time.Hour, change: func(_ *fixture, s *corev1.Secret) { s.Annotations[hubv1.TokenIssuedAnnotation] = "x" }, want: true, again: 8 * time.Hour},
		"ItWasTheAdmins":     {ago: time.Hour, change: func(_ *fixture, s *corev1.Secret) { s.Labels[hubv1.CopyLabel] = "true" }, want: true, again: 8 * time.Hour},
		"LostAndNothingLeft": {ago: 8 * time.Hour, change: func(m *fixture, _ *corev1.Secret) { m.reg.Labels["env"] = "prod" }, want: false},
		"LostAndSomethingLeft": {ago: 8 * time.Hour, change: func(m *fixture, _ *corev1.Secret) {
			m.reg.Labels["env"] = "prod"
			m.delivery.Status.Addons = []hubv1.AddonStatus{{Name: "x", State: hubv1.AddonReady}}
			m.objects = append(m.objects, release("c1"))
		}, want: true, again: 8 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			m := newFixture(t)
			copied := m.written(t, tc.ago)
			m.asked = nil
			if tc.change != nil {
				tc.change(m, copied)
			}
			m.objects = append(m.objects, copied)
			after, again, _ := m.reconcile(t)
			if len(m.asked) > 0 != tc.want || again != tc.again {
				t.Errorf("asked %v, again in %s", m.asked, again)
			}
			if tc.want && after.Annotations[hubv1.TokenIssuedAnnotation] != now.Format(time.RFC3339) {
				t.Errorf("written %v", after.Annotations)
			}
		})
	}
}

// A cluster that gives no token is asked again, and somebody is told, without what the server has answered.
func TestNoToken(t *testing.T) {
	m := newFixture(t)
	m.answer = &probe.Failure{Reason: probe.ReasonForbidden, Message: "the credential's user may not do that (403)"}
	copied, again, told := m.reconcile(t)
	if copied != nil || again != firstRetry {
		t.Errorf("copy %v, again in %s", copied, again)
	}
	if got := <-told.Events; !strings.Contains(got, hubv1.TokenFailedEvent) || !strings.Contains(got, "chandler-shop/shop") || !strings.Contains(got, "(403)") {
		t.Errorf("told %q", got)
	}
}

// A Team's members read its kubeconfig. The user and password of a proxy are the platform's: where there are any, a Team gets none.
func TestProxyCredential(t *testing.T) {
	for proxy, want := range map[string]bool{
		"http://192.0.2.9:3128": true, "http://platform:hunter2@192.0.2.9:3128": false, "socks5://hunter2@192.0.2.9:1080": false,
	} {
		m := newFixture(t)
		m.admin = strings.Replace(adminConfig, "insecure-skip-tls-verify", `proxy-url: "`+proxy+`", insecure-skip-tls-verify`, 1)
		config := parse(t, []byte(m.admin))
		m.reg.Status.Credential.Fingerprint = config.Fingerprint()
		copied, again, told := m.reconcile(t)
		if (copied != nil) != want || (len(m.asked) > 0) != want {
			t.Errorf("%s: the copy has %s, asked %v", proxy, copied.Data["value"], m.asked)
		}
		if want {
			continue
		}
		if again != firstRetry {
			t.Errorf("%s: again in %s", proxy, again)
		}
		select {
		case got := <-told.Events:
			if !strings.Contains(got, hubv1.TokenFailedEvent) || !strings.Contains(got, "Team flux-system/shop") || !strings.Contains(got, "proxy-url") ||
				strings.Contains(got, "hunter2") {
				t.Errorf("told %q", got)
			}
		default:
			t.Errorf("%s: nobody is told why", proxy)
		}
	}
}

// The kubeconfig that is published is gone. It may come back as it was, which changes nothing in what the registration says of it but that it is valid.
func TestKubeConfigComesBack(t *testing.T) {
	for name, tc := range map[string]struct {
		valid metav1.ConditionStatus
		again time.Duration
	}{
		"before the registration controller has looked": {metav1.ConditionTrue, credential.LostTime},
		"it says so": {metav1.ConditionFalse, 0},
	} {
		m := newFixture(t)
		m.reg.Status.Credential.Fingerprint = "another one's"
		status.Set(m.reg, hubv1.KubeConfigValidCondition, tc.valid, hubv1.SucceededReason, "", now)
		if copied, again, _ := m.reconcile(t); copied != nil || again != tc.again || len(m.asked) > 0 {
			t.Errorf("%s: copy %v, again in %s, asked %v", name, copied, again, m.asked)
		}
	}
	lost, back := newFixture(t).reg, newFixture(t).reg
	status.Set(lost, hubv1.KubeConfigValidCondition, metav1.ConditionFalse, hubv1.SecretNotFoundReason, "", now)
	status.Set(back, hubv1.KubeConfigValidCondition, metav1.ConditionTrue, hubv1.SucceededReason, "", now)
	if !answersOrMoves().Update(event.UpdateEvent{ObjectOld: lost, ObjectNew: back}) || answersOrMoves().Update(event.UpdateEvent{ObjectOld: back, ObjectNew: back}) {
		t.Error("the controller is not woken when it is back, or without a reason")
	}
}

// A Secret with the name of the kubeconfig copy that the hub did not make is left alone.
func TestForeignCopy(t *testing.T) {
	m := newFixture(t)
	m.objects = append(m.objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-team", Name: identity.KubeconfigCopy("hub", cluster)}})
	defer func() {
		if len(m.asked) > 0 {
			t.Error("a token is asked for")
		}
	}()
	b := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(append(m.objects, m.reg, m.team, m.rights, m.delivery)...)
	api := b.Build()
	r := &Reconciler{Client: api, Live: api, Clock: clocktesting.NewFakePassiveClock(now), Recorder: events.NewFakeRecorder(10),
		Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}}}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: cluster}); err == nil {
		t.Error("somebody else's Secret is taken for the copy")
	}
}
