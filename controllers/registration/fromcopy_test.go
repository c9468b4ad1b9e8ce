// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// configOf returns a kubeconfig that passes the rules of these tests.
func configOf(t *testing.T, raw []byte) *kubeconfig.Config {
	t.Helper()
	return must.Get(kubeconfig.Parse(raw, lenient)).Or(t)
}

// kubeconfigOf returns the copy that hub "hub" has in a namespace: it holds one kubeconfig, and its annotation says that it holds another one, or
// the same.
func kubeconfigOf(t *testing.T, of types.NamespacedName, namespace string, raw, says []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: identity.KubeconfigCopy("hub", of),
			Labels:      map[string]string{hubv1.ClusterKeyLabel: identity.ClusterKey("hub", of), hubv1.CopyLabel: "true"},
			Annotations: map[string]string{hubv1.FingerprintAnnotation: configOf(t, says).Fingerprint()},
		},
		Data: map[string][]byte{flux.KubeconfigKey: raw},
	}
}

// TestFromCopy: what is in use counts first, then what Flux had before for the same server. What another writer put there does not count.
func TestFromCopy(t *testing.T) {
	current := kubeConfigFor("https://192.0.2.1:6443")
	older := []byte(strings.Replace(string(current), "c29tZS1vcGFxdWUtdG9rZW4", "YW5vdGhlci10b2tlbg", 1))
	elsewhere := kubeConfigFor("https://192.0.2.2:6443")
	of := types.NamespacedName{Namespace: "tenants", Name: "one"}
	config := &hubconfig.Config{Shared: hubconfig.Shared{HubID: "hub", PlatformNamespaces: []string{"flux-system"}}, Rules: lenient}
	copied := func(namespace string, raw, says []byte) *corev1.Secret {
		return kubeconfigOf(t, of, namespace, raw, says)
	}
	renamed := copied("tenants", current, current)
	renamed.Name = "mine"
	for name, tc := range map[string]struct {
		copies []*corev1.Secret
		want   []byte
	}{
		"None":             {nil, nil},
		"InUse":            {[]*corev1.Secret{copied("flux-system", older, older), copied("tenants", current, current)}, current},
		"TheOneBefore":     {[]*corev1.Secret{copied("tenants", older, older)}, older},
		"AnotherServer":    {[]*corev1.Secret{copied("tenants", elsewhere, elsewhere)}, nil},
		"ItSaysOtherwise":  {[]*corev1.Secret{copied("tenants", older, current)}, nil},
		"OutOfReach":       {[]*corev1.Secret{copied("others", current, current)}, nil},
		"UnderAnotherName": {[]*corev1.Secret{renamed}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := indextest.All(fake.NewClientBuilder().WithScheme(hubscheme.New()))
			for _, m := range tc.copies {
				b = b.WithObjects(m)
			}
			api := b.Build()
			r := &Reconciler{Client: api, Live: api, Config: config}
			inUse := configOf(t, current)
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
			reg.Status.Credential = &hubv1.CredentialStatus{
				SecretName: "one", FromSpec: true, Key: "value", Fingerprint: inUse.Fingerprint(), TargetFingerprint: inUse.TargetFingerprint(),
			}
			got := ""
			found := r.fromCopy(t.Context(), reg, resolution{})
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

// TestACopyThatCannotBeRead: the Secret of a cluster is gone, and the API server does not answer when a hub that has just started reads the
// copy. It reads it again: no event tells when it can, and without that the cluster is not probed.
func TestACopyThatCannotBeRead(t *testing.T) {
	f := newForgetful(t)
	key := types.NamespacedName{Namespace: "tenant", Name: "one"}
	inUse := configOf(t, kubeConfigFor("https://192.0.2.1:6443"))
	raw := kubeConfigFor("https://192.0.2.1:6443")
	f.must(f.api.Create(t.Context(), kubeconfigOf(t, key, "flux-system", raw, raw)))
	reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name,
		Finalizers: []string{hubv1.Finalizer}}}
	reg.Spec.KubeConfig = &hubv1.KubeConfigSource{SecretRef: &hubv1.SecretKeyReference{Name: "gone"}}
	f.must(f.api.Create(t.Context(), reg))
	reg.Status.Credential = &hubv1.CredentialStatus{SecretName: "gone", Key: "value", Fingerprint: inUse.Fingerprint(),
		TargetFingerprint: inUse.TargetFingerprint()}
	f.must(f.api.Status().Update(t.Context(), reg))
	down := true
	f.Live = interceptor.NewClient(f.api.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey,
		obj client.Object, opts ...client.GetOption) error {
		if _, secret := obj.(*corev1.Secret); secret && down {
			return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
		}
		return c.Get(ctx, key, obj, opts...)
	}})
	look := func() bool {
		t.Helper()
		f.must(f.api.Get(t.Context(), key, reg))
		_, err := f.Reconcile(t.Context(), reg)
		return err != nil
	}
	if !look() {
		t.Error("the copy could not be read, and it does not try again")
	}
	down = false
	again := look()
	if is, _ := f.notes.of.Get(key); again || len(is.keys) != 1 {
		t.Errorf("it probes %v", is.keys)
	}
}
