// SPDX-License-Identifier: Apache-2.0

package register

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// ruled is what becomes of an origin that a rule matches.
type ruled struct {
	namespace, name, kind, rule string
	// result says as what it is registered, or why it is not. registers is true if it is, and its kubeconfig passes.
	result    string
	registers bool
}

// trial tries registration rules on a live hub. It reads, and changes nothing.
type trial struct {
	*live.Reader
	// policy has the rules that are tried. Those that the hub has do not count.
	policy origin.Policy
	// checks are the rules by which the hub checks kubeconfigs.
	checks kubeconfig.Rules
	// namespace is the one to look in; "" for all.
	namespace string
	// notes say what could not be read.
	notes []string

	namespaces map[string]map[string]string
	clusters   map[types.NamespacedName]bool
	byName     map[types.NamespacedName]*hubv1.ClusterRegistration
	byOrigin   map[place]*hubv1.ClusterRegistration
}

// run returns what becomes of all that a rule matches.
func (t *trial) run(ctx context.Context) ([]ruled, error) {
	if err := t.surroundings(ctx); err != nil {
		return nil, err
	}
	var out []ruled
	for _, kind := range origin.Kinds {
		if !t.policy.HasRules(kind) {
			continue
		}
		objects, err := t.list(ctx, kind)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int {
			return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
		})
		for _, obj := range objects {
			if t.policy.Ruling(kind, obj) == nil {
				continue
			}
			one, err := t.one(ctx, kind, obj)
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
	}
	slices.SortStableFunc(out, func(a, b ruled) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	return out, nil
}

// surroundings reads what decides about origins beside themselves.
func (t *trial) surroundings(ctx context.Context) error {
	t.namespaces, t.clusters = map[string]map[string]string{}, map[types.NamespacedName]bool{}
	t.byName, t.byOrigin = map[types.NamespacedName]*hubv1.ClusterRegistration{}, map[place]*hubv1.ClusterRegistration{}
	namespaces := &metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	err := t.Client.List(ctx, namespaces, client.HasLabels{hubv1.RegisterSecretsLabel})
	switch {
	case apierrors.IsForbidden(err):
		t.notes = append(t.notes, "you may not list Namespaces, so what their label "+hubv1.RegisterSecretsLabel+" allows is not known")
	case err != nil:
		return fmt.Errorf("list the Namespaces: %w", err)
	}
	for i := range namespaces.Items {
		t.namespaces[namespaces.Items[i].Name] = namespaces.Items[i].Labels
	}
	clusters, err := t.list(ctx, origin.ClusterAPI)
	if err != nil {
		return err
	}
	for _, c := range clusters {
		t.clusters[client.ObjectKeyFromObject(c)] = true
	}
	registrations := &hubv1.ClusterRegistrationList{}
	if err := t.Client.List(ctx, registrations, client.InNamespace(t.namespace)); err != nil {
		return live.Refused("ClusterRegistrations", t.namespace, err)
	}
	for i := range registrations.Items {
		t.registered(&registrations.Items[i])
	}
	return nil
}

func (t *trial) registered(reg *hubv1.ClusterRegistration) {
	t.byName[client.ObjectKeyFromObject(reg)] = reg
	if ref := reg.Spec.OriginRef; ref != nil {
		t.byOrigin[place{reg.Namespace, *ref}] = reg
	}
}

// place is an origin and its namespace.
type place struct {
	namespace string
	hubv1.OriginReference
}

// list lists the origins of a kind. There are none of a kind that is not installed.
func (t *trial) list(ctx context.Context, kind origin.Kind) ([]*unstructured.Unstructured, error) {
	found, err := t.Origins(ctx, kind, client.InNamespace(t.namespace))
	switch {
	case meta.IsNoMatchError(err):
		if t.policy.HasRules(kind) && kind != origin.ClusterAPI {
			t.notes = append(t.notes, fmt.Sprintf("kind %s is not installed", kind.GroupKind))
		}
		return nil, nil
	case err != nil:
		return nil, live.Refused(kind.Kind+"s", t.namespace, err)
	}
	return found, nil
}

// one says what becomes of an origin.
func (t *trial) one(ctx context.Context, kind origin.Kind, obj *unstructured.Unstructured) (ruled, error) {
	key := client.ObjectKeyFromObject(obj)
	verdict := t.policy.Judge(kind, obj, origin.Around{NamespaceLabels: t.namespaces[key.Namespace], ClusterExists: func(name string) bool {
		return t.clusters[types.NamespacedName{Namespace: key.Namespace, Name: name}]
	}})
	out := ruled{namespace: key.Namespace, name: key.Name, kind: kind.Kind, rule: verdict.By.Rule}
	switch {
	case verdict.AtOnce:
		out.result = fmt.Sprintf("not registered: label %s is \"false\"", hubv1.RegisterLabel)
	case verdict.Refused != "":
		out.result = "not registered: " + verdict.Refused
	case verdict.Origin != teardown.OriginWanted:
		out.result = "not registered: it is being deleted"
	}
	if out.result != "" {
		return out, nil
	}
	reg, result := t.registration(kind, key, verdict)
	if out.result = result; reg == nil {
		return out, nil
	}
	refused, err := t.refused(ctx, kind, obj, reg, verdict)
	if err != nil {
		return out, err
	}
	if out.registers = refused == ""; !out.registers {
		out.result += "; " + refused
	}
	return out, nil
}

// registration returns the one that an origin has or gets, and what to say of it; nil if both names are taken.
func (t *trial) registration(kind origin.Kind, key types.NamespacedName, verdict origin.Verdict) (*hubv1.ClusterRegistration, string) {
	ref := kind.Reference(key.Name)
	if reg := t.byOrigin[place{key.Namespace, ref}]; reg != nil {
		return reg, "is registered as " + reg.Name
	}
	first := verdict.RegistrationName(key.Name)
	for _, name := range origin.RegistrationNames(kind, first) {
		reg := t.byName[types.NamespacedName{Namespace: key.Namespace, Name: name}]
		if reg != nil && reg.Spec.OriginRef == nil && reg.Spec.KubeConfig != nil {
			return nil, fmt.Sprintf("not registered: ClusterRegistration %q was written by hand", name)
		}
		if reg == nil || reg.Spec.OriginRef == nil {
			reg = &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name},
				Spec: hubv1.ClusterRegistrationSpec{OriginRef: &ref}}
			t.registered(reg) // the next one of that name gets another
			return reg, "would be registered as " + name
		}
	}
	return nil, fmt.Sprintf("not registered: other origins have the name %q", first)
}

// refused returns why the kubeconfig of an origin cannot be used, or could not be checked; "" if it passes.
func (t *trial) refused(ctx context.Context, kind origin.Kind, obj *unstructured.Unstructured, reg *hubv1.ClusterRegistration,
	verdict origin.Verdict) (string, error) {
	if reg.Spec.KubeConfig != nil {
		return "", nil // it has its own
	}
	source, err := kind.KubeConfig(obj)
	if err != nil {
		return "it waits for its kubeconfig: " + err.Error(), nil
	}
	source = verdict.Keyed(source)
	secret := &corev1.Secret{}
	err = t.Client.Get(ctx, types.NamespacedName{Namespace: obj.GetNamespace(), Name: source.Secret}, secret)
	switch {
	case apierrors.IsForbidden(err):
		return "its kubeconfig is not checked: you may not read the Secret", nil
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("it waits for its kubeconfig: there is no Secret %q", source.Secret), nil
	case err != nil:
		return "", fmt.Errorf("read Secret %s/%s: %w", obj.GetNamespace(), source.Secret, err)
	}
	checks := (&hubconfig.Config{Rules: t.checks}).RulesFor(reg)
	checks.Context = source.Context
	keys, err := kubeconfig.Keys(secret.Data, source.Key, source.Candidates)
	if err != nil {
		return "its kubeconfig is refused: " + err.Error(), nil
	}
	why := ""
	for _, key := range keys {
		if _, err := kubeconfig.Parse(secret.Data[key], checks); err != nil {
			why = fmt.Sprintf("its kubeconfig is refused: key %s: %s", key, err)
			continue
		}
		return "", nil
	}
	return why, nil
}
