// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/render"
)

// TestFromMirror: what is in use counts first, then what Flux had before for the same server. What somebody else put there does not count.
func TestFromMirror(t *testing.T) {
	current := kubeConfigFor("https://192.0.2.1:6443")
	older := []byte(strings.Replace(string(current), "c29tZS1vcGFxdWUtdG9rZW4", "YW5vdGhlci10b2tlbg", 1))
	elsewhere := kubeConfigFor("https://192.0.2.2:6443")
	of := types.NamespacedName{Namespace: "tenants", Name: "one"}
	config := &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}, Rules: lenient}
	mirror := func(namespace string, raw, says []byte) *corev1.Secret {
		parsed, err := kubeconfig.Parse(says, lenient)
		if err != nil {
			t.Fatal(err)
		}
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: identity.Mirror(config.HubID, of),
				Labels:      map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey(config.HubID, of), hubv1.MirrorLabel: "true"},
				Annotations: map[string]string{hubv1.FingerprintAnnotation: parsed.Fingerprint()},
			},
			Data: map[string][]byte{render.MirrorKey: raw},
		}
	}
	renamed := mirror("tenants", current, current)
	renamed.Name = "mine"
	for name, tc := range map[string]struct {
		mirrors []*corev1.Secret
		want    []byte
	}{
		"None":             {nil, nil},
		"InUse":            {[]*corev1.Secret{mirror("flux-system", older, older), mirror("tenants", current, current)}, current},
		"TheOneBefore":     {[]*corev1.Secret{mirror("tenants", older, older)}, older},
		"AnotherServer":    {[]*corev1.Secret{mirror("tenants", elsewhere, elsewhere)}, nil},
		"ItSaysOtherwise":  {[]*corev1.Secret{mirror("tenants", older, current)}, nil},
		"OutOfReach":       {[]*corev1.Secret{mirror("others", current, current)}, nil},
		"UnderAnotherName": {[]*corev1.Secret{renamed}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New()))
			for _, m := range tc.mirrors {
				b = b.WithObjects(m)
			}
			api := b.Build()
			r := &Reconciler{Client: api, Live: api, Config: config}
			inUse, err := kubeconfig.Parse(current, lenient)
			if err != nil {
				t.Fatal(err)
			}
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
			reg.Status.Credential = &hubv1.CredentialStatus{
				SecretName: "one", FromSpec: true, Key: "value", Fingerprint: inUse.Fingerprint(), TargetFingerprint: inUse.TargetFingerprint(),
			}
			got := ""
			found := r.fromMirror(t.Context(), reg, resolution{})
			for _, c := range found.candidates {
				got = c.config.Fingerprint()
			}
			if found.fromSpec != (got != "") {
				t.Errorf("fromSpec is %t, and spec.kubeConfig named what is in use", found.fromSpec)
			}
			want := ""
			if c, err := kubeconfig.Parse(tc.want, lenient); err == nil {
				want = c.Fingerprint()
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
