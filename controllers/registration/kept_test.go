// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index/indextest"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// TestDeletedWithASpec: a registration that is deleted while its origin wants it is made again. What somebody wrote into it would be gone
// then, so it stays until somebody has looked.
func TestDeletedWithASpec(t *testing.T) {
	orphan := hubv1.ClusterRegistrationSpec{DeletionPolicy: hubv1.DeletionPolicyOrphan}
	for name, tc := range map[string]struct {
		spec   hubv1.ClusterRegistrationSpec
		origin teardown.Origin
		with   string
		want   string
		labels map[string]string
	}{
		"NothingWritten":      {hubv1.ClusterRegistrationSpec{DeletionPolicy: hubv1.DeletionPolicyDelete}, teardown.OriginWanted, "", "", nil},
		"Orphan":              {orphan, teardown.OriginWanted, "", "without spec.deletionPolicy: it stays", nil},
		"PausedWithOverrides": {hubv1.ClusterRegistrationSpec{Pause: &hubv1.Pause{}, Overrides: []hubv1.Override{{Name: "a"}}}, teardown.OriginWanted, "", "without spec.overrides, spec.pause: it stays", nil},
		"SomebodyHasLooked":   {orphan, teardown.OriginWanted, hubv1.DiscardSpecAnnotation, "", nil},
		"Forced":              {orphan, teardown.OriginWanted, hubv1.ForceUnregisterAnnotation, "", nil},
		"Unregistered":        {orphan, teardown.OriginUnwanted, "", "", nil},
		"LabelOfItsOwn":       {hubv1.ClusterRegistrationSpec{}, teardown.OriginWanted, "", "without label region, label tier: it stays", map[string]string{"tier": "prod", "region": "eu", "from": "origin"}},
		"LabelsOfItsOrigin":   {hubv1.ClusterRegistrationSpec{}, teardown.OriginWanted, "", "", map[string]string{"tier": "test", "from": "origin", hubv1.NameLabel: "one"}},
		"AMarkOfATool":        {hubv1.ClusterRegistrationSpec{}, teardown.OriginWanted, "", "", map[string]string{"argocd.argoproj.io/instance": "fleet"}},
		"OriginDeleted":       {orphan, teardown.OriginDeleting, "", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := hubscheme.New()
			b := fake.NewClientBuilder().WithScheme(scheme)
			for _, o := range []client.Object{&corev1.Namespace{}, &apiextensionsv1.CustomResourceDefinition{}} {
				b = b.WithIndex(o, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} })
			}
			now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
			api := indextest.All(b).Build()
			r := &Reconciler{Client: api, Live: api, Config: &hubconfig.Config{}, Clock: clocktesting.NewFakePassiveClock(now)}
			ref := origin.Kamaji.Reference("one")
			tc.spec.OriginRef = &ref
			reg := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{
				Namespace: "fleet", Name: "one", Labels: tc.labels, Finalizers: []string{hubv1.RegistrationFinalizer}, DeletionTimestamp: &metav1.Time{Time: now},
			}, Spec: tc.spec}
			if tc.with != "" {
				reg.Annotations = map[string]string{tc.with: "true"}
			}
			obj := &unstructured.Unstructured{}
			obj.SetLabels(map[string]string{"tier": "test", "from": "origin"})
			stays, err := r.stays(t.Context(), reg, obj, origin.Verdict{Origin: tc.origin})
			if err != nil || (stays != "") != (tc.want != "") {
				t.Fatalf("stays: %q (%v)", stays, err)
			}
			status.Summarize(reg, status.Summary{Phase: status.Done, Reason: hubv1.SucceededReason}, now)
			r.keep(reg, obj, stays)
			c := status.Find(reg, hubv1.DeletionHeldCondition)
			if stays != "" && (c == nil || !strings.Contains(c.Message, tc.want) || status.IsTrue(reg, hubv1.ReadyCondition)) || stays == "" && c != nil {
				t.Errorf("it says %+v", c)
			}
		})
	}
}
