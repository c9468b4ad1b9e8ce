// SPDX-License-Identifier: Apache-2.0

package register

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/must"
)

// What applies the origin from Git sets the label back. The hub then makes the registration again, and reaches the cluster by the
// account: that the registration is absent at one look is no sign that it has gone.
func TestLabelIsSetBack(t *testing.T) {
	reg, s := registration("edge1", fromSecret("edge1")), made()
	s.Labels["kustomize.toolkit.fluxcd.io/name"], s.Labels["kustomize.toolkit.fluxcd.io/namespace"] = "clusters", "flux-system"
	asked := answering(t, s, began.Add(time.Hour), http.StatusServiceUnavailable)
	r := onHub(reg, s)
	looks := 0
	r.Hub.Client = interceptor.NewClient(r.Hub.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*hubv1.ClusterRegistration); ok && looks > 0 {
				if looks++; looks > 2 {
					return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
				}
			}
			return c.Get(ctx, key, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			err := c.Patch(ctx, o, p, opts...)
			if looks++; err == nil {
				change := []byte(`{"metadata":{"labels":{"chandler.dev/register":"true"}}}`)
				err = c.Patch(ctx, o, client.RawPatch(types.MergePatchType, change))
			}
			return err
		},
	})
	d := departure(t, r)
	var b strings.Builder
	if err := d.Print(&b); err != nil || !strings.Contains(b.String(), "Kustomization flux-system/clusters of Flux applies this object") {
		t.Errorf("%v, it would do\n%s", err, b.String())
	}
	err := leave(t, r, d)
	if err == nil || !strings.Contains(err.Error(), `Kustomization flux-system/clusters of Flux has set label`) || asked.Load() > 0 {
		t.Errorf("asked %d times: %v\n%s", asked.Load(), err, r.Out)
	}
	if err := r.Hub.Client.Get(t.Context(), edge1, &corev1.Secret{}); err != nil {
		t.Error(err)
	}
}

// What it waits for is said when it is so, and once more at the end: not what was so before the hub was asked.
func TestWaiting(t *testing.T) {
	condition := func(typ string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: typ, Status: status, Reason: reason, Message: message}
	}
	now := metav1.Now()
	ready := condition(hubv1.ReadyCondition, metav1.ConditionTrue, hubv1.SucceededReason, "all 2 add-ons are Ready")
	leaving := condition(hubv1.ReadyCondition, metav1.ConditionFalse, hubv1.TerminatingReason, "it is unregistered; 2 deliveries left")
	silent := condition(hubv1.ReachableCondition, metav1.ConditionFalse, "TimedOut", "no answer")
	for name, tc := range map[string]struct {
		deleted, orphan bool
		conditions      []metav1.Condition
		says, not       string
	}{
		"HubIsDown":         {false, false, []metav1.Condition{ready}, "the hub has not begun", "Ready"},
		"HubIsDownAfterAll": {true, false, []metav1.Condition{ready}, "the hub has not begun", "Ready"},
		"Uninstalls":        {true, false, []metav1.Condition{leaving}, "2 deliveries left", "begun"},
		"Silent":            {true, false, []metav1.Condition{leaving, silent}, "chandler unregister fleet/edge1 --orphan", "--leave-account"},
		"SilentOrphan":      {true, true, []metav1.Condition{leaving, silent}, "the cluster does not answer (no answer). The hub goes on", "--orphan"},
	} {
		t.Run(name, func(t *testing.T) {
			reg := byHand("edge1", "elsewhere")
			reg.Status.Conditions = tc.conditions
			reg.Finalizers = []string{hubv1.Finalizer}
			if tc.deleted {
				reg.DeletionTimestamp = &now
			}
			r := onHub(reg)
			r.Wait = 1100 * time.Millisecond
			d := &Departure{Name: edge1, Orphan: tc.orphan, reg: reg}
			if tc.orphan {
				reg.Spec.DeletionPolicy = hubv1.DeletionPolicyOrphan
			}
			var err error
			synctest.Test(t, func(t *testing.T) { err = r.gone(t.Context(), d) })
			if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), tc.not) {
				t.Errorf("%v\n%s", err, r.Out)
			}
			if out := r.Out.(*bytes.Buffer).String(); strings.Contains(out, tc.not) || strings.Count(out, "\n") == 0 {
				t.Errorf("it says\n%s", out)
			}
		})
	}
}

// Somebody who stops the command is told what goes on all the same.
func TestStopped(t *testing.T) {
	reg := registration("edge1", fromSecret("edge1"))
	r := onHub(reg, made())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := r.gone(ctx, &Departure{Name: edge1, reg: reg})
	if err == nil || !strings.Contains(err.Error(), "the hub goes on") {
		t.Error(err)
	}
}

// What becomes of the add-ons is said before anybody is asked.
func TestDepartureSaysWhatBecomesOfTheAddons(t *testing.T) {
	of := func(name, cluster string, addons int32, orphan hubv1.DeletionPolicy) *hubv1.ClusterRegistration {
		reg := byHand(name, name)
		reg.Spec.DeletionPolicy = orphan
		reg.Status.ClusterUID = types.UID(cluster)
		reg.Status.AddonCounts = &hubv1.ObjectCounts{Total: addons}
		return reg
	}
	for name, tc := range map[string]struct {
		reg, other *hubv1.ClusterRegistration
		orphan     bool
		want       string
	}{
		"One":              {of("edge1", "a", 1, ""), of("other", "b", 1, ""), false, "its 1 add-on is uninstalled from the cluster\n"},
		"Two":              {of("edge1", "a", 2, ""), of("other", "b", 1, ""), false, "its 2 add-ons are uninstalled from the cluster\n"},
		"Orphan":           {of("edge1", "a", 1, ""), of("other", "b", 1, ""), true, "its 1 add-on stays on the cluster without an owner"},
		"OrphanInSpec":     {of("edge1", "a", 2, "Orphan"), of("other", "b", 1, ""), false, "its 2 add-ons stay on the cluster without an owner"},
		"RegisteredTwice":  {of("edge1", "a", 2, ""), of("other", "a", 1, ""), false, "that of ClusterRegistration fleet/other as well"},
		"ClusterIsUnknown": {of("edge1", "", 2, ""), of("other", "", 1, ""), false, "its 2 add-ons are uninstalled"},
	} {
		t.Run(name, func(t *testing.T) {
			d := must.Get(onHub(tc.reg, tc.other).Departure(t.Context(), edge1, tc.orphan, false)).Or(t)
			var b strings.Builder
			if err := d.Print(&b); err != nil || !strings.Contains(b.String(), tc.want) {
				t.Errorf("%v, it would do\n%s", err, b.String())
			}
		})
	}
}
