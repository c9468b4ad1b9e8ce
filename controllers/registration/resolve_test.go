// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// lenient spares the fixtures a certificate.
var lenient = kubeconfig.Rules{AllowMissingCA: true, AllowServices: true}

func kubeConfigFor(server string) []byte {
	return []byte(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "` + server + `"}}]
users: [{name: u, user: {token: c29tZS1vcGFxdWUtdG9rZW4}}]
`)
}

func TestCheck(t *testing.T) {
	good, svc, loopback := kubeConfigFor("https://192.0.2.7:6443"), kubeConfigFor("https://one.tenants.svc:6443"), kubeConfigFor("https://127.0.0.1:6443")
	_, refusedErr := kubeconfig.Parse(loopback, lenient)
	if refusedErr == nil {
		t.Fatal("a kubeconfig for loopback must be refused")
	}
	kamaji := origin.Source{Secret: "s", Candidates: []string{"admin.svc", "admin.conf"}}
	cases := map[string]struct {
		data    map[string][]byte
		source  origin.Source
		keys    []string
		refused []string
		reason  string
		err     string
	}{
		"UsualKey":   {data: map[string][]byte{"other": nil, "value": good}, source: origin.Source{Secret: "s"}, keys: []string{"value"}},
		"OnlyKey":    {data: map[string][]byte{"mine": good}, source: origin.Source{Secret: "s"}, keys: []string{"mine"}},
		"NamedKey":   {data: map[string][]byte{"mine": good, "value": loopback}, source: origin.Source{Secret: "s", Key: "mine"}, keys: []string{"mine"}},
		"Candidates": {data: map[string][]byte{"admin.conf": good, "admin.svc": svc}, source: kamaji, keys: []string{"admin.svc", "admin.conf"}},
		"OneOfTheCandidates": {
			data: map[string][]byte{"admin.conf": good, "ca.crt": nil}, source: kamaji, keys: []string{"admin.conf"},
		},
		"OneCandidateIsRefused": {
			data: map[string][]byte{"admin.conf": loopback, "admin.svc": svc}, source: kamaji, keys: []string{"admin.svc"},
			refused: []string{"key admin.conf is refused: " + refusedErr.Error()},
		},
		"AllCandidatesAreRefused": {
			data: map[string][]byte{"admin.conf": loopback, "admin.svc": loopback}, source: kamaji,
			refused: []string{"key admin.svc is refused: " + refusedErr.Error(), "key admin.conf is refused: " + refusedErr.Error()},
			reason:  reasonOf(refusedErr),
			err:     `Secret "s", key "admin.conf": ` + refusedErr.Error(),
		},
		"NamedKeyMissing": {
			data: map[string][]byte{"value": good}, source: origin.Source{Secret: "s", Key: "mine"}, reason: kubeconfig.ReasonKeyNotFound,
			err: `Secret "s": the Secret has no key "mine" (it has value); name the key that holds the kubeconfig`,
		},
		"NoCandidate": {
			data: map[string][]byte{"value": good}, source: kamaji, reason: kubeconfig.ReasonKeyNotFound,
			err: `Secret "s": the Secret has none of the keys admin.svc, admin.conf (it has value); name the key that holds the kubeconfig`,
		},
		"NoData": {
			source: origin.Source{Secret: "s"}, reason: kubeconfig.ReasonKeyNotFound,
			err: `Secret "s": the Secret has none of the keys value, value.yaml, kubeconfig, config, super-admin.svc, admin.svc, admin.conf, ` +
				`kubeconfig.yaml (it is empty); name the key that holds the kubeconfig`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: tc.data}
			found, reason, err := check(secret, tc.source, lenient)
			var keys []string
			for _, c := range found.candidates {
				keys = append(keys, c.key)
			}
			text := ""
			if err != nil {
				text = err.Error()
			}
			if d := cmp.Diff(tc.err, text); d != "" || reason != tc.reason {
				t.Errorf("reason %q, want %q; message -want +got:\n%s", reason, tc.reason, d)
			}
			if d := cmp.Diff(tc.keys, keys); d != "" {
				t.Errorf("keys: -want +got:\n%s", d)
			}
			if d := cmp.Diff(tc.refused, found.refused); d != "" {
				t.Errorf("refused: -want +got:\n%s", d)
			}
			if found.secret != "s" || found.waiting {
				t.Errorf("secret %q, waiting %v", found.secret, found.waiting)
			}
		})
	}
}

func TestKubeConfigSource(t *testing.T) {
	kamaji, secret := origin.Kamaji.Reference("one"), origin.Secret.Reference("one")
	deleted := metav1.NewTime(time.Unix(1_700_000_000, 0))
	used := hubv1.ClusterRegistrationStatus{Credential: &hubv1.CredentialStatus{SecretName: "old", Key: "admin.conf"}}
	leaving := metav1.ObjectMeta{DeletionTimestamp: &deleted}
	cases := map[string]struct {
		reg     hubv1.ClusterRegistration
		obj     *unstructured.Unstructured
		verdict origin.Verdict
		want    origin.Source
		reason  string
		err     string
	}{
		"Neither": {
			reason: hubv1.KubeConfigSourceMissingReason, err: "write spec.kubeConfig.secretRef: there is no origin to take the kubeconfig from",
		},
		"OriginGone": {
			reg: hubv1.ClusterRegistration{Spec: hubv1.ClusterRegistrationSpec{OriginRef: &kamaji}}, verdict: origin.Verdict{Origin: teardown.OriginGone},
			reason: hubv1.OriginNotFoundReason, err: `TenantControlPlane "one" does not exist; what runs on the cluster is left alone`,
		},
		"OriginGoneAndUsedBefore": {
			reg:     hubv1.ClusterRegistration{Spec: hubv1.ClusterRegistrationSpec{OriginRef: &kamaji}, Status: used},
			verdict: origin.Verdict{Origin: teardown.OriginGone},
			reason:  hubv1.OriginNotFoundReason, err: `TenantControlPlane "one" does not exist; what runs on the cluster is left alone`,
		},
		"KindNotInstalled": {
			reg: hubv1.ClusterRegistration{Spec: hubv1.ClusterRegistrationSpec{OriginRef: &kamaji}}, verdict: origin.Verdict{Origin: teardown.OriginUnknown},
			reason: hubv1.OriginKindNotInstalledReason,
			err:    "kind TenantControlPlane.kamaji.clastix.io is not installed on this management cluster; what runs on the cluster is left alone",
		},
		"LeavingUsesTheLastKnown": {
			reg:     hubv1.ClusterRegistration{ObjectMeta: leaving, Spec: hubv1.ClusterRegistrationSpec{OriginRef: &kamaji}, Status: used},
			verdict: origin.Verdict{Origin: teardown.OriginUnknown},
			want:    origin.Source{Secret: "old", Key: "admin.conf"},
		},
		"NamespaceNotAllowed": {
			reg: hubv1.ClusterRegistration{Spec: hubv1.ClusterRegistrationSpec{OriginRef: &secret}, Status: used}, obj: &unstructured.Unstructured{},
			verdict: origin.Verdict{Origin: teardown.OriginUnwanted, Reason: hubv1.NamespaceNotAllowedReason, Refused: "not there"},
			reason:  hubv1.NamespaceNotAllowedReason, err: "not there; what runs on the cluster is left alone, and the kubeconfig in use stays in use",
		},
		"UnknownKind": {
			reg:    hubv1.ClusterRegistration{Spec: hubv1.ClusterRegistrationSpec{OriginRef: &hubv1.OriginReference{Kind: "Shoot", Name: "one"}}},
			reason: hubv1.OriginKindNotInstalledReason,
			err:    `spec.originRef: the hub does not know kind "Shoot" of group ""; write TenantControlPlane.kamaji.clastix.io, Cluster.cluster.x-k8s.io, Secret or ClusterProfile.multicluster.x-k8s.io`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, reason, err := kubeConfigSource(&tc.reg, tc.obj, tc.verdict)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if d := cmp.Diff(tc.err, text); d != "" || reason != tc.reason {
				t.Errorf("reason %q, want %q; message -want +got:\n%s", reason, tc.reason, d)
			}
			must.Equal(t, tc.want, got)
		})
	}
}

// TestFromSpec: the status remembers whether spec.kubeConfig or the origin named the Secret to which the cluster has answered.
func TestFromSpec(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "one"}, Data: map[string][]byte{"value": kubeConfigFor("https://192.0.2.1:6443")}}
	api := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New())).WithObjects(secret).Build()
	obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "tenants", "name": "one"}}}
	written, deleted := &hubv1.KubeConfigSource{SecretRef: &hubv1.SecretKeyReference{Name: "one"}}, &metav1.Time{Time: moment}
	for name, tc := range map[string]struct {
		spec    *hubv1.KubeConfigSource
		origin  *unstructured.Unstructured
		deleted *metav1.Time
		was     bool
		want    bool
	}{
		"Written":                {written, obj, nil, false, true},
		"ByItsOrigin":            {nil, obj, nil, false, false},
		"LeftToItsOrigin":        {nil, obj, nil, true, false},
		"WithoutEither":          {nil, nil, deleted, true, true},
		"WithoutItsOwnOrigin":    {nil, nil, deleted, false, false},
		"WrittenAndWithoutThose": {written, nil, deleted, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Client: api, Live: api, Clock: clocktesting.NewFakePassiveClock(moment), Pool: probe.NewPool(probe.PoolOptions{}),
				Config: &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub"}, Rules: lenient}}
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: "one", DeletionTimestamp: tc.deleted}}
			reg.Spec.KubeConfig, reg.Spec.OriginRef = tc.spec, &hubv1.OriginReference{Kind: "Secret", Name: "one"}
			reg.Status.Credential = &hubv1.CredentialStatus{SecretName: "one", Key: "value", FromSpec: tc.was}
			found := r.resolve(t.Context(), reg, tc.origin, origin.Verdict{})
			if len(found.candidates) != 1 {
				t.Fatal(status.Find(reg, hubv1.KubeConfigValidCondition))
			}
			r.publish(reg, found, found.candidates[0], true)
			if got := reg.Status.Credential.FromSpec; got != tc.want {
				t.Errorf("fromSpec is %t, want %t", got, tc.want)
			}
		})
	}
}

func TestAccept(t *testing.T) {
	r := &Reconciler{HubUID: "hub"}
	cases := map[string]struct {
		answer types.UID
		want   string
	}{
		"ACluster": {"a", ""},
		"TheHub":   {"hub", hubv1.HubItselfReason},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := r.accept(probe.Result{ClusterUID: tc.answer})
			if (got == nil) != (tc.want == "") || got != nil && got.Reason != tc.want {
				t.Errorf("got %v, want %q", got, tc.want)
			}
		})
	}
}

// The time of the next look is when the words of status.credential.expiresIn change, and not before.
func TestNextLook(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	cases := map[string]struct{ left, want time.Duration }{
		"Expired":   {-time.Hour, 0},
		"LastHours": {5*time.Hour + 20*time.Minute, 20*time.Minute + time.Second},
		"LastDays":  {3*24*time.Hour + 7*time.Hour, 7*time.Hour + time.Second},
		"FarOff":    {100 * 24 * time.Hour, 10*24*time.Hour + time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(now)}
			at := metav1.NewTime(now.Add(tc.left))
			reg := &hubv1.ClusterRegistration{Status: hubv1.ClusterRegistrationStatus{Credential: &hubv1.CredentialStatus{ExpirationTime: &at}}}
			if got := r.nextLook(reg); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestSecretCacheTellsRulesApart: a Secret that a TenantControlPlane names may hold the name of a Service; the same Secret, labelled
// or named by hand, may not.
func TestSecretCacheTellsRulesApart(t *testing.T) {
	var c secretCache
	reg, key := types.NamespacedName{Namespace: "tenants", Name: "one"}, types.NamespacedName{Namespace: "tenants", Name: "s"}
	meta, source := &metav1.ObjectMeta{UID: "1", ResourceVersion: "1"}, origin.Source{Secret: "s"}
	c.put(reg, viewOf(key, source, lenient), meta, parsed{resolution: resolution{secret: "s"}})
	if _, ok := c.get(reg, viewOf(key, source, lenient), meta); !ok {
		t.Error("it is read again for the same rules")
	}
	if _, ok := c.get(reg, viewOf(key, source, kubeconfig.Rules{AllowMissingCA: true}), meta); ok {
		t.Error("what passed softer rules passes harder ones unread")
	}
}
