// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/chandler-hub/chandler/internal/hubconfig"

	"github.com/Masterminds/semver/v3"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

const (
	// oldest is the oldest Kubernetes of a management cluster: it has the admission policies.
	oldest = "1.30.0"
	// managedBy is Helm's label on what it has installed, release the annotation with the name.
	managedBy = "app.kubernetes.io/managed-by"
	release   = "meta.helm.sh/release-name"
	// kustomization is a label of Flux on what it applies.
	kustomization = "kustomize.toolkit.fluxcd.io/name"
)

// There is what is found on a management cluster before anything is written.
type There struct {
	// Kubernetes is the version of its API server.
	Kubernetes string
	// Deployment is the hub's, in the namespace of the installation; nil if there is none.
	Deployment *appsv1.Deployment
	// Leads says that a hub of the namespace lives.
	Leads bool
	// Elsewhere is the namespace of another hub, which has the Lease; "" if there is none.
	Elsewhere string
	// HubID is what a hub of the namespace has published; "" if none has.
	HubID string
	// Unknown are fields of installed CRDs of ours that this build does not have, by the CRD.
	Unknown map[string][]string
	// FluxCRDs says that the kinds that the hub writes are there.
	FluxCRDs bool
}

// Owner returns why the objects of a hub are not for this command to change, and what to do: another tool applies them. nil if no other
// tool does.
func Owner(d *appsv1.Deployment) error {
	if d == nil {
		return nil
	}
	if d.Labels[managedBy] == "Helm" {
		name := d.Annotations[release]
		if name == "" {
			name = d.Name
		}
		return fmt.Errorf("Deployment %[1]s/%[2]s was installed by Helm: go on with helm upgrade %[3]s or helm uninstall %[3]s, in namespace "+
			"%[1]s. To go over to this command, run helm uninstall first: the CRDs, the sets and the add-ons stay (docs/uninstall.md)",
			d.Namespace, d.Name, name)
	}
	if name := d.Labels[kustomization]; name != "" {
		return fmt.Errorf("Deployment %s/%s is applied by Flux, from Kustomization %s/%s: change it in Git, or it is set back. "+
			"chandler install --export prints the YAML", d.Namespace, d.Name, d.Labels["kustomize.toolkit.fluxcd.io/namespace"], name)
	}
	return nil
}

// Refuse returns why a hub cannot be installed, and what to do; nil if it can. hubID is that of the new one, build the version of this
// command line, "" for one that is no release. skew allows versions that do not fit.
func Refuse(there There, o Options, hubID, build string, skew bool) error {
	if err := Owner(there.Deployment); err != nil {
		return err
	}
	if v, err := version.ParseGeneric(there.Kubernetes); err == nil && v.LessThan(version.MustParseGeneric(oldest)) {
		return fmt.Errorf("the management cluster is Kubernetes %s, and the hub needs 1.30 or newer: upgrade it first", there.Kubernetes)
	}
	if there.Elsewhere != "" {
		return fmt.Errorf("a hub is on this management cluster already, in namespace %s, and two undo each other's work: upgrade that one with "+
			"--namespace, or uninstall it first (docs/uninstall.md). If it is gone: kubectl -n %s delete lease %s", there.Elsewhere,
			hubconfig.LeaseNamespace, hubconfig.LeaseName)
	}
	if there.HubID != "" && there.HubID != hubID {
		return fmt.Errorf("the hub in namespace %s has --hub-id=%s, and would get %s: the ID never changes while add-ons are delivered. "+
			"Write -- --hub-id=%s", o.Namespace, there.HubID, hubID, there.HubID)
	}
	if skew {
		return nil
	}
	return errors.Join(there.skew(o.Image, build), there.unknown())
}

// skew refuses an image that does not fit this build, and one that is older than what runs.
func (t There) skew(image, build string) error {
	const anyway = ", or write --allow-skew if you know that they fit"
	to, released := Tag(image)
	if mine, err := semver.NewVersion(build); err == nil && released && !to.Equal(mine) {
		return fmt.Errorf("the image is v%s, and the manifests in this command line are those of %s: take chandler v%s%s", to, build, to, anyway)
	}
	if t.Deployment == nil || len(t.Deployment.Spec.Template.Spec.Containers) == 0 {
		return nil
	}
	from, known := Tag(t.Deployment.Spec.Template.Spec.Containers[0].Image)
	if released && known && to.LessThan(from) {
		return fmt.Errorf("hub v%s is installed, and the image is v%s, which is older: take a newer one. docs/upgrade.md says what going back "+
			"means; --allow-skew does it", from, to)
	}
	return nil
}

// unknown refuses CRDs that are newer than this build: the API server would drop what is written into their new fields.
func (t There) unknown() error {
	var all []error
	for name, fields := range t.Unknown {
		all = append(all, fmt.Errorf("CRD %s has fields that this command line does not know, such as %s, and the API server would drop what is "+
			"written there: take the command line of the hub's version, or write --allow-skew", name, fields[0]))
	}
	return errors.Join(all...)
}

// ParseImage takes an image apart into the last part of its name, its tag and its digest.
func ParseImage(image string) (name, tag, digest string) {
	image, digest, _ = strings.Cut(image, "@")
	name, tag, _ = strings.Cut(path.Base(image), ":")
	return name, tag, digest
}

// Tag returns the version that the tag of an image is; false if it is none.
func Tag(image string) (*semver.Version, bool) {
	_, tag, _ := ParseImage(image)
	v, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
	return v, err == nil
}

// CheckImage refuses an image that names no version: the manifests fit one.
func CheckImage(image string) error {
	_, tag, digest := ParseImage(image)
	switch {
	case image == "":
		return errors.New("--image: say which image the hub has, such as registry.example.org/chandler-hub:v0.1.0: this command line is no " +
			"release, and knows none (docs/install.md)")
	case strings.ContainsAny(image, " \t\n\"'"):
		return fmt.Errorf("--image %q is no image", image)
	case tag == "" && digest == "":
		return fmt.Errorf("--image %s has no tag and no digest: the manifests fit one version, and it says which", image)
	}
	return nil
}
