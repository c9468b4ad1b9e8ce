// SPDX-License-Identifier: Apache-2.0

package register

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/account"
)

// A cluster that is hostile decides over nothing but whether it is registered: the credential goes nowhere else, and nothing that
// a terminal would obey is taken for a version.
func TestVersionOf(t *testing.T) {
	asked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked = true
		_, _ = w.Write([]byte(`{"gitVersion":"v1.36.3"}`))
	}))
	defer elsewhere.Close()
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
		err    string
	}{
		"Good":       {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"gitVersion":"v1.36.3"}`)) }, "v1.36.3", ""},
		"Redirect":   {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, "", "302"},
		"NotAllowed": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "", "is the credential right"},
		"Terminal": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"gitVersion":"v1.36.3\u001b[2J"}`))
		}, "", "does not say which version"},
		"Endless": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"gitVersion":"v1.36.3","x":"` + strings.Repeat("x", 1<<20) + `"}`))
		}, "", "not that of an API server"},
		"Old": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"gitVersion":"v1.20.1"}`)) }, "", "upgrade it"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.answer)
			defer server.Close()
			got, clock, err := versionOf(t.Context(), &rest.Config{Host: server.URL, BearerToken: "secret"})
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) || err == nil && clock.IsZero() {
				t.Errorf("%q, %s, %v", got, clock, err)
			}
		})
	}
	if asked {
		t.Error("the credential went elsewhere")
	}
}

func TestValidate(t *testing.T) {
	good := Request{Name: types.NamespacedName{Namespace: "fleet", Name: "edge1"}, Role: "cluster-admin", Lifetime: 720 * time.Hour}
	for name, tc := range map[string]struct {
		change func(*Request)
		want   string
	}{
		"Good":       {func(*Request) {}, ""},
		"SystemRole": {func(r *Request) { r.Role = "system:node" }, ""},
		"Name":       {func(r *Request) { r.Name.Name = "Edge_1" }, "Edge_1"},
		"Label":      {func(r *Request) { r.Labels = map[string]string{"a b": "c"} }, "--labels a b=c"},
		"HubsLabel":  {func(r *Request) { r.Labels = map[string]string{"chandler.dev/register": "false"} }, "the hub's"},
		"TooShort":   {func(r *Request) { r.Lifetime = time.Minute }, "--token-ttl 1m"},
		"NoRole":     {func(r *Request) { r.Role = "" }, "--role"},
	} {
		r := good
		tc.change(&r)
		if err := r.Validate(); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What somebody reads before he says yes.
func TestDeparturePrint(t *testing.T) {
	key := types.NamespacedName{Namespace: "fleet", Name: "edge1"}
	origin := &unstructured.Unstructured{}
	origin.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	origin.SetNamespace("fleet")
	origin.SetName("edge1")
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "edge1"}}
	reg.Status.AddonCounts = &hubv1.ObjectCounts{Total: 2}
	a := account.Of("chandler", "", key, "")
	d := &Departure{Name: key, reg: reg, origin: origin, secret: a.Secret(nil, "720h", ""), account: a}
	for _, tc := range []struct{ orphan, leave bool }{{false, false}, {true, true}} {
		d.Orphan, d.LeaveAccount = tc.orphan, tc.leave
		var b bytes.Buffer
		if err := d.Print(&b); err != nil {
			t.Fatal(err)
		}
		out := b.String()
		if strings.Contains(out, "uninstalled") == tc.orphan || strings.Contains(out, "Namespace "+a.Name) == tc.leave || !strings.Contains(out, `becomes "false"`) ||
			!strings.Contains(out, "its 2 add-ons") {
			t.Errorf("%+v:\n%s", tc, out)
		}
	}
	// By hand, the binding goes before the name of the namespace is free.
	out := d.stays()
	binding, namespace := strings.Index(out, "kubectl delete clusterrolebinding"), strings.Index(out, "kubectl delete namespace "+a.Name)
	if binding < 0 || namespace < binding || !strings.Contains(out, "--leave-account") {
		t.Error(out)
	}
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		if err := until(t.Context(), time.Minute, func(context.Context) (bool, error) { looks++; return looks == 2, nil }); err != nil || looks != 2 {
			t.Errorf("%d looks, %v", looks, err)
		}
		if err := until(t.Context(), time.Millisecond, func(context.Context) (bool, error) { return false, nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		failed := errors.New("it fails")
		if err := until(t.Context(), time.Minute, func(context.Context) (bool, error) { return false, failed }); !errors.Is(err, failed) {
			t.Error(err)
		}
	})
}
