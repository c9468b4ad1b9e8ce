// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"errors"
	"fmt"
	"strings"
)

// What becomes of the add-ons when the hub is uninstalled.
const (
	// Keep leaves the sets and the Flux objects: a hub that comes back goes on with them.
	Keep = "keep"
	// Remove has the hub uninstall the add-ons first, and unregister the clusters.
	Remove = "remove"
	// Orphan has the hub orphan the add-ons first, and unregister the clusters: what runs stays, and nothing manages it.
	Orphan = "orphan"
)

// Removal is what is known when a hub is to be uninstalled.
type Removal struct {
	Namespace string
	// Addons is what the user has said; "" if nothing.
	Addons string
	// CRDs are to go too.
	CRDs bool
	// Fleet says what there is of sets, Teams and clusters, such as "3 AddonSets"; empty if there is nothing.
	Fleet []string
	// Applied are sets and Teams that Flux applies.
	Applied []string
	// Leads says that a hub of the namespace lives.
	Leads bool
	// Elsewhere is the namespace of another hub, which has the Lease; "" if there is none.
	Elsewhere string
}

// Refuse returns why the hub is not uninstalled, and what to do; nil if it is.
func (r Removal) Refuse() error {
	leaves := r.Addons == Remove || r.Addons == Orphan
	switch {
	case r.CRDs && r.Elsewhere != "":
		return fmt.Errorf("another hub is on this management cluster, in namespace %s, and needs the CRDs: leave out --delete-crds", r.Elsewhere)
	case len(r.Fleet) == 0:
		return nil
	case r.Addons == "":
		return fmt.Errorf(`there are %s: say what becomes of the add-ons.
  --addons=keep    they stay, and so do the sets and the Flux objects: a hub that is installed again goes on
  --addons=remove  the hub uninstalls them first, and unregisters the clusters
  --addons=orphan  what runs on the clusters stays, and is yours to manage; the clusters are unregistered
docs/uninstall.md has more`, and(r.Fleet))
	case r.CRDs && !leaves:
		return errors.New("deleting the CRDs deletes every AddonSet, and nothing says any more what the Flux objects are for: leave out " +
			"--delete-crds, or write --addons=remove or --addons=orphan")
	case leaves && r.Elsewhere != "":
		return fmt.Errorf("another hub is on this management cluster, in namespace %s, and the sets are its: write --addons=keep", r.Elsewhere)
	case leaves && !r.Leads:
		return fmt.Errorf("no hub leads in namespace %s, so nothing would uninstall an add-on: start the hub first, or write --addons=keep",
			r.Namespace)
	case leaves && len(r.Applied) > 0:
		return fmt.Errorf("Flux applies %s, and would make them again: take them out of Git first, or suspend that Kustomization and take off "+
			"its labels", and(r.Applied))
	}
	return nil
}

// and joins words as people do.
func and(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}
