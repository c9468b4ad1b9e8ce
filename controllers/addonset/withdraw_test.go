// SPDX-License-Identifier: Apache-2.0

package addonset

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/deliverywriter"
	"github.com/chandler-hub/chandler/internal/must"
)

// TestWithdrawalTakenBack: the hub was killed after it had marked a delivery and before it deleted it, and the cluster is selected again.
func TestWithdrawalTakenBack(t *testing.T) {
	marked := deliveryOne(func(d *hubv1.AddonDelivery) { d.Spec.AddonSetRef.UID, d.Spec.Withdrawal = "set", "delivery" })
	if d := newMatcherFixture(t, interceptor.Funcs{}, registrationOne("prod"), marked.DeepCopy()).look(); d.Spec.Withdrawal != "" {
		t.Error("the mark is still there: whoever deletes the delivery now uninstalls its add-ons")
	}
	if d := newMatcherFixture(t, interceptor.Funcs{}, registrationOne("dev"), marked.DeepCopy()).look(); d.Spec.Withdrawal == "" {
		t.Error("the mark of a cluster that is not selected was taken back")
	}
}

// TestWithdrawMarksFirst: a delivery is marked, and then deleted; a hub that is killed in between does both again.
func TestWithdrawMarksFirst(t *testing.T) {
	var did []string
	killed := true
	r := newMatcherFixture(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			did = append(did, "mark")
			return c.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if killed {
				return context.Canceled
			}
			did = append(did, "delete")
			return c.Delete(ctx, obj, opts...)
		},
	}, registrationOne("dev"), deliveryOne(func(d *hubv1.AddonDelivery) { d.Spec.AddonSetRef.UID = "set" }))
	d := r.look()
	if err := deliverywriter.Withdraw(t.Context(), r.api, d, false); err == nil {
		t.Fatal("no error")
	}
	killed = false
	if d = r.look(); d.Withdrawn() {
		t.Fatal("withdrawn without a deletion")
	}
	must.Do(t, deliverywriter.Withdraw(t.Context(), r.api, d, false))
	if d = r.look(); !d.Withdrawn() {
		t.Fatalf("not withdrawn: %+v", d)
	}
	must.Do(t, deliverywriter.Withdraw(t.Context(), r.api, d, false))
	if got, want := len(did), 2; got != want || did[0] != "mark" || did[1] != "delete" {
		t.Errorf("it did %v", did)
	}
}

// TestWithdrawAndLeave: that what is delivered stays is written with the mark, and goes with it.
func TestWithdrawAndLeave(t *testing.T) {
	r := newMatcherFixture(t, interceptor.Funcs{}, registrationOne("dev"), deliveryOne(func(d *hubv1.AddonDelivery) { d.Spec.AddonSetRef.UID = "set" }))
	for _, step := range []struct {
		name   string
		write  func(d *hubv1.AddonDelivery) error
		orphan bool
	}{
		{"marked, and the hub was killed", func(d *hubv1.AddonDelivery) error {
			d.Spec.Withdrawal, d.Annotations = d.UID, map[string]string{hubv1.DeletionPolicyAnnotation: string(hubv1.DeletionPolicyOrphan)}
			return r.api.Update(t.Context(), d)
		}, true},
		{"called off", func(d *hubv1.AddonDelivery) error {
			_, err := deliverywriter.CallOff(t.Context(), r.api, d)
			return err
		}, false},
		{"withdrawn", func(d *hubv1.AddonDelivery) error { return deliverywriter.Withdraw(t.Context(), r.api, d, true) }, true},
	} {
		if err := step.write(r.look()); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := r.look().Orphaned(); got != step.orphan {
			t.Errorf("%s: orphaned is %t", step.name, got)
		}
	}
}

// TestWithdrawWhatIsGoing: somebody has deleted a delivery by hand that its set withdraws now.
func TestWithdrawWhatIsGoing(t *testing.T) {
	r := newMatcherFixture(t, interceptor.Funcs{}, registrationOne("dev"), deliveryOne(func(d *hubv1.AddonDelivery) { d.Spec.AddonSetRef.UID = "set" }))
	d := r.look()
	must.Do(t, r.api.Delete(t.Context(), d))
	if d = r.look(); d.Withdrawn() {
		t.Fatal("a deletion by hand withdraws")
	}
	must.Do(t, deliverywriter.Withdraw(t.Context(), r.api, d, false))
	if d = r.look(); !d.Withdrawn() {
		t.Error("not withdrawn")
	}
}

// TestUnregisteredWithoutASet: the set of a delivery is gone with its finalizer taken off, and the cluster is unregistered. Nothing else
// than the matcher can withdraw it; a delivery whose set is there is left to that set, and its removal guard.
func TestUnregisteredWithoutASet(t *testing.T) {
	for name, gone := range map[string]bool{"Gone": true, "There": false} {
		reg := registrationOne("prod")
		reg.Finalizers, reg.DeletionTimestamp = []string{hubv1.Finalizer}, &metav1.Time{Time: time.Now()}
		reg.Status.Conditions = []metav1.Condition{{Type: hubv1.UnregisteringCondition, Status: metav1.ConditionTrue, Reason: hubv1.UnregisteredReason}}
		r := newMatcherFixture(t, interceptor.Funcs{}, reg, deliveryOne(nil))
		if gone {
			r.delete(setBase())
		}
		if d := r.look(); d.Withdrawn() != gone {
			t.Errorf("%s: withdrawn: %t", name, d.Withdrawn())
		}
	}
}
