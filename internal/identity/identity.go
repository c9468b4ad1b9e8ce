// SPDX-License-Identifier: Apache-2.0

// Package identity gives every generated object its name. A name depends only on the arguments: it is the same on
// every replica of the hub, after every restart, and for as long as the object lives.
package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// maxName is the longest name of a Flux object that works: Flux copies it into a label value on every object that it
// applies (fluxcd/pkg/ssa, SetOwnerLabels), and a label value holds 63 characters.
const maxName = 63

// ClusterKey returns the value of the cluster-key label: which registration of which hub an object serves.
func ClusterKey(hubID string, registration types.NamespacedName) string {
	return digest(16, "cluster", hubID, registration.Namespace, registration.Name)
}

// FluxObject returns the name of the HelmRelease or Kustomization that delivers an add-on to a cluster:
// <cluster>-<addon>-<8 hex>, at most 63 characters; longer parts are cut, and the hash is longer. The hub's id is in the
// hash, so that two hubs which serve clusters of the same name never prune each other's objects on a cluster that both reach.
func FluxObject(hubID string, registration types.NamespacedName, addon string) string {
	return name(digest(cutHash, "object", hubID, registration.Namespace, registration.Name, addon), registration.Name, addon)
}

// Mirror returns the name of the Secret that holds a registration's kubeconfig beside a set.
func Mirror(hubID string, registration types.NamespacedName) string {
	return name(digest(cutHash, "mirror", hubID, registration.Namespace, registration.Name), registration.Name, "kubeconfig")
}

// Delivery returns the name of the AddonDelivery of a set to a cluster.
func Delivery(set string, registration types.NamespacedName) string {
	return name(digest(cutHash, "delivery", set, registration.Namespace, registration.Name), set, registration.Name)
}

// Revision returns the name of the ControllerRevision for one content of a set, rendered by one epoch.
func Revision(set, contentHash string, epoch int) string {
	return fmt.Sprintf("%s-e%d", join(contentHash, set), epoch)
}

// Chart returns the name of the shared HelmChart of which hash is the content hash.
func Chart(chart, hash string) string {
	return join(hash, "chandler", strings.ToLower(path.Base(chart)))
}

// Source returns the name of the source that a set keeps, of which hash is the content hash.
func Source(set, source, hash string) string { return join(hash, set, source) }

// ChartRepository returns the name of the source of the chart that a hub itself serves.
func ChartRepository(hubID string) string {
	return name(digest(cutHash, "charts", hubID), "chandler", "manifests")
}

// LabelValue returns s if it fits a label value, and else as much of it as fits with a hash.
func LabelValue(s string) string {
	if len(s) <= maxName {
		return s
	}
	return name(digest(cutHash, "label", s), s)
}

// Hash returns a digest of parts, n hexadecimal digits long (at most 64). Parts are told apart: ("a", "bc") and
// ("ab", "c") differ.
func Hash(n int, parts ...string) string { return digest(n, parts...) }

func digest(n int, parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s,", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))[:n]
}

// shortHash and cutHash are how many hex digits of a hash end a name. Whoever chooses the names of registrations can search for one whose
// objects have the names of another's: only where something is cut or cleaned away does he have enough to try, so there the hash has 96 bits.
const shortHash, cutHash = 8, 24

// name returns the parts and as much of the hash, of cutHash digits, as tells them apart, joined by dashes: shortHash if the parts can be read off the
// name, and else all of it. The two never make the same name: their last part differs in length.
func name(hash string, parts ...string) string {
	if whole := strings.Join(parts, "-"); len(whole)+1+shortHash <= maxName && clean(whole, maxName) == whole {
		return whole + "-" + hash[:shortHash]
	}
	return join(hash, parts...)
}

// join returns the parts and the hash joined by dashes, cut so that all of it fits maxName. The last part is the one
// that tells objects of one cluster apart, so it keeps up to half of the room.
func join(hash string, parts ...string) string {
	room := maxName - len(hash) - 1
	head, last := strings.Join(parts[:len(parts)-1], "-"), parts[len(parts)-1]
	if len(parts) == 1 {
		return clean(last, room) + "-" + hash
	}
	if len(head)+1+len(last) > room {
		last = clean(last, max(room/2, room-len(head)-1))
		head = clean(head, room-len(last)-1)
	}
	return clean(head+"-"+last, room) + "-" + hash
}

// clean cuts s to n characters and makes it a DNS-1123 label: some names come from charts and paths, and a dot next
// to a cut or a dash would not be a name. The hash tells apart what this makes alike.
func clean(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, s)
	if len(s) > n {
		s = s[:n]
	}
	return strings.Trim(s, "-")
}
