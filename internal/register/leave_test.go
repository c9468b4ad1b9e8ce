// SPDX-License-Identifier: Apache-2.0

package register

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/account"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
)

const hubID = "chandler"

// began is when the clock of a test begins that does not wait (testing/synctest).
var began = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

var (
	edge1  = types.NamespacedName{Namespace: "fleet", Name: "edge1"}
	kamaji = schema.GroupVersionKind{Group: origin.Kamaji.Group, Version: "v1alpha1", Kind: origin.Kamaji.Kind}
)

// made is the Secret that chandler register has made for fleet/edge1.
func made() *corev1.Secret {
	s := account.Of(hubID, "", edge1, account.AdminRole).Secret(nil, "720h", "")
	s.UID = "secret"
	return s
}

// registration is one in namespace fleet, from an origin if ref is not nil.
func registration(name string, ref *hubv1.OriginReference) *hubv1.ClusterRegistration {
	return &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, UID: types.UID(name)},
		Spec: hubv1.ClusterRegistrationSpec{OriginRef: ref}}
}

// byHand is a registration with the kubeconfig in a Secret.
func byHand(name, secret string) *hubv1.ClusterRegistration {
	reg := registration(name, nil)
	reg.Spec.KubeConfig = &hubv1.KubeConfigSource{SecretRef: &hubv1.SecretKeyReference{Name: secret}}
	return reg
}

func fromSecret(name string) *hubv1.OriginReference {
	ref := origin.Secret.Reference(name)
	return &ref
}

func tenant() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kamaji)
	u.SetNamespace(edge1.Namespace)
	u.SetName(edge1.Name)
	return u
}

// onHub is a registrar whose hub has some objects.
func onHub(objects ...client.Object) *Registrar {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion, kamaji.GroupVersion(), hubv1.GroupVersion})
	m.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	m.Add(kamaji, meta.RESTScopeNamespace)
	for _, kind := range []string{"ClusterRegistration", "AddonDelivery"} {
		m.Add(hubv1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	s := hubscheme.New()
	s.AddKnownTypeWithName(kamaji, &unstructured.Unstructured{})
	r := &Registrar{Out: &bytes.Buffer{}, Wait: 2 * time.Second}
	r.Hub = live.Reader{Client: fake.NewClientBuilder().WithScheme(s).WithRESTMapper(m).WithObjects(objects...).Build()}
	r.Hub.Hub.HubID = hubID
	return r
}

// departure is that of fleet/edge1, whose add-ons and account go with it.
func departure(t *testing.T, r *Registrar) *Departure {
	t.Helper()
	return must.Get(r.Departure(t.Context(), edge1, false, false)).Or(t)
}

// leave carries a departure out, by a clock that waits for nobody.
func leave(t *testing.T, r *Registrar, d *Departure) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { err = r.Leave(t.Context(), d) })
	return err
}

// Secret fleet/edge1 and its account go with the registration that has it for its origin, and with no other one.
func TestDepartureTakesItsOwnSecret(t *testing.T) {
	kamajis := origin.Kamaji.Reference("edge1")
	both := byHand("edge1", "elsewhere")
	both.Spec.OriginRef = fromSecret("edge1")
	anotherHubs := made()
	anotherHubs.Annotations[hubv1.AccountAnnotation] = "chandler-other:hub"
	for name, tc := range map[string]struct {
		reg    *hubv1.ClusterRegistration
		secret *corev1.Secret
		takes  bool
		err    string
	}{
		"ItsOwn":                   {registration("edge1", fromSecret("edge1")), made(), true, ""},
		"RegistrationIsGone":       {nil, made(), true, ""},
		"OfTenantControlPlane":     {registration("edge1-tenantcontrolplane", &kamajis), made(), false, ""},
		"ByHand":                   {byHand("edge1", "elsewhere"), made(), false, ""},
		"KubeConfigOfItsOwn":       {both, made(), false, ""},
		"WrittenByHand":            {registration("edge1", fromSecret("edge1")), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "edge1"}}, false, ""},
		"OfAnotherHub":             {registration("edge1", fromSecret("edge1")), anotherHubs, false, "--hub-id"},
		"OfAnotherHubWithoutOwner": {nil, anotherHubs, false, "--hub-id"},
	} {
		t.Run(name, func(t *testing.T) {
			key, objects := edge1, []client.Object{tenant(), tc.secret.DeepCopy()}
			if tc.reg != nil {
				key, objects = client.ObjectKeyFromObject(tc.reg), append(objects, tc.reg)
			}
			d, err := onHub(objects...).Departure(t.Context(), key, false, false)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			var b strings.Builder
			must.Do(t, d.Print(&b))
			if (d.secret != nil) != tc.takes || strings.Contains(b.String(), "Secret fleet/edge1: deleted") != tc.takes {
				t.Errorf("it would do\n%s", b.String())
			}
		})
	}
}

// answering puts a way to a cluster into a Secret that answers one request after the other with a status, and everything from then on
// with the last one, and counts what it is asked. The token expires at a time. No connection stays open: a test that does not wait ends
// only when nothing is left of it.
func answering(t *testing.T, s *corev1.Secret, expires time.Time, codes ...int) *atomic.Int32 {
	t.Helper()
	asked := &atomic.Int32{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		code := codes[min(int(asked.Add(1)), len(codes))-1]
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d}`, code)
	}))
	server.Config.SetKeepAlivesEnabled(false)
	t.Cleanup(server.Close)
	encode := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"sub":"system:serviceaccount:%s","iat":1,"exp":%d}`, strings.ReplaceAll(s.Annotations[hubv1.AccountAnnotation], "/", ":"), expires.Unix())
	target := account.Target{Server: server.URL, TLSServerName: "example.com",
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	config, _, err := target.Kubeconfig(encode([]byte(`{}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("s")))
	if err != nil {
		t.Fatal(err)
	}
	s.Data = map[string][]byte{account.SecretKey: config.Minimal()}
	return asked
}

// The account goes only when the add-ons have gone. A registration that somebody deletes is made again, with all that it had
// delivered: that it is absent at one look, or has another UID, is no sign that it has gone.
func TestAccountIsTheLastToGo(t *testing.T) {
	reg := registration("edge1", fromSecret("edge1"))
	again := reg.DeepCopy()
	again.UID = "again"
	delivery := &hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "d", Labels: map[string]string{hubv1.ClusterLabel: "edge1"}}}
	delivery.Spec.RegistrationRef.Namespace, delivery.Spec.RegistrationRef.Name = "fleet", "edge1"
	create := func(o client.Object) func(*testing.T, client.Client) {
		return func(t *testing.T, c client.Client) {
			if err := c.Create(t.Context(), o.DeepCopyObject().(client.Object)); err != nil {
				t.Error(err)
			}
		}
	}
	for name, tc := range map[string]struct {
		there  []client.Object
		change func(*testing.T, client.Client)
		asked  bool
		says   string
	}{
		"NothingIsLeft":      {nil, nil, true, "These stay"},
		"MadeAgainMeanwhile": {nil, create(again), false, "still there"},
		"DeliveriesAreLeft":  {[]client.Object{delivery}, nil, false, "AddonDelivery platform/d"},
		"DeletedAndMadeAgain": {[]client.Object{reg}, func(t *testing.T, c client.Client) {
			if err := c.Delete(t.Context(), reg.DeepCopy()); err != nil {
				t.Error(err)
			}
			create(again)(t, c)
		}, false, "still there"},
		"SecretIsAnother": {[]client.Object{reg}, func(t *testing.T, c client.Client) {
			if err := c.Delete(t.Context(), made()); err != nil {
				t.Error(err)
			}
			s := made()
			s.UID = "another"
			create(s)(t, c)
		}, false, "meanwhile"},
	} {
		t.Run(name, func(t *testing.T) {
			s := made()
			asked := answering(t, s, began.Add(time.Hour), http.StatusServiceUnavailable)
			r := onHub(append(tc.there, s)...)
			d := departure(t, r)
			if tc.change != nil {
				tc.change(t, r.Hub.Client)
			}
			err := leave(t, r, d)
			if (asked.Load() > 0) != tc.asked || err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("asked %d times: %v\n%s", asked.Load(), err, r.Out)
			}
			there := &corev1.Secret{}
			if err := r.Hub.Client.Get(t.Context(), edge1, there); err != nil || (there.Labels[hubv1.RegisterLabel] == "false") == (tc.says == "meanwhile") {
				t.Errorf("the Secret has labels %v (%v)", there.Labels, err)
			}
		})
	}
}

// What was written by hand is deleted if it is what somebody has said yes to.
func TestByHandIsAnotherMeanwhile(t *testing.T) {
	reg := byHand("edge1", "elsewhere")
	r := onHub(reg)
	d := departure(t, r)
	again := byHand("edge1", "elsewhere")
	again.UID = "again"
	must.Do(t, r.Hub.Client.Delete(t.Context(), reg))
	must.Do(t, r.Hub.Client.Create(t.Context(), again))
	if err := r.Leave(t.Context(), d); err == nil || !strings.Contains(err.Error(), "meanwhile") {
		t.Error(err)
	}
	if err := r.Hub.Client.Get(t.Context(), edge1, again); err != nil {
		t.Error(err)
	}
}

// There is nothing into which --orphan could be written, and the hub would make a registration without it.
func TestOrphanNeedsARegistration(t *testing.T) {
	if _, err := onHub(made()).Departure(t.Context(), edge1, true, false); err == nil || !strings.Contains(err.Error(), "--orphan") {
		t.Error(err)
	}
}

// Another registration is reached by the Secret of the one that leaves: what it needs stays, and that is said before and after.
func TestSecretThatAnotherRegistrationUses(t *testing.T) {
	reported := registration("canary", nil)
	reported.Status.Credential = &hubv1.CredentialStatus{SecretName: "edge1", Key: "value"}
	for name, tc := range map[string]struct {
		other *hubv1.ClusterRegistration
		late  bool
		stays bool
		err   string
	}{
		"ByHand":          {byHand("canary", "edge1"), false, true, ""},
		"ByHandMeanwhile": {byHand("canary", "edge1"), true, true, ""},
		"InUse":           {reported, false, true, ""},
		"AnotherSecret":   {byHand("canary", "edge2"), false, false, ""},
		"ItsOrigin":       {registration("edge1-secret", fromSecret("edge1")), false, true, "fleet/edge1-secret: nothing is changed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := made()
			s.Labels[hubv1.RegisterLabel] = "false"
			r := onHub(s)
			create := func() {
				must.Do(t, r.Hub.Client.Create(t.Context(), tc.other))
			}
			if !tc.late {
				create()
			}
			d, err := r.Departure(t.Context(), edge1, false, true)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			var b strings.Builder
			if err := d.Print(&b); err != nil || strings.Contains(b.String(), "because ClusterRegistration fleet/canary uses them") != (tc.stays && !tc.late) {
				t.Errorf("%v, it would do\n%s", err, b.String())
			}
			if tc.late {
				create()
			}
			must.Do(t, leave(t, r, d))
			if err := r.Hub.Client.Get(t.Context(), edge1, &corev1.Secret{}); (err == nil) != tc.stays {
				t.Errorf("the Secret: %v\n%s", err, r.Out)
			}
		})
	}
}

// A former run has removed the account, and the Secret is still there. The cluster refuses the token, and goes on to refuse it.
func TestAccountThatIsGone(t *testing.T) {
	later, before := began.Add(time.Hour), began.Add(-time.Minute)
	for name, tc := range map[string]struct {
		expires time.Time
		codes   []int
		admin   bool
		err     string
	}{
		"Refused":                  {later, []int{http.StatusUnauthorized}, false, ""},
		"RefusedAndExpired":        {before, []int{http.StatusUnauthorized}, false, "has expired"},
		"RefusedWithoutAnEnd":      {time.Time{}, []int{http.StatusUnauthorized}, false, "has expired"},
		"RefusedToAnAdministrator": {later, []int{http.StatusUnauthorized}, true, "look which cluster it is"},
		"RefusedForAMoment":        {later, []int{http.StatusUnauthorized, http.StatusServiceUnavailable}, false, "look which cluster it is"},
		"Forbidden":                {later, []int{http.StatusForbidden}, false, "look which cluster it is"},
		"ForbiddenAtFirst":         {later, []int{http.StatusForbidden, http.StatusUnauthorized}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := made()
			s.Labels[hubv1.RegisterLabel] = "false"
			answering(t, s, tc.expires, tc.codes...)
			r := onHub(s)
			if tc.admin {
				config := must.Get(kubeconfig.Parse(s.Data[account.SecretKey], account.Lenient())).Or(t)
				r.Cluster = config.RESTConfig()
			}
			d := departure(t, r)
			err := leave(t, r, d)
			if (err == nil) != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), "These stay")) {
				t.Errorf("%v\n%s", err, r.Out)
			}
			if err := r.Hub.Client.Get(t.Context(), edge1, &corev1.Secret{}); (err == nil) != (tc.err != "") {
				t.Errorf("the Secret: %v", err)
			}
			if said := fmt.Sprint(r.Out); tc.err == "" && (!strings.Contains(said, "the account is gone") || !strings.Contains(said, "kubectl delete clusterrolebinding")) {
				t.Errorf("it says\n%s", said)
			}
		})
	}
}
