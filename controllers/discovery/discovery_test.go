// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/origin"
)

func TestSecondName(t *testing.T) {
	for _, tc := range []struct {
		kind origin.Kind
		want string
	}{{origin.Kamaji, "prod-tenantcontrolplane"}, {origin.ClusterAPI, "prod-cluster"}, {origin.Secret, "prod-secret"}} {
		if got := secondName(tc.kind, "prod"); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.kind.Kind, got, tc.want)
		}
	}
}

func TestWithout(t *testing.T) {
	labels := map[string]string{"env": "prod", "environment": "prod", "example.com/env": "prod", "chandler.dev/name": "one"}
	cases := map[string]struct{ fields, theirs []string }{
		"One":            {[]string{".metadata.labels.env"}, []string{"env"}},
		"OneWithAPrefix": {[]string{".metadata.labels.example.com/env"}, []string{"example.com/env"}},
		"Two":            {[]string{".metadata.labels.environment", ".metadata.labels.chandler.dev/name"}, []string{"chandler.dev/name", "environment"}},
		"LabelAndOrigin": {[]string{".metadata.labels.env", ".spec.originRef.name"}, []string{"env"}},
		"OriginAlone":    {[]string{".spec.originRef.name"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			left, theirs := without(labels, conflictOf(tc.fields...))
			if d := cmp.Diff(tc.theirs, theirs); d != "" {
				t.Errorf("theirs: -want +got:\n%s", d)
			}
			want := map[string]string{}
			for k, v := range labels {
				want[k] = v
			}
			for _, k := range tc.theirs {
				delete(want, k)
			}
			if d := cmp.Diff(want, left); d != "" {
				t.Errorf("left: -want +got:\n%s", d)
			}
			if len(labels) != 4 {
				t.Error("the labels that were passed have changed")
			}
		})
	}
}

func TestUpToDate(t *testing.T) {
	desired := map[string]string{"b": "2", "a": "1"}
	reg := func(copied string, labels map[string]string) *hubv1.ClusterRegistration {
		return &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{hubv1.CopiedAnnotation: copied}}}
	}
	cases := map[string]struct {
		reg  *hubv1.ClusterRegistration
		want bool
	}{
		"None":              {nil, false},
		"Same":              {reg("a,b", map[string]string{"a": "1", "b": "2"}), true},
		"MoreOfOthers":      {reg("a,b", map[string]string{"a": "1", "b": "2", "c": "3"}), true},
		"OtherValue":        {reg("a,b", map[string]string{"a": "1", "b": "3"}), false},
		"Missing":           {reg("a,b", map[string]string{"a": "1"}), false},
		"CopiedBefore":      {reg("a,b,c", map[string]string{"a": "1", "b": "2", "c": "3"}), false},
		"MadeWithoutOrigin": {reg("", map[string]string{"a": "1", "b": "2"}), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := upToDate(tc.reg, desired); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestInteresting(t *testing.T) {
	secret := func(labels map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	}
	cases := map[string]struct {
		kind   origin.Kind
		labels map[string]string
		want   bool
	}{
		"SecretWithout": {origin.Secret, map[string]string{"a": "b"}, false},
		"SecretTrue":    {origin.Secret, map[string]string{hubv1.RegisterLabel: "true"}, true},
		"SecretFalse":   {origin.Secret, map[string]string{hubv1.RegisterLabel: "false"}, true},
		"KamajiWithout": {origin.Kamaji, nil, true},
		"CAPIWithout":   {origin.ClusterAPI, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			is := (&Reconciler{Config: &hubconfig.Config{}}).interesting(tc.kind)
			if got := is.Create(event.CreateEvent{Object: secret(tc.labels)}); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if got := is.Update(event.UpdateEvent{ObjectOld: secret(tc.labels), ObjectNew: secret(nil)}); got != tc.want {
				t.Errorf("that its labels go: got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestWrittenByHand: a registration that somebody has written, with a kubeconfig of its own, is not taken over by an origin of its name.
// One that is kept in Git without its origin is.
func TestWrittenByHand(t *testing.T) {
	kubeConfig := &hubv1.KubeConfigSource{SecretRef: &hubv1.SecretKeyReference{Name: "mine"}}
	other, own := origin.Secret.Reference("edge"), origin.Kamaji.Reference("edge")
	for name, tc := range map[string]struct {
		spec   hubv1.ClusterRegistrationSpec
		want   string
		byHand bool
	}{
		"ByHand":                       {hubv1.ClusterRegistrationSpec{KubeConfig: kubeConfig}, "", true},
		"KeptInGit":                    {hubv1.ClusterRegistrationSpec{DeletionPolicy: hubv1.DeletionPolicyOrphan}, "edge", false},
		"KeptInGitWithItsOrigin":       {hubv1.ClusterRegistrationSpec{KubeConfig: kubeConfig, OriginRef: &own}, "edge", false},
		"OfAnotherOriginOfTheSameName": {hubv1.ClusterRegistrationSpec{OriginRef: &other}, "edge-tenantcontrolplane", false},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := hubscheme.New()
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "edge"}, Spec: tc.spec}
			recorder := events.NewFakeRecorder(10)
			api := crdNamed(fake.NewClientBuilder().WithScheme(scheme)).WithObjects(reg).
				WithIndex(&hubv1.AddonDelivery{}, index.DeliveryRegistration, func(client.Object) []string { return nil }).Build()
			applied := ""
			r := &Reconciler{Live: api, Clock: clocktesting.NewFakePassiveClock(time.Now()), Recorder: recorder, Client: interceptor.NewClient(api, interceptor.Funcs{
				Apply: func(_ context.Context, _ client.WithWatch, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
					raw, err := json.Marshal(obj)
					applied = regexp.MustCompile(`"name":"(edge[a-z-]*)","namespace"`).FindStringSubmatch(string(raw))[1]
					return err
				},
			})}
			tcp := &unstructured.Unstructured{}
			tcp.SetNamespace("fleet")
			tcp.SetName("edge")
			req := Request{Kind: origin.Kamaji, NamespacedName: types.NamespacedName{Namespace: "fleet", Name: "edge"}}
			if err := r.ensure(t.Context(), req, tcp, origin.Verdict{}, nil); err != nil {
				t.Fatal(err)
			}
			if applied != tc.want {
				t.Errorf("applied %q, want %q", applied, tc.want)
			}
			if told := len(recorder.Events); tc.byHand && told != 2 {
				t.Errorf("%d events, want one on either side", told)
			}
		})
	}
}

// TestNamesakes: when a registration goes that kept the origin of its name from being registered, the origin is looked at again.
func TestNamesakes(t *testing.T) {
	scheme := hubscheme.New()
	key := types.NamespacedName{Namespace: "fleet", Name: "edge"}
	api := crdNamed(fake.NewClientBuilder().WithScheme(scheme)).WithObjects(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{hubv1.RegisterLabel: "true"}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "other"}},
	).Build()
	r := &Reconciler{Origins: originreader.New(api, api, origin.Policy{SecretNamespaces: []string{"*"}})}
	ref := origin.Kamaji.Reference("edge")
	for name, tc := range map[string]struct {
		name string
		ref  *hubv1.OriginReference
		want []Request
	}{
		"ByHand":         {"edge", nil, []Request{{Kind: origin.Secret, NamespacedName: key}}},
		"OfAnOrigin":     {"edge", &ref, []Request{{Kind: origin.Secret, NamespacedName: key}}}, // whose second name may be taken
		"NobodyAsks":     {"other", nil, []Request{}},
		"NothingIsThere": {"lonely", nil, []Request{}},
	} {
		reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: tc.name}, Spec: hubv1.ClusterRegistrationSpec{OriginRef: tc.ref}}
		if d := cmp.Diff(tc.want, r.namesakes(t.Context(), reg), cmpopts.EquateComparable(Request{})); d != "" {
			t.Errorf("%s: -want +got:\n%s", name, d)
		}
	}
}
