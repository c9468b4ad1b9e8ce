// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/token"
)

// jwt is a token of an account, with the times that a cluster writes into it.
func jwt(account string, issued, expires time.Time) string {
	claims := fmt.Sprintf(`{"iat":%d,"exp":%d,"sub":"system:serviceaccount:%s"}`, issued.Unix(), expires.Unix(), account)
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("s"))
}

const ownAccount = "chandler-fleet-one-1234abcd:hub"

// registered is the kubeconfig with a token, among other things that the owner of the Secret wrote there.
func registered(token string) string {
	return `# mine
apiVersion: v1
kind: Config
current-context: x
contexts: [{name: x, context: {cluster: c, user: u}}, {name: y, context: {cluster: d, user: v}}]
clusters: [{name: c, cluster: {server: "https://192.0.2.7:6443", insecure-skip-tls-verify: true}}, {name: d, cluster: {server: "https://192.0.2.8:6443"}}]
users: [{name: u, user: {token: ` + token + `}}, {name: v, user: {token: other}}]
`
}

// renewable is a registration whose Secret asks for the renewal of its token.
type renewable struct {
	reg     *hubv1.ClusterRegistration
	secret  *corev1.Secret
	fixture *Renewal
	api     client.WithWatch
	clock   *clocktesting.FakePassiveClock
	told    *events.FakeRecorder

	asked    []types.NamespacedName
	with     []string
	lifetime time.Duration
	// answer is what the cluster says; by default a new token of the account that it was asked for.
	answer func(account types.NamespacedName, lifetime time.Duration) (string, time.Time, *probe.Failure)
	// tried are the tokens that the hub has tried, and refuses is what the cluster says to them.
	tried   []string
	refuses *probe.Failure
	// meanwhile happens while the cluster answers.
	meanwhile func(client.Client)
	writes    int
}

// newRenewable has a token of 30 days that the command has written an hour ago.
func newRenewable(t *testing.T, change func(*renewable)) *renewable {
	t.Helper()
	m := &renewable{clock: clocktesting.NewFakePassiveClock(now), told: events.NewFakeRecorder(20)}
	issued := now.Add(-time.Hour)
	ref := origin.Secret.Reference(cluster.Name)
	m.reg = &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}, Spec: hubv1.ClusterRegistrationSpec{OriginRef: &ref}}
	status.Set(m.reg, hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.ProbeSucceededReason, "", now)
	status.Set(m.reg, hubv1.KubeConfigValidCondition, metav1.ConditionTrue, hubv1.SucceededReason, "", now)
	raw := []byte(registered(jwt(ownAccount, issued, issued.Add(720*time.Hour))))
	m.secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name, UID: "u"}, Data: map[string][]byte{"value": raw, "else": []byte("mine")}}
	m.secret.Labels = map[string]string{hubv1.RegisterLabel: "true"}
	m.secret.Annotations = token.Notes{Issued: issued, Expires: issued.Add(720 * time.Hour), Fingerprint: parse(t, raw).Fingerprint()}.Annotations()
	m.secret.Annotations[hubv1.RenewTokenAnnotation] = "720h"
	if change != nil {
		change(m)
	}
	m.publish(t, m.secret)
	m.api = fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(m.secret, m.reg).WithStatusSubresource(m.reg).Build()
	counted := interceptor.NewClient(m.api, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		m.writes++
		return c.Patch(ctx, o, p, opts...)
	}})
	m.fixture = &Renewal{Client: counted, Live: m.api, Clock: m.clock, Recorder: m.told, Config: &hubconfig.Config{Rules: rules()}, Token: m.token, Probe: m.probe}
	return m
}

func parse(t *testing.T, raw []byte) *kubeconfig.Config {
	t.Helper()
	return must.Get(kubeconfig.Parse(raw, rules())).Or(t)
}

// publish does what the registration controller does with a Secret to which the cluster has answered.
func (m *renewable) publish(t *testing.T, s *corev1.Secret) {
	config := parse(t, s.Data["value"])
	m.reg.Status.Credential = &hubv1.CredentialStatus{SecretName: s.Name, Key: "value", Fingerprint: config.Fingerprint(), TargetFingerprint: config.TargetFingerprint()}
}

func (m *renewable) token(_ context.Context, cfg *kubeconfig.Config, account types.NamespacedName, lifetime time.Duration, _ probe.Options) (string, time.Time, *probe.Failure) {
	m.asked, m.with, m.lifetime = append(m.asked, account), append(m.with, cfg.RESTConfig().BearerToken), lifetime
	if m.meanwhile != nil {
		m.meanwhile(m.api)
	}
	if m.answer != nil {
		return m.answer(account, lifetime)
	}
	return jwt(account.Namespace+":"+account.Name, m.clock.Now(), m.clock.Now().Add(lifetime)), m.clock.Now().Add(lifetime), nil
}

func (m *renewable) probe(_ context.Context, cfg *kubeconfig.Config, opts probe.Options) probe.Result {
	m.tried = append(m.tried, cfg.RESTConfig().BearerToken)
	if opts.Total != answerTime || !reflect.DeepEqual(opts.Rules, cfg.Rules()) {
		return probe.Result{Err: &probe.Failure{Message: "this is no way to ask"}}
	}
	return probe.Result{Err: m.refuses}
}

// look reconciles once, and returns the Secret and after how long the controller looks again.
func (m *renewable) look(t *testing.T) (*corev1.Secret, time.Duration) {
	t.Helper()
	result := must.Get(m.fixture.Reconcile(t.Context(), reconcile.Request{NamespacedName: cluster})).Or(t)
	s := &corev1.Secret{}
	must.Do(t, m.api.Get(t.Context(), client.ObjectKeyFromObject(m.secret), s))
	return s, result.RequeueAfter
}

// pass lets time go by, while the registration controller takes over what is in the Secret.
func (m *renewable) pass(t *testing.T, d time.Duration) {
	t.Helper()
	m.clock.SetTime(m.clock.Now().Add(d))
	s := &corev1.Secret{}
	must.Do(t, m.api.Get(t.Context(), client.ObjectKeyFromObject(m.secret), s))
	m.publish(t, s)
	must.Do(t, m.api.Status().Update(t.Context(), m.reg))
}

func (m *renewable) events() (out []string) {
	for len(m.told.Events) > 0 {
		out = append(out, <-m.told.Events)
	}
	return out
}

const tenDays = 10 * 24 * time.Hour

// The token is renewed after a third of its time, again and again, and nothing else in the Secret changes.
func TestOwnTokenIsRenewed(t *testing.T) {
	m := newRenewable(t, nil)
	before, again := m.look(t)
	if len(m.asked) > 0 || again != tenDays-time.Hour {
		t.Fatalf("asked %v, again in %s", m.asked, again)
	}
	first := parse(t, m.secret.Data["value"]).RESTConfig().BearerToken
	for range 3 {
		m.pass(t, again)
		m.asked, m.with = nil, nil
		var after *corev1.Secret
		after, again = m.look(t)
		if len(m.asked) != 1 || m.asked[0].String() != strings.Replace(ownAccount, ":", "/", 1) || m.with[0] != first || m.lifetime != 720*time.Hour || again != tenDays {
			t.Fatalf("asked %v for %s, again in %s", m.asked, m.lifetime, again)
		}
		second := parse(t, after.Data["value"]).RESTConfig().BearerToken
		if want := strings.ReplaceAll(string(before.Data["value"]), first, second); second == first || string(after.Data["value"]) != want || string(after.Data["else"]) != "mine" {
			t.Fatalf("the Secret has\n%s", after.Data["value"])
		}
		if !maps.Equal(after.Labels, before.Labels) || after.Annotations[hubv1.RenewTokenAnnotation] != "720h" {
			t.Errorf("labels %v, annotations %v", after.Labels, after.Annotations)
		}
		before, first = after, second
	}
	if e := m.events(); len(e) > 0 {
		t.Errorf("events %v", e)
	}
}

// What is not renewed, and what somebody is told.
func TestOwnTokenIsLeftAlone(t *testing.T) {
	old := func(m *renewable) { m.clock.SetTime(now.Add(tenDays)) }
	content := func(m *renewable, user string) {
		m.secret.Data["value"] = []byte(strings.Split(registered("x"), "users:")[0] + "users: [{name: u, user: " + user + "}]\n")
	}
	for name, tc := range map[string]struct {
		change func(*renewable)
		told   string
	}{
		"NobodyAsks": {func(m *renewable) { delete(m.secret.Annotations, hubv1.RenewTokenAnnotation) }, ""},
		"NoDuration": {func(m *renewable) { m.secret.Annotations[hubv1.RenewTokenAnnotation] = "30 days" }, "such as 720h"},
		"ForEver":    {func(m *renewable) { m.secret.Annotations[hubv1.RenewTokenAnnotation] = "876000h" }, "such as 720h"},
		"DoesNotAnswer": {func(m *renewable) {
			status.Set(m.reg, hubv1.ReachableCondition, metav1.ConditionFalse, "Test", "", now)
		}, ""},
		"MayNotRegister": {func(m *renewable) {
			status.Set(m.reg, hubv1.KubeConfigValidCondition, metav1.ConditionFalse, hubv1.NamespaceNotAllowedReason, "", now)
		}, ""},
		"OfKamaji": {func(m *renewable) {
			ref := origin.Kamaji.Reference("one")
			m.reg.Spec.OriginRef = &ref
		}, ""},
		// A member of a Team, say, registers a cluster by hand with the hub's own copy in his namespace, and annotates that.
		"TheHubsOwnCopy": {func(m *renewable) { m.secret.Labels[hubv1.CopyLabel] = "team" }, ""},
		"BeingDeleted": {func(m *renewable) {
			m.secret.Finalizers, m.secret.DeletionTimestamp = []string{"a/b"}, &metav1.Time{Time: now}
		}, ""},
		"APassword":         {func(m *renewable) { content(m, `{username: a, password: b}`) }, "not the token of a ServiceAccount"},
		"AnotherToken":      {func(m *renewable) { content(m, `{token: abc}`) }, "not the token of a ServiceAccount"},
		"OfAPerson":         {func(m *renewable) { content(m, `{token: e30.eyJzdWIiOiJqYW5lIn0.cw}`) }, "not the token of a ServiceAccount"},
		"OfAPathOfTheirOwn": {func(m *renewable) { content(m, `{token: `+jwt("a/../b:c", now, now.Add(time.Hour))+`}`) }, "not the token of a ServiceAccount"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newRenewable(t, func(m *renewable) { old(m); tc.change(m) })
			m.look(t)
			told := m.events()
			if len(m.asked) > 0 || m.writes > 0 || len(told) > 1 || (tc.told == "") != (len(told) == 0) || !strings.Contains(strings.Join(told, ""), tc.told) {
				t.Errorf("asked %v, %d writes, told %q", m.asked, m.writes, told)
			}
		})
	}
}

// What a Secret without notes has is renewed by what the token says of itself: somebody has written it by hand.
func TestOwnTokenWithoutNotes(t *testing.T) {
	for name, tc := range map[string]struct {
		issued, lifetime time.Duration
		wait             time.Duration
	}{
		"Fresh":         {-time.Hour, 3 * time.Hour, 0},
		"HalfAnHourOld": {-30 * time.Minute, 3 * time.Hour, 30 * time.Minute},
		"Years":         {-time.Hour, 90000 * time.Hour, 2920*time.Hour - time.Hour},
		"ClockIsAhead":  {time.Hour, 24 * time.Hour, 0},
		"ClockIsBehind": {-9000 * time.Hour, 24 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newRenewable(t, func(m *renewable) {
				m.secret.Annotations = map[string]string{hubv1.RenewTokenAnnotation: "24h"}
				m.secret.Data["value"] = []byte(registered(jwt(ownAccount, now.Add(tc.issued), now.Add(tc.issued+tc.lifetime))))
			})
			if _, again := m.look(t); len(m.asked) > 0 == (tc.wait > 0) || tc.wait > 0 && again != tc.wait || tc.wait == 0 && again != 8*time.Hour {
				t.Errorf("asked %v, again in %s", m.asked, again)
			}
		})
	}
}

// Somebody puts the old token back, as a tool does that keeps the Secret in Git: the hub asks now and then, and not all the time.
func TestOwnTokenPutBack(t *testing.T) {
	m := newRenewable(t, nil)
	m.clock.SetTime(now.Add(tenDays))
	const every = 30 * time.Second
	for range int(time.Hour / every) {
		s, _ := m.look(t)
		s.Data = m.secret.Data
		must.Do(t, m.api.Update(t.Context(), s))
		m.pass(t, every)
	}
	if most := int(time.Hour/token.Apart) + 1; len(m.asked) > most {
		t.Errorf("asked %d times within an hour, want at most %d", len(m.asked), most)
	}
}

// The Secret gets another kubeconfig while the cluster answers: what has just been asked for is not written over it.
func TestOwnTokenMeanwhile(t *testing.T) {
	m := newRenewable(t, nil)
	m.clock.SetTime(now.Add(tenDays))
	theirs := strings.Replace(registered(jwt(ownAccount, now, now.Add(time.Hour))), "192.0.2.7", "192.0.2.9", 1)
	m.meanwhile = func(c client.Client) {
		s := &corev1.Secret{}
		must.Do(t, c.Get(t.Context(), client.ObjectKeyFromObject(m.secret), s))
		s.Data["value"] = []byte(theirs)
		must.Do(t, c.Update(t.Context(), s))
	}
	if after, _ := m.look(t); string(after.Data["value"]) != theirs {
		t.Errorf("the Secret has\n%s", after.Data["value"])
	}
}

// A Secret that cannot be written: somebody is told, without what is in it, and the cluster is not asked all the time.
func TestOwnTokenCannotBeWritten(t *testing.T) {
	m := newRenewable(t, nil)
	m.clock.SetTime(now.Add(tenDays))
	asked := 0
	m.fixture.Client = interceptor.NewClient(m.api, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		asked++
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Secret").GroupKind(), "one", field.ErrorList{field.Forbidden(field.NewPath("data"), "it is immutable: hunter2")})
	}})
	for range 20 {
		if _, again := m.look(t); again <= 0 {
			t.Fatal("it is not tried again")
		}
	}
	told := strings.Join(m.events(), "")
	if asked != 1 || !strings.Contains(told, "Invalid") || strings.Contains(told, "hunter2") {
		t.Errorf("%d writes, told %q", asked, told)
	}
}
