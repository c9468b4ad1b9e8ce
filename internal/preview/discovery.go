// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// discovery makes the registrations of origins, as the discovery and registration controllers do.
type discovery struct {
	policy        origin.Policy
	registrations map[key]*member
	byOrigin      map[key]*member // the same ones, by the origin that they name
	origins       map[key]*unstructured.Unstructured
	namespaces    map[string]map[string]string // labels of namespaces that say something of registering
	order         []key                        // of the origins in the files: the first of one name keeps it
	warn          func(format string, args ...any)
	errs          []error
}

func newDiscovery(policy origin.Policy, warn func(format string, args ...any)) *discovery {
	return &discovery{
		policy: policy, warn: warn, registrations: map[key]*member{}, byOrigin: map[key]*member{}, origins: map[key]*unstructured.Unstructured{},
		namespaces: map[string]map[string]string{},
	}
}

func (d *discovery) run() {
	for _, k := range d.names() {
		if ref := d.registrations[k].registration.Spec.OriginRef; ref != nil {
			at := key{schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}, k.namespace, ref.Name}
			if d.byOrigin[at] == nil {
				d.byOrigin[at] = d.registrations[k]
			}
		}
	}
	for _, k := range d.order {
		d.register(k, d.origins[k])
	}
	for _, k := range d.names() {
		d.complete(d.registrations[k])
	}
}

func (d *discovery) names() []key {
	return slices.SortedFunc(maps.Keys(d.registrations), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
}

// register finds or makes the registration of an origin that is labelled.
func (d *discovery) register(k key, obj *unstructured.Unstructured) {
	kind, err := origin.KindOf(hubv1.OriginReference{APIGroup: k.Group, Kind: k.Kind, Name: k.name})
	if err != nil {
		return
	}
	verdict := d.policy.Judge(kind, obj, origin.Around{NamespaceLabels: d.namespaces[k.namespace], ClusterExists: func(name string) bool {
		return d.origins[key{origin.ClusterAPI.GroupKind, k.namespace, name}] != nil
	}})
	what := fmt.Sprintf("%s %s/%s", k.Kind, k.namespace, k.name)
	m := d.byOrigin[k]
	if verdict.Origin != teardown.OriginWanted {
		switch {
		case verdict.Refused != "":
			d.warn("%s is not registered: %s", what, verdict.Refused)
		case m != nil:
			d.warn("ClusterRegistration %s: its origin, %s, does not ask for it, and the hub would let the cluster go; label it %s: \"true\"", m,
				what, hubv1.RegisterLabel)
		}
		return
	}
	if m == nil {
		first := verdict.RegistrationName(k.name)
		if m = d.create(kind, k, first); m == nil {
			d.warn("%s is not registered: ClusterRegistrations %q and %q are there and belong to other origins", what, first,
				origin.RegistrationNames(kind, first)[1])
			return
		}
	}
	addLabels(m.registration, origin.CopiedLabels(verdict.By.Over(obj.GetLabels())))
}

// create returns the registration of an origin. It has the first name, or that name with the kind if another
// origin has the first; it is nil if both are taken. A registration that exists without an originRef was written for
// the origin.
func (d *discovery) create(kind origin.Kind, k key, first string) *member {
	ref := kind.Reference(k.name)
	for _, name := range origin.RegistrationNames(kind, first) {
		at := key{registrationKind, k.namespace, name}
		m := d.registrations[at]
		if m == nil {
			m = &member{registration: &hubv1.ClusterRegistration{}}
			m.registration.Namespace, m.registration.Name = k.namespace, name
			d.registrations[at] = m
			if name != first {
				d.warn("%s %s/%s is registered as %q: the name is taken by an origin that comes earlier in the files. The hub gives it to whichever "+
					"it saw first", k.Kind, k.namespace, k.name, name)
			}
		}
		if m.registration.Spec.OriginRef == nil {
			m.registration.Spec.OriginRef, d.byOrigin[k] = &ref, m
			return m
		}
	}
	return nil
}

// complete adds what the hub would find out about a cluster, as far as the files tell it.
func (d *discovery) complete(m *member) {
	reg := m.registration
	provider, err := origin.Provider(&reg.Spec)
	if err != nil {
		d.errs = append(d.errs, errors.New(oneLine(fmt.Sprintf("ClusterRegistration %s: %s", m, err))))
		return
	}
	if ref := reg.Spec.OriginRef; ref != nil {
		m.origin = d.origins[key{schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}, reg.Namespace, ref.Name}]
	}
	addLabels(reg, map[string]string{hubv1.ProviderLabel: provider})
	if len(reg.Name) <= validation.LabelValueMaxLength {
		addLabels(reg, map[string]string{hubv1.NameLabel: reg.Name})
	}
	if reg.Status.Provider == "" {
		reg.Status.Provider = provider
	}
	if kc := reg.Spec.KubeConfig; reg.Status.Endpoint == "" && kc != nil && kc.WorkloadIdentity != nil {
		reg.Status.Endpoint = kc.WorkloadIdentity.Address
	}
	if reg.Status.KubernetesVersion == "" {
		reg.Status.KubernetesVersion = kubernetesVersion(m.origin)
	}
	if v, err := version.ParseGeneric(reg.Status.KubernetesVersion); err == nil {
		setLabel(reg, hubv1.KubernetesMinorLabel, fmt.Sprintf("%d.%d", v.Major(), v.Minor()))
	}
}

// kubernetesVersion returns the version that an origin asks for. The hub itself reads it from the cluster.
func kubernetesVersion(obj *unstructured.Unstructured) string {
	if obj == nil {
		return ""
	}
	gk := obj.GroupVersionKind().GroupKind()
	kind, err := origin.KindOf(hubv1.OriginReference{APIGroup: gk.Group, Kind: gk.Kind})
	if err != nil {
		return ""
	}
	return kind.KubernetesVersion(obj)
}

// addLabels adds labels to a registration, and keeps those that somebody has written there.
func addLabels(reg *hubv1.ClusterRegistration, labels map[string]string) {
	for k, v := range labels {
		if _, ok := reg.Labels[k]; !ok {
			setLabel(reg, k, v)
		}
	}
}

func setLabel(reg *hubv1.ClusterRegistration, name, value string) {
	if reg.Labels == nil {
		reg.Labels = map[string]string{}
	}
	reg.Labels[name] = value
}
