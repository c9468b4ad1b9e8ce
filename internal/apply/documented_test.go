// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/status"
)

// TestDocumented: a condition that needs a person ends with the address of its runbook, however long its message is; saying the same again
// writes nothing, and what quotes it has one address.
func TestDocumented(t *testing.T) {
	const at = "; runbook: https://docs.example.org/runbooks.md#a-set-does-not-compile"
	scheme := runtime.NewScheme()
	must.Do(t, hubv1.AddToScheme(scheme))
	for name, message := range map[string]string{"short": "no such field", "long": strings.Repeat("é", 5000)} {
		t.Run(name, func(t *testing.T) {
			set := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base"}}
			inner := fake.NewClientBuilder().WithScheme(scheme).WithObjects(set).WithStatusSubresource(set).Build()
			c := apply.Documented(inner, "https://docs.example.org")
			var versions []string
			for range 3 {
				before := &hubv1.AddonSet{}
				must.Do(t, c.Get(context.Background(), client.ObjectKeyFromObject(set), before))
				versions = append(versions, before.ResourceVersion)
				after := before.DeepCopy()
				said := message
				if c := status.Find(before, hubv1.ReadyCondition); c != nil {
					said = c.Message // as one who quotes it
				}
				status.Summarize(after, status.Summary{Phase: status.Stalled, Reason: hubv1.InvalidSpecReason, Message: said}, time.Unix(1, 0))
				must.Do(t, apply.Status(context.Background(), c, before, after))
				got := status.Find(after, hubv1.StalledCondition).Message
				if strings.Count(got, at) != 1 || !strings.HasSuffix(got, at) || len([]rune(got)) > status.MaxMessage+len(at) {
					t.Errorf("it ends with …%s", got[max(0, len(got)-200):])
				}
			}
			if versions[0] == versions[1] || versions[1] != versions[2] {
				t.Errorf("it was written at versions %q: want once", versions)
			}
		})
	}
}
