// SPDX-License-Identifier: Apache-2.0

package registrar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/account"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/status"
)

// Departure is what unregistering a cluster takes.
type Departure struct {
	Name   types.NamespacedName
	Orphan bool
	// LeaveAccount leaves the hub's account on the cluster, for one that is gone.
	LeaveAccount bool

	reg     *hubv1.ClusterRegistration // nil if it has gone
	origin  *unstructured.Unstructured // nil if there is none
	secret  *corev1.Secret             // that `chandler register` has made; nil if it has not
	account account.Account
}

// Departure finds out what there is to unregister under a name. It changes nothing.
func (r *Registrar) Departure(ctx context.Context, name types.NamespacedName, orphan, leaveAccount bool) (*Departure, error) {
	d := &Departure{Name: name, Orphan: orphan, LeaveAccount: leaveAccount}
	var err error
	if d.reg, err = r.registered(ctx, name); meta.IsNoMatchError(err) {
		return nil, errors.New("the hub's API server has no ClusterRegistrations, so it is not a Chandler hub: choose another one by " +
			"--hub-kubeconfig or --hub-context")
	}
	if err != nil {
		return nil, err
	}
	if d.reg != nil {
		if err := r.originOf(ctx, d); err != nil {
			return nil, err
		}
	}
	if err := r.secretOf(ctx, d); err != nil {
		return nil, err
	}
	if d.reg == nil && d.secret == nil {
		return nil, fmt.Errorf("there is no ClusterRegistration %s on the hub, and no Secret of chandler register", name)
	}
	return d, nil
}

// secretOf reads the Secret that `chandler register` has made for the registration, if there is one. A Secret of the name alone
// may be another cluster's: that of a registration is its origin.
func (r *Registrar) secretOf(ctx context.Context, d *Departure) error {
	key := d.Name
	if d.reg != nil {
		ref := d.reg.Spec.OriginRef
		if ref == nil || ref.Kind != origin.Secret.Kind || d.reg.Spec.KubeConfig != nil {
			return nil
		}
		key.Name = ref.Name
	}
	s := &corev1.Secret{}
	switch err := r.Hub.Client.Get(ctx, key, s); {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return fmt.Errorf("read Secret %s: %w", key, err)
	}
	a := account.Of(r.Hub.Hub.HubID, "", key, "")
	of := s.Annotations[hubv1.AccountAnnotation]
	if of == "" {
		return nil
	}
	if of != a.Key().String() && (d.reg == nil || !d.LeaveAccount) {
		return fmt.Errorf("Secret %s says that the account is ServiceAccount %s, and that of this hub and name is %s: nothing is changed. "+
			"Is it the hub with --hub-id %s?", key, of, a.Key(), r.Hub.Hub.HubID)
	}
	d.secret, d.account = s, a
	return nil
}

// originOf reads the object that a registration comes from, metadata alone.
func (r *Registrar) originOf(ctx context.Context, d *Departure) error {
	ref := d.reg.Spec.OriginRef
	if ref == nil || d.reg.Spec.KubeConfig != nil {
		return nil
	}
	kind, err := origin.KindOf(*ref)
	if err != nil {
		return err
	}
	mapping, err := r.Hub.Client.RESTMapper().RESTMapping(schema.GroupKind(kind.GroupKind))
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find kind %s: %w", kind.Kind, err)
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := r.Hub.Client.Get(ctx, types.NamespacedName{Namespace: d.Name.Namespace, Name: ref.Name}, m); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("read %s %s/%s: %w", kind.Kind, d.Name.Namespace, ref.Name, err)
	}
	d.origin = &unstructured.Unstructured{}
	d.origin.SetGroupVersionKind(mapping.GroupVersionKind)
	d.origin.SetNamespace(m.Namespace)
	d.origin.SetName(m.Name)
	return nil
}

// Print says what unregistering will do.
func (d *Departure) Print(out io.Writer) error {
	var b strings.Builder
	if d.reg != nil {
		fmt.Fprintf(&b, "ClusterRegistration %s: ", d.Name)
		n := ""
		if c := d.reg.Status.AddonCounts; c != nil {
			n = fmt.Sprintf("%d ", c.Total)
		}
		if d.Orphan || d.reg.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan {
			fmt.Fprintf(&b, "its %sadd-ons stay on the cluster, and nobody looks after them any more\n", n)
		} else {
			fmt.Fprintf(&b, "its %sadd-ons are uninstalled from the cluster\n", n)
		}
		switch {
		case d.origin != nil:
			fmt.Fprintf(&b, "%s: label %s becomes \"false\"\n", account.Called(d.origin), hubv1.RegisterLabel)
		default:
			fmt.Fprintf(&b, "ClusterRegistration %s: deleted\n", d.Name)
		}
	}
	if d.secret != nil {
		if !d.LeaveAccount {
			fmt.Fprintf(&b, "Namespace %s on the cluster, with the hub's account: deleted\n", d.account.Name)
		}
		fmt.Fprintf(&b, "Secret %s/%s: deleted\n", d.secret.Namespace, d.secret.Name)
	}
	_, err := out.Write([]byte(b.String()))
	return err
}

// Leave unregisters the cluster. What it has not come to is done by the next run.
func (r *Registrar) Leave(ctx context.Context, d *Departure) error {
	if d.reg != nil {
		if err := r.ask(ctx, d); err != nil {
			return err
		}
		if err := r.gone(ctx, d); err != nil {
			return err
		}
	}
	if d.secret == nil {
		return nil
	}
	if !d.LeaveAccount {
		if err := r.removeAccount(ctx, d); err != nil {
			return fmt.Errorf("%w\n%s", err, d.stays())
		}
	}
	// The hub may have renewed the token meanwhile: the UID says that it is the Secret that was looked at.
	err := r.Hub.Client.Delete(ctx, d.secret, client.Preconditions{UID: &d.secret.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Secret %s/%s on the hub: %w", d.secret.Namespace, d.secret.Name, err)
	}
	r.say("Secret %s/%s deleted on the hub", d.secret.Namespace, d.secret.Name)
	return nil
}

// stays says what of the account is left, and how to remove it.
func (d *Departure) stays() string {
	return fmt.Sprintf(`The add-ons have left. These stay:
  Namespace and ClusterRoleBinding %[1]s, with the hub's account, on the cluster
  Secret %[2]s/%[3]s on the hub
Run the command again when the cluster answers, or with the rights of its administrator (--kubeconfig FILE). By hand, on the cluster:
  kubectl delete namespace %[1]s
  kubectl delete clusterrolebinding %[1]s
If the cluster is gone, add --leave-account.`, d.account.Name, d.secret.Namespace, d.secret.Name)
}

// ask asks the hub to unregister the cluster.
func (r *Registrar) ask(ctx context.Context, d *Departure) error {
	if d.Orphan && d.reg.Spec.DeletionPolicy != hubv1.DeletionPolicyOrphan {
		patch := []byte(`{"spec":{"deletionPolicy":"` + string(hubv1.DeletionPolicyOrphan) + `"}}`)
		if err := r.Hub.Client.Patch(ctx, d.reg, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager)); err != nil {
			return fmt.Errorf("set spec.deletionPolicy of ClusterRegistration %s: %w", d.Name, err)
		}
		r.say("ClusterRegistration %s: spec.deletionPolicy is Orphan", d.Name)
	}
	if d.origin == nil {
		if err := client.IgnoreNotFound(r.Hub.Client.Delete(ctx, d.reg)); err != nil {
			return fmt.Errorf("delete ClusterRegistration %s: %w", d.Name, err)
		}
		r.say("ClusterRegistration %s deleted", d.Name)
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{hubv1.RegisterLabel: "false"}}})
	if err != nil {
		return err
	}
	change := client.RawPatch(types.MergePatchType, patch)
	if err := r.Hub.Client.Patch(ctx, d.origin.DeepCopy(), change, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("label %s: %w", account.Called(d.origin), err)
	}
	r.say("%s labelled %s=false", account.Called(d.origin), hubv1.RegisterLabel)
	return nil
}

// gone waits until the registration has gone, and says what it waits for.
func (r *Registrar) gone(ctx context.Context, d *Departure) error {
	told := map[string]bool{}
	tell := func(line string) {
		if line != "" && !told[line] {
			r.say("%s", line)
		}
		told[line] = true
	}
	last := ""
	err := until(ctx, r.Wait, func(ctx context.Context) (bool, error) {
		reg, err := r.registered(ctx, d.Name)
		if err != nil {
			return false, err
		}
		if reg == nil || reg.UID != d.reg.UID {
			r.say("ClusterRegistration %s is gone", d.Name)
			return true, nil
		}
		if c := status.Find(reg, hubv1.ReadyCondition); c != nil && reg.DeletionTimestamp != nil {
			last = c.Message
			tell(fmt.Sprintf("ClusterRegistration %s: %s", d.Name, c.Message))
		}
		if c := status.Find(reg, hubv1.ReachableCondition); c != nil && c.Status == metav1.ConditionFalse {
			tell(fmt.Sprintf("ClusterRegistration %s: the cluster does not answer (%s); the hub lets the add-ons go when its --teardown-grace "+
				"is over, or at once with: kubectl -n %s annotate clreg %s %s=true", d.Name, c.Message, d.Name.Namespace, d.Name.Name,
				hubv1.ForceUnregisterAnnotation))
		}
		held, err := r.held(ctx, d.Name)
		for _, line := range held {
			tell(line)
		}
		return false, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("ClusterRegistration %s is still there after %s: %s. The hub goes on; run the command again to wait, and to "+
			"remove the rest",
			d.Name, r.Wait, last)
	}
	return err
}

// held returns what removal guards hold on a cluster, and how to approve it.
func (r *Registrar) held(ctx context.Context, name types.NamespacedName) ([]string, error) {
	list := &hubv1.AddonDeliveryList{}
	err := r.Hub.Client.List(ctx, list, client.MatchingLabels{hubv1.ClusterLabel: identity.LabelValue(name.Name)})
	if err != nil {
		if apierrors.IsForbidden(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list the AddonDeliveries: %w", err)
	}
	var out []string
	for i := range list.Items {
		c := status.Find(&list.Items[i], hubv1.RemovalsHeldCondition)
		if list.Items[i].Spec.RegistrationRef.Key() == name && c != nil && c.Status == metav1.ConditionTrue {
			out = append(out, c.Message)
		}
	}
	return out, nil
}

// accountTime bounds the removal of the account. An API server remembers for ten seconds that it has let somebody in.
const accountTime = time.Minute
