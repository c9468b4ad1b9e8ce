// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/token"
)

// dueNow makes the token of a Secret one that is to be renewed now.
func dueNow(t *testing.T) func(*renewable) {
	return func(m *renewable) {
		old := now.Add(-300 * time.Hour)
		m.secret.Annotations = token.Notes{Issued: old, Expires: old.Add(720 * time.Hour), Fingerprint: parse(t, m.secret.Data["value"]).Fingerprint()}.Annotations()
		m.secret.Annotations[hubv1.RenewTokenAnnotation] = "720h"
	}
}

// The timer fires while the Secret is another one. If it is put back at once, the registration controller never knows, and nothing
// else wakes this controller.
func TestOwnTokenOfASecretThatIsAnotherForAMoment(t *testing.T) {
	m := newRenewable(t, dueNow(t))
	m.secret.Data["value"] = []byte(registered("x.y.z"))
	if err := m.api.Update(t.Context(), m.secret); err != nil {
		t.Fatal(err)
	}
	if _, again := m.look(t); again <= 0 || len(m.asked) > 0 {
		t.Errorf("the controller looks again after %s, and has asked %d times", again, len(m.asked))
	}
}

// What the cache says may be old: the Secret that is read live decides.
func TestOwnTokenThatNobodyAsksForAnyMore(t *testing.T) {
	for name, change := range map[string]func(*corev1.Secret){
		"NoAnnotation": func(s *corev1.Secret) { delete(s.Annotations, hubv1.RenewTokenAnnotation) },
		"Copy":         func(s *corev1.Secret) { s.Labels[hubv1.CopyLabel] = "true" },
		"Goes":         func(s *corev1.Secret) { s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: now}, []string{"a/b"} },
	} {
		t.Run(name, func(t *testing.T) {
			m := newRenewable(t, dueNow(t))
			live := m.secret.DeepCopy()
			change(live)
			m.fixture.Live = fake.NewClientBuilder().WithScheme(hubscheme.New()).WithObjects(live).Build()
			if m.look(t); len(m.asked) > 0 {
				t.Error("the hub asks for a token that nobody asks for any more")
			}
		})
	}
}
