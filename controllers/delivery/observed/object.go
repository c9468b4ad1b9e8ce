// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/assembly"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/fluxstate"
	"github.com/chandler-hub/chandler/internal/plan"
)

// Object is a Flux object.
type Object struct {
	plan.Observed
	State   fluxstate.State
	UID     types.UID
	Version string
	// Uses are the sources and charts that it refers to, as index.Source writes them.
	Uses []string
	// Reads are the copies of what lies beside the cluster that it reads.
	Reads []index.Read
	// Lacks is one of those that Flux waits for and the hub has not made; "" for none.
	Lacks string
	// Refusal is what Flux says of one that it waits for and could not fetch; zero for none.
	Refusal fluxstate.Refusal
	// Deleted is when it was deleted; zero if it was not.
	Deleted time.Time
	// Delivery names the AddonDelivery, in the object's namespace.
	Delivery string
	Orphan   bool
	// Adopter is the namespace of the delivery that takes over a hand-written object; "" if the object is the hub's.
	Adopter string
	// chart is the HelmChart that helm-controller keeps for a hand-written HelmRelease: namespace/name.
	HelmChart string
	// Account is the ServiceAccount that Flux acts as on the cluster; "" for none.
	Account string
	// Kept is the Helm release that it goes on with, whatever its add-on's name; zero for none.
	Kept hubv1.HelmReleaseIdentity
}

// Applies notes what a Kustomization applies, and where. done is the last generation that Flux has applied with success.
func (o *Object) Applies(k *kustomizev1.Kustomization, done int64) {
	o.Content = assembly.ContentOf(k)
	o.Mark = k.Annotations[hubv1.AppliedAsAnnotation]
	o.AppliedAs = plan.ReadMark(o.Mark, done)
}

// NewObject returns an empty object of a kind of Flux, with its name.
func NewObject(k plan.Key) client.Object {
	if k.Kind == fluxspec.HelmReleaseKind {
		o := &helmv2.HelmRelease{}
		o.Namespace, o.Name = k.Namespace, k.Name
		return o
	}
	o := &kustomizev1.Kustomization{}
	o.Namespace, o.Name = k.Namespace, k.Name
	return o
}

func KeyOf(obj client.Object, kind string) plan.Key {
	return plan.Key{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}
