// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/facts"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/document"
)

// revision compiles the revision that a delivery names. The hub renders this revision, and not the set's present
// spec.
func (e *explainer) revision(s *set) (*compile.Program, error) {
	name := s.delivery.Spec.RevisionName
	epoch := 0 // of a name without one: no revision of the hub's has it
	if at := strings.LastIndex(name, "-e"); at >= 0 {
		epoch, _ = strconv.Atoi(name[at+len("-e"):])
	}
	if epoch > render.Epoch {
		return nil, fmt.Errorf("revision %s is for a newer version of the renderer than this command has, so it cannot show who set what: "+
			"use the chandler of the hub's version", name)
	}
	s.frozen = epoch < render.Epoch
	there, err := e.Revision(s.Namespace, name)
	if err != nil {
		return nil, err
	}
	if there == nil {
		return nil, fmt.Errorf("ControllerRevision %s/%s, which AddonDelivery %s names, does not exist; what is delivered stays as it is",
			s.Namespace, name, s.delivery.Name)
	}
	hash, err := compile.ContentHash(there.Data.Raw)
	if err != nil {
		return nil, fmt.Errorf("ControllerRevision %s/%s: %w", s.Namespace, name, err)
	}
	if name != identity.Revision(s.Name, hash, epoch) || s.object == nil || !metav1.IsControlledBy(there, s.object) {
		return nil, fmt.Errorf("ControllerRevision %s/%s, which AddonDelivery %s names, is not what the hub made of AddonSet %s; what is "+
			"delivered stays as it is. Delete it",
			s.Namespace, name, s.delivery.Name, s)
	}
	return compile.Revision(there.Data.Raw, s.author())
}

// render renders a program of a set as the hub does.
func (e *explainer) render(s *set, p *compile.Program, overrides []hubv1.Override, explain bool) (*render.Result, error) {
	reg := types.NamespacedName{Namespace: e.Registration.Namespace, Name: e.Registration.Name}
	target := render.Target{
		HubID: e.HubID, Namespace: s.Namespace, Set: s.Name, Delivery: identity.Delivery(s.Name, reg), Registration: reg, Chart: e.Chart,
	}
	in := &render.Input{
		Cluster: facts.Cluster(e.Registration, e.Origin), Origin: facts.Origin(e.Origin), Identity: facts.Identity(e.Registration),
		Overrides: overrides, ServiceAccount: e.Registration.Spec.ServiceAccountName,
		Releases: e.releases(s, p), Now: e.Now, Explain: explain,
	}
	if s.object != nil {
		in.Metadata = compile.MetadataOf(&s.object.Spec)
	}
	in.Variables, _ = facts.Variables(e.Registration, e.Origin) // notes tell what cannot be read
	return render.Complete(p, target, in, func(ref document.Ref) (document.Document, error) { return e.Document(s.Namespace, ref) })
}

// releases are the Helm releases that the add-ons of a set go on with.
func (e *explainer) releases(s *set, p *compile.Program) map[string]render.Kept {
	if s.delivery == nil {
		return nil
	}
	return assembly.Releases(p, s.Namespace, s.delivery.Name, e.live(), s.delivery.Status.Addons)
}

// live are the Flux objects of the cluster.
func (e *explainer) live() []assembly.Live {
	var out []assembly.Live
	for i := range e.Releases {
		out = append(out, assembly.LiveOf(&e.Releases[i]))
	}
	for i := range e.Kustomizations {
		out = append(out, assembly.LiveOf(&e.Kustomizations[i]))
	}
	return out
}
