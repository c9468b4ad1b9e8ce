// SPDX-License-Identifier: Apache-2.0

// Package identity gives every generated object its name. A name depends only on the arguments: it is the same on
// every replica of the hub, after every restart, and for as long as the object lives.
package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// maxName is the longest name of a Flux object that works: Flux copies the name into a label value on every object
// that it applies (fluxcd/pkg/ssa, SetOwnerLabels), and a label value has at most 63 characters.
const maxName = 63

// ClusterKey returns the value of the cluster-key label, which identifies a registration of a hub.
func ClusterKey(hubID string, registration types.NamespacedName) string {
	return digest(16, "cluster", hubID, registration.Namespace, registration.Name)
}

// FluxObject returns the name of the HelmRelease or Kustomization that delivers an add-on to a cluster:
// <cluster>-<addon>-<16 hex>, at most 63 characters. If a part is too long, it is cut, and the hash is longer. The
// hash contains the hub's ID, so that two hubs with clusters of the same name never prune each other's objects on a
// cluster that both serve.
func FluxObject(hubID string, registration types.NamespacedName, addon string) string {
	return name(digest(cutHash, "object", hubID, registration.Namespace, registration.Name, addon), registration.Name, addon)
}

// Beside returns another name for a FluxObject whose name is taken by an object that goes on as another add-on's: the n-th.
func Beside(object string, n int) string {
	at := strings.LastIndexByte(object, '-') + 1
	return object[:at] + digest(len(object)-at, "beside", object, strconv.Itoa(n))
}

// TeamCopy is the value of the copy label of a kubeconfig with a Team's token. That of others is "true".
const TeamCopy = "team"

// KubeconfigCopy returns the name of the Secret that holds a registration's kubeconfig beside a set.
func KubeconfigCopy(hubID string, registration types.NamespacedName) string {
	return name(digest(cutHash, "kubeconfig", hubID, registration.Namespace, registration.Name), registration.Name, "kubeconfig")
}

// ValuesCopy is the value of the copy label on a copy of what lies beside a cluster.
const ValuesCopy = "values"

// Copy returns the name of a delivery's copy of a ConfigMap or Secret that lies beside a registration.
func Copy(hubID string, registration types.NamespacedName, delivery, kind, object string) string {
	hash := digest(cutHash, "copy", hubID, registration.Namespace, registration.Name, delivery, kind, object)
	return join(hash, registration.Name, object)
}

// copyName matches what Copy returns.
var copyName = regexp.MustCompile(fmt.Sprintf(`-[0-9a-f]{%d}$`, cutHash))

// IsCopy returns whether a name may be one of a copy.
func IsCopy(name string) bool { return copyName.MatchString(name) }

// Account returns the name of the namespace on a cluster that has the hub's own ServiceAccount there, and of what binds its
// rights. No Team may have a namespace that begins like it.
func Account(hubID string, registration types.NamespacedName) string {
	hash := digest(cutHash, "account", hubID, registration.Namespace, registration.Name)
	return name(hash, "chandler-"+registration.Namespace, registration.Name)
}

// Delivery returns the name of the AddonDelivery of a set to a cluster.
func Delivery(set string, registration types.NamespacedName) string {
	return name(digest(cutHash, "delivery", set, registration.Namespace, registration.Name), set, registration.Name)
}

// IsDelivery returns whether a name is that of a delivery to a registration, of whichever set. The hash tells that for sure; of a name that
// is too long to hold its parts in full it is not known.
func IsDelivery(delivery string, registration types.NamespacedName) bool {
	parts := delivery[:max(0, strings.LastIndexByte(delivery, '-'))]
	set, ok := strings.CutSuffix(parts, "-"+registration.Name)
	return ok && Delivery(set, registration) == delivery
}

// Revision returns the name of the ControllerRevision for one content of a set, rendered by one epoch.
func Revision(set, contentHash string, epoch int) string {
	return fmt.Sprintf("%s-e%d", join(contentHash, set), epoch)
}

// epochAt returns where the epoch at the end of a revision's name begins, with its dash; its end if there is none. It is
// asked of every cluster of a set, about once a second.
func epochAt(revision string) int {
	i := len(revision)
	for i > 0 && revision[i-1] >= '0' && revision[i-1] <= '9' {
		i--
	}
	if i == len(revision) || !strings.HasSuffix(revision[:i], "-e") {
		return len(revision)
	}
	return i - len("-e")
}

// SameContent returns whether two revisions hold the same content, even if hubs of different epochs render it. A revision without a name
// holds none.
func SameContent(a, b string) bool {
	return a != "" && a[:epochAt(a)] == b[:epochAt(b)]
}

// Renewed returns the revision that holds the content of one, and is of the epoch of another.
func Renewed(revision, of string) string {
	return revision[:epochAt(revision)] + of[epochAt(of):]
}

// OfEpoch returns the name of a revision with the same content, as a renderer of another epoch names it.
func OfEpoch(revision string, epoch int) string {
	at := epochAt(revision)
	if at == len(revision) {
		return revision
	}
	return fmt.Sprintf("%s-e%d", revision[:at], epoch)
}

// SameEpoch returns whether renderers of the same epoch made two revisions.
func SameEpoch(a, b string) bool { return a[epochAt(a):] == b[epochAt(b):] }

// Chart returns the name of the shared HelmChart with the given content hash.
func Chart(chart, hash string) string {
	return join(hash, "chandler", strings.ToLower(path.Base(chart)))
}

// Source returns the name of a source that a set keeps, with the given content hash.
func Source(set, source, hash string) string { return join(hash, set, source) }

// ChartRepository returns the name of the source of the hub's own chart with a digest.
func ChartRepository(hubID, chart string) string {
	return name(digest(cutHash, "charts", hubID, chart), "chandler", "manifests")
}

// LabelValue returns s if it fits a label value, and otherwise a shortened s with a hash.
func LabelValue(s string) string {
	if len(s) <= maxName {
		return s
	}
	return name(digest(cutHash, "label", s), s)
}

// Hash returns a digest of parts, n hexadecimal digits long (at most 64). It separates the parts: ("a", "bc") and
// ("ab", "c") differ.
func Hash(n int, parts ...string) string { return digest(n, parts...) }

func digest(n int, parts ...string) string {
	var buffer [256]byte // on the stack: names of objects are short, and every event asks for some
	text := buffer[:0]
	for _, p := range parts {
		text = strconv.AppendInt(text, int64(len(p)), 10)
		text = append(append(append(text, ':'), p...), ',')
	}
	sum := sha256.Sum256(text)
	return string(hex.AppendEncode(text[:0], sum[:])[:n])
}

// shortHash and cutHash are the numbers of hex digits of a hash at the end of a name. An attacker who chooses names can search for one
// whose objects have the names of another's. In a name that shows its parts in full he is left the namespace of a registration, which
// is in the hash alone: 64 bits are too many to try. In one with cut or cleaned parts he has more to choose from, so there the hash has
// 96 bits.
const shortHash, cutHash = 16, 24

// name joins the parts and a hash of cutHash digits with dashes. It cuts the hash to shortHash digits if the name
// contains the parts unchanged. The two forms never give the same name, since their last part differs in length.
func name(hash string, parts ...string) string {
	if whole := strings.Join(parts, "-"); len(whole)+1+shortHash <= maxName && clean(whole, maxName) == whole {
		return whole + "-" + hash[:shortHash]
	}
	return join(hash, parts...)
}

// join joins the parts and the hash with dashes, and cuts parts so that the result fits maxName. The last part tells
// the objects of one cluster apart, so it keeps up to half of the room.
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

// clean cuts s to n characters and makes it a DNS-1123 label. Some names come from charts and paths, and a dot next
// to a cut or a dash would be invalid. The hash tells names apart that become alike here.
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
