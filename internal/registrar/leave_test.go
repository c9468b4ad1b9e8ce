// SPDX-License-Identifier: Apache-2.0

package registrar

import (
	"bytes"
	"strings"
	"testing"
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
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/origin"
)

const hubID = "chandler"

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
	r := &Registrar{Out: &bytes.Buffer{}, Wait: 3 * time.Second}
	r.Hub = live.Reader{Client: fake.NewClientBuilder().WithScheme(s).WithRESTMapper(m).WithObjects(objects...).Build()}
	r.Hub.Hub.HubID = hubID
	return r
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
			if err := d.Print(&b); err != nil {
				t.Fatal(err)
			}
			if (d.secret != nil) != tc.takes || strings.Contains(b.String(), "Secret fleet/edge1: deleted") != tc.takes {
				t.Errorf("it would do\n%s", b.String())
			}
		})
	}
}
