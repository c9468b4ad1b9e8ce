// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client" //nolint:depguard // the Object interface

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/render"
)

// fluxObject returns a HelmRelease or Kustomization as its type; nil for anything else. Files also hold templates and patches of Flux
// objects. What does not decode is no object that could be there.
func fluxObject(u *unstructured.Unstructured) client.Object {
	var into client.Object
	switch u.GroupVersionKind().GroupKind() {
	case helmv2.GroupVersion.WithKind(fluxspec.HelmReleaseKind).GroupKind():
		into = &helmv2.HelmRelease{}
	case kustomizev1.GroupVersion.WithKind(fluxspec.KustomizationKind).GroupKind():
		into = &kustomizev1.Kustomization{}
	default:
		return nil
	}
	if len(names(u.Object)) > 0 || u.GetName() == "" || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into) != nil {
		return nil
	}
	if into.GetNamespace() == "" {
		into.SetNamespace("default") // as kubectl would
	}
	return into
}

// there returns the Flux object of the files with a key; nil if there is none.
func (f *Fleet) there(k plan.Key) client.Object {
	for _, o := range f.flux {
		if assembly.KeyOf(o) == k {
			return o
		}
	}
	return nil
}

// dump returns whether the files have Flux objects of a hub.
func (f *Fleet) dump() bool {
	return slices.ContainsFunc(f.flux, func(o client.Object) bool { return o.GetLabels()[hubv1.ClusterKeyLabel] != "" })
}

// live returns the hub's objects for a cluster, as far as the files have them. An object that was made for another cluster of that name
// goes.
func (r *renderer) live(m *member) []assembly.Live {
	key := identity.ClusterKey(r.options.HubID, m.key())
	var out []assembly.Live
	for _, o := range r.fleet.flux {
		if o.GetLabels()[hubv1.ClusterKeyLabel] != key {
			continue
		}
		l := assembly.LiveOf(o)
		made, is := o.GetAnnotations()[hubv1.ClusterUIDAnnotation], m.registration.Status.ClusterID()
		l.Going = l.Going || made != "" && is != "" && made != is
		out = append(out, l)
	}
	return out
}

// login returns the name of the Secret by which a cluster is registered; "" if the files do not say it.
func (m *member) login() string {
	if c := m.registration.Status.Credential; c != nil {
		return c.SecretName
	}
	if kc := m.registration.Spec.KubeConfig; kc != nil && kc.SecretRef != nil {
		return kc.SecretRef.Name
	}
	return ""
}

// handWritten returns the Flux objects of the files that no hub has made.
func (r *renderer) handWritten() map[plan.Key]bool {
	out := map[plan.Key]bool{}
	for _, o := range r.fleet.flux {
		if o.GetLabels()[hubv1.ClusterKeyLabel] == "" {
			out[assembly.KeyOf(o)] = true
		}
	}
	return out
}

// foreign returns the HelmReleases that people wrote for a cluster: those with the kubeconfig that it is registered with.
func (r *renderer) foreign(m *member) []assembly.Foreign {
	name := m.login()
	if name == "" || m.registration.Status.UsesWorkloadIdentity() {
		return nil
	}
	var out []assembly.Foreign
	for _, o := range r.fleet.flux {
		hr, ok := o.(*helmv2.HelmRelease)
		if !ok || hr.Labels[hubv1.ClusterKeyLabel] != "" || hr.Namespace != m.registration.Namespace {
			continue
		}
		if login := assembly.LoginOf(hr); login != nil && login.Name == name {
			out = append(out, assembly.Foreign{Key: assembly.KeyOf(hr), Release: assembly.ReleaseOf(hr)})
		}
	}
	return out
}

// adopt renders a set again if its add-ons take over objects of the files: they go on with the Helm releases of those. It returns the
// errors of add-ons that may not. Which cluster a kubeconfig leads to is not in the files: what an add-on names counts as its cluster's.
func (r *renderer) adopt(m *member, d *delivery, live []assembly.Live, in *render.Input, result *render.Result,
	again func() (*render.Result, error)) (*render.Result, error) {
	failed, anew := map[string]compile.Errors{}, false
	for i := range result.Objects {
		o := &result.Objects[i]
		if !assembly.Adopts(o) || slices.ContainsFunc(live, func(l assembly.Live) bool { return l.Delivery == d.name(m) && l.Addon == o.Addon }) {
			continue
		}
		there := r.fleet.there(plan.Key{Kind: o.Kind, Namespace: o.Adopt.Namespace, Name: o.Adopt.Name})
		if there == nil {
			continue
		}
		if err := assembly.RefuseAdoption(o, there, m.registration.Status.UsesWorkloadIdentity()); err != nil {
			failed[o.Addon] = compile.Errors{err.(compile.Error)} //nolint:errorlint,forcetypeassert // made there, never wrapped
			continue
		}
		if _, kept := in.Releases[o.Addon]; kept {
			continue
		}
		if release, ok := assembly.Adopted(o, there); ok {
			in.Releases[o.Addon], anew = release, true
		}
	}
	if anew {
		var err error
		if result, err = again(); err != nil {
			return nil, err
		}
	}
	for addon, errs := range failed {
		result.Failed[addon] = errs
	}
	return result, nil
}

// stays says that an object stays as it is.
func stays(set, addon string, k plan.Key, why string) Staying {
	return Staying{Note{Set: set, Addon: addon, Reason: oneLine(why)}, k.String()}
}

// owns returns whether an object is of a delivery.
func (d *delivery) owns(m *member, l *assembly.Live) bool {
	return l.Key.Namespace == d.set.Namespace && l.Delivery == d.name(m)
}

// unmade returns why a wanted object is not what is on the hub, with what stays instead; "" if it is what the hub has or makes.
func (s *standing) unmade(w *assembly.Wanted) (note string, there bool) {
	at := slices.IndexFunc(s.live, func(l assembly.Live) bool { return l.Key == assembly.Key(&w.Object) })
	switch {
	case at < 0 && s.paused != "":
		if !s.dump {
			return "it is made or changed " + s.ends, false
		}
		return "it is made " + s.ends, false
	case at < 0 || s.live[at].Hash == w.Hash:
		return "", at >= 0
	case s.paused != "":
		return "it is changed " + s.ends, true
	case w.Once:
		return "it is made once, and then left alone", true
	}
	return "", true
}

// told notes that something was said of an object.
func (s *standing) told(k plan.Key) {
	if s.said == nil {
		s.said = map[plan.Key]bool{}
	}
	s.said[k] = true
}

// held tells of the objects of a delivery that stay as they are because nobody knows what they should be.
func (s *standing) held(m *member, d *delivery, o *assembly.Portion, out *Cluster) {
	for i := range s.live {
		l := &s.live[i]
		if d.owns(m, l) && !l.Going && !o.Yields[l.Key] && assembly.Held(&assembly.Delivery{Result: d.result}, l.Addon) && !s.said[l.Key] {
			s.told(l.Key)
			out.Stays = append(out.Stays, stays(d.String(), l.Addon, l.Key, "it cannot be rendered now"))
		}
	}
}

// left tells of the objects that only a pause keeps.
func (s *standing) left(out *Cluster) {
	for i := range s.live {
		if l := &s.live[i]; s.paused != "" && !l.Going && !s.said[l.Key] {
			out.Stays = append(out.Stays, stays(l.Key.Namespace+"/"+l.Set, l.Addon, l.Key, "it goes "+s.ends))
		}
	}
}

// latest returns when a set and a cluster were both there; zero if that is not known, as of what nobody has applied yet.
func latest(set, registration metav1.Time) time.Time {
	if set.IsZero() || registration.IsZero() {
		return time.Time{}
	}
	if registration.After(set.Time) {
		return registration.Time
	}
	return set.Time
}

// Published returns what the hub says of its own flags, if the files hold it; nil if they do not.
func Published(objects []Object, hubNamespace string) map[string]string {
	for i := range objects {
		if o := &objects[i]; o.Kind == configMapKind && o.Namespace == hubNamespace && o.Name == hubconfig.ConfigMapName && o.Document != nil {
			return o.Document.Data
		}
	}
	return nil
}
