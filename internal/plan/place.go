// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// Place says where Flux puts a workload. When it changes, helm-controller uninstalls the release and installs another
// (DetermineReleaseState), and kustomize-controller prunes what it applied and applies it anew.
type Place struct {
	// Release of a HelmRelease.
	Release hubv1.HelmReleaseIdentity
	// Namespace is where a Kustomization puts what has none.
	Namespace string
}

// Place returns where the object is to put its workload.
func (d *Desired) Place() Place { return Place{d.Release, d.Namespace} }

// Place returns where the object puts its workload now.
func (o *Observed) Place() Place { return Place{o.Release, o.Namespace} }

// String names the place, and tells it from others.
func (p Place) String() string {
	switch {
	case p.Release != hubv1.HelmReleaseIdentity{}:
		return fmt.Sprintf("release %q in namespace %q (records in %q)", p.Release.Name, p.Release.Namespace, p.Release.StorageNamespace)
	case p.Namespace != "":
		return fmt.Sprintf("what it applies into namespace %q", p.Namespace)
	}
	return "what it applies into the namespaces that its manifests name"
}

// asks returns whether the object is to be reinstalled, and the removal guard has not let that through.
func (d *Desired) asks(o *Observed) bool { return d.Place() != o.Place() && !d.MayReinstall }
