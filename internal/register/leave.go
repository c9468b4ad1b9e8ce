// SPDX-License-Identifier: Apache-2.0

package register

import (
	"context"
	"encoding/json"
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
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/origin"
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
	// others are registrations of the same cluster that may go on with its add-ons.
	others []string
	// user is another registration that serves a cluster by the Secret, which stays then, and the account too; "" if there is none.
	user string
}

// Departure finds out what there is to unregister under a name. It changes nothing.
func (r *Registrar) Departure(ctx context.Context, name types.NamespacedName, orphan, leaveAccount bool) (*Departure, error) {
	d := &Departure{Name: name, Orphan: orphan, LeaveAccount: leaveAccount}
	var err error
	if d.reg, err = r.registered(ctx, name); meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the hub's API server has no ClusterRegistrations, so %w: choose another one by --kubeconfig or "+
			"--context", live.ErrNoHub)
	}
	if err != nil {
		return nil, err
	}
	if d.reg != nil {
		if err := r.originOf(ctx, d); err != nil {
			return nil, err
		}
		if err := r.othersOf(ctx, d); err != nil {
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
	var err error
	if d.user, err = r.userOf(ctx, d); err != nil || d.reg != nil {
		return err
	}
	if d.Orphan && s.Labels[hubv1.RegisterLabel] != "false" {
		return fmt.Errorf("there is no ClusterRegistration %s that --orphan could be written into, and Secret %s asks for one: run the "+
			"command again when the hub has made it, or without --orphan if nothing is delivered there", d.Name, key)
	}
	d.origin = &unstructured.Unstructured{}
	d.origin.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(origin.Secret.Kind))
	d.origin.SetNamespace(s.Namespace)
	d.origin.SetName(s.Name)
	d.origin.SetUID(s.UID)
	d.origin.SetLabels(s.Labels)
	return nil
}

// userOf names a registration that is reached by the Secret, and does not leave; "" if there is none.
func (r *Registrar) userOf(ctx context.Context, d *Departure) (string, error) {
	list := &hubv1.ClusterRegistrationList{}
	if err := r.Hub.Client.List(ctx, list, client.InNamespace(d.secret.Namespace)); err != nil {
		return "", fmt.Errorf("look whether another registration uses Secret %s/%s: %w", d.secret.Namespace, d.secret.Name, err)
	}
	for i := range list.Items {
		reg := &list.Items[i]
		ref, own, c := reg.Spec.OriginRef, reg.Spec.KubeConfig, reg.Status.Credential
		switch {
		case reg.Name == d.Name.Name:
		case own == nil && ref != nil && *ref == origin.Secret.Reference(d.secret.Name):
			return "", fmt.Errorf("Secret %s/%s registers ClusterRegistration %s/%s: nothing is changed; unregister that one",
				d.secret.Namespace, d.secret.Name, reg.Namespace, reg.Name)
		case own != nil && own.SecretRef != nil && own.SecretRef.Name == d.secret.Name, c != nil && c.SecretName == d.secret.Name:
			return fmt.Sprintf("ClusterRegistration %s/%s", reg.Namespace, reg.Name), nil
		}
	}
	return "", nil
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
	d.origin.SetUID(m.UID)
	d.origin.SetLabels(m.Labels)
	return nil
}

// Print says what unregistering will do.
func (d *Departure) Print(out io.Writer) error {
	var b strings.Builder
	if d.reg != nil {
		fmt.Fprintf(&b, "ClusterRegistration %s: %s\n", d.Name, d.addons())
	}
	switch {
	case d.origin == nil:
		fmt.Fprintf(&b, "ClusterRegistration %s: deleted\n", d.Name)
	case d.reg == nil:
		fmt.Fprintf(&b, "%s: label %s becomes \"false\"; what the hub still delivers is uninstalled\n", account.Called(d.origin),
			hubv1.RegisterLabel)
	default:
		fmt.Fprintf(&b, "%s: label %s becomes \"false\"\n", account.Called(d.origin), hubv1.RegisterLabel)
	}
	if d.origin != nil {
		if by := applier(d.origin); by != "" {
			fmt.Fprintf(&b, "  %s applies this object: write the label where it has it from, or it is set back\n", by)
		}
	}
	switch {
	case d.secret == nil:
	case d.user != "":
		b.WriteString(d.kept() + "\n")
	default:
		if !d.LeaveAccount {
			fmt.Fprintf(&b, "Namespace %s on the cluster, with the hub's account: deleted\n", d.account.Name)
		}
		fmt.Fprintf(&b, "Secret %s/%s: deleted\n", d.secret.Namespace, d.secret.Name)
	}
	_, err := out.Write([]byte(b.String()))
	return err
}

// kept says what stays for another registration.
func (d *Departure) kept() string {
	return fmt.Sprintf("Secret %s/%s, and Namespace %s on the cluster with the hub's account: stay, because %s uses them. Run the command "+
		"again when that is unregistered", d.secret.Namespace, d.secret.Name, d.account.Name, d.user)
}

// Leave unregisters the cluster. What it has not come to is done by the next run.
func (r *Registrar) Leave(ctx context.Context, d *Departure) error {
	now, err := r.Departure(ctx, d.Name, d.Orphan, d.LeaveAccount) // somebody has taken his time to say yes
	if err != nil {
		return err
	}
	if !d.same(now) {
		return fmt.Errorf("the registration of cluster %s has become another one meanwhile: nothing is changed; run the command again", d.Name)
	}
	d = now
	if err := r.ask(ctx, d); err != nil {
		return err
	}
	if err := r.gone(ctx, d); err != nil {
		return err
	}
	if d.secret == nil {
		return nil
	}
	if d.user, err = r.userOf(ctx, d); err != nil { // again: the add-ons may have taken long
		return err
	}
	if d.user != "" {
		r.say("%s", d.kept())
		return nil
	}
	if err := r.stillUnwanted(ctx, d); err != nil {
		return err
	}
	if !d.LeaveAccount {
		if err := r.removeAccount(ctx, d); err != nil {
			return fmt.Errorf("%w\n%s", err, d.stays())
		}
	}
	// The hub may have renewed the token meanwhile: the UID says that it is the Secret that was looked at.
	if err := apply.Delete(ctx, r.Hub.Client, d.secret); err != nil {
		return fmt.Errorf("delete Secret %s/%s on the hub: %w", d.secret.Namespace, d.secret.Name, err)
	}
	r.say("Secret %s/%s deleted on the hub", d.secret.Namespace, d.secret.Name)
	return nil
}

// stays says what of the account is left, and how to remove it.
func (d *Departure) stays() string {
	return fmt.Sprintf(`ClusterRegistration %[4]s is gone. These stay:
  Namespace and ClusterRoleBinding %[1]s, with the hub's account, on the cluster
  Secret %[2]s/%[3]s on the hub
Run the command again when the cluster answers, or with the rights of its administrator (--cluster-kubeconfig FILE).
Or by hand, on the cluster:
%[5]s
After that, or if the cluster is gone, add --leave-account: it removes the Secret alone.`,
		d.account.Name, d.secret.Namespace, d.secret.Name, d.Name, d.byHand())
}

// byHand returns the commands that remove the account. The binding goes first: whoever makes a namespace of the name again would
// have its rights.
func (d *Departure) byHand() string {
	return fmt.Sprintf(`  kubectl delete clusterrolebinding --ignore-not-found %[1]s %[1]s-self
  kubectl delete namespace %[1]s`, d.account.Name)
}

// same returns whether what is taken is what somebody has said yes to. A registration that was made again from its origin is.
func (d *Departure) same(now *Departure) bool {
	uid := func(o client.Object, none bool) types.UID {
		if none {
			return ""
		}
		return o.GetUID()
	}
	if d.origin == nil && uid(d.reg, d.reg == nil) != uid(now.reg, now.reg == nil) {
		return false
	}
	return uid(d.origin, d.origin == nil) == uid(now.origin, now.origin == nil) &&
		uid(d.secret, d.secret == nil) == uid(now.secret, now.secret == nil)
}

// is returns whether a registration of the name is the one that leaves, or was made again from its origin.
func (d *Departure) is(reg *hubv1.ClusterRegistration) bool {
	ref := reg.Spec.OriginRef
	switch {
	case d.reg != nil && (reg.UID == d.reg.UID || d.reg.Spec.OriginRef == nil):
		return reg.UID == d.reg.UID
	case d.reg != nil:
		return ref != nil && *ref == *d.reg.Spec.OriginRef
	}
	return ref != nil && *ref == origin.Secret.Reference(d.secret.Name)
}

// ask asks the hub to unregister the cluster.
func (r *Registrar) ask(ctx context.Context, d *Departure) error {
	if d.reg != nil {
		if err := r.orphan(ctx, d, d.reg); err != nil {
			return err
		}
	}
	if d.origin == nil {
		if err := apply.Delete(ctx, r.Hub.Client, d.reg); err != nil {
			return fmt.Errorf("delete ClusterRegistration %s: %w", d.Name, err)
		}
		r.say("ClusterRegistration %s deleted", d.Name)
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": d.origin.GetUID(),
		"labels": map[string]string{hubv1.RegisterLabel: "false"}}})
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

// orphan has the hub leave the add-ons on the cluster, if that was asked for.
func (r *Registrar) orphan(ctx context.Context, d *Departure, reg *hubv1.ClusterRegistration) error {
	if !d.Orphan || reg.Spec.DeletionPolicy == hubv1.DeletionPolicyOrphan {
		return nil
	}
	patch := []byte(`{"spec":{"deletionPolicy":"` + string(hubv1.DeletionPolicyOrphan) + `"}}`)
	change := client.RawPatch(types.MergePatchType, patch)
	if err := r.Hub.Client.Patch(ctx, reg.DeepCopy(), change, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("set spec.deletionPolicy of ClusterRegistration %s: %w", d.Name, err)
	}
	r.say("ClusterRegistration %s: spec.deletionPolicy is Orphan", d.Name)
	return nil
}

// accountTime bounds the removal of the account. An API server remembers for ten seconds that it has let somebody in.
const accountTime = time.Minute
