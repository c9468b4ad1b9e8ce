// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

// Place says where Flux puts a workload. When it changes, helm-controller uninstalls the release and installs another
// (ReleaseTargetChanged), and kustomize-controller prunes what it applied and applies it anew.
type Place struct {
	// Release of a HelmRelease.
	Release hubv1.HelmReleaseIdentity
	// Chart is the chart's name, if it is that which changes.
	Chart string
	// Namespace is where a Kustomization puts what has none, and Names is what it makes of names: see Names.
	Namespace, Names string
}

// Names is what a Kustomization makes of the names of what it applies, by its namePrefix and nameSuffix; empty if it
// leaves them as they are.
func Names(prefix, suffix string) string {
	if prefix+suffix == "" {
		return ""
	}
	return prefix + "*" + suffix
}

// FolderOf names the folder of a source that a Kustomization applies: "./a", "a" and "a/" are one.
func FolderOf(p string) string { return path.Clean("/" + p) }

// Content is what a Kustomization applies, and where; zero for a HelmRelease.
type Content struct {
	// Namespace is where it puts what has none, Names what it makes of names, as Names gives it, and Folder the one that
	// it applies, as FolderOf gives it.
	Namespace, Names, Folder string
}

// hash tells contents apart.
func (c Content) hash() string { return identity.Hash(16, "content", c.Namespace, c.Names, c.Folder) }

// Has stands for what Flux has on the cluster by an object, or may have: the Helm release that it has installed; or
// what it has applied, and what it is to apply instead.
func (o *Observed) Has() []string {
	if o.InstalledAs.Name != "" {
		return []string{has(o.InstalledAs, "")}
	}
	out := []string{has(o.Release, o.hash())}
	if o.AppliedAs != "" && o.AppliedAs != o.hash() {
		out = append(out, has(o.Release, o.AppliedAs))
	}
	return out
}

// Has stands for what Flux will have on the cluster by an object.
func (d *Desired) Has() []string { return []string{has(d.Release, d.hash())} }

// has names a Helm release by what tells it from others, or else what a Kustomization applies.
func has(r hubv1.HelmReleaseIdentity, content string) string {
	if r.Name != "" {
		return ReleasePrefix + r.StorageNamespace + "/" + r.Name
	}
	return "content " + content
}

// ReleasePrefix is how what stands for a Helm release begins, and nothing else does.
const ReleasePrefix = "Helm release "

// Mark is what is to be noted on a Kustomization that is brought in line: what Flux has applied, if that is something
// else than it is to apply from now on. Until Flux has succeeded with that, its inventory, and so what is removed
// with it, is of what was there before. What is written once more keeps its mark: Flux is about to succeed with the
// generation that it has.
func (d *Desired) Mark(o *Observed) string {
	applied := cmp.Or(o.AppliedAs, o.hash())
	if d.Release.Name != "" || applied == d.hash() {
		return ""
	}
	if o.AppliedAs != "" && !d.Moves(o) {
		return o.Mark
	}
	return fmt.Sprintf("%d %s", o.Generation, applied)
}

// Moves returns whether a Kustomization is to apply something else from now on, or elsewhere.
func (d *Desired) Moves(o *Observed) bool { return d.Release.Name == "" && d.Content != o.Content }

// ReadMark returns what Mark noted; "" if it noted nothing, or if Flux has succeeded with a later generation than it
// was noted of. succeeded is status.observedGeneration of the Kustomization, which only moves on when it gets Ready
// (kustomize-controller, finalizeStatus).
func ReadMark(mark string, succeeded int64) string {
	generation, applied, _ := strings.Cut(mark, " ")
	if n, err := strconv.ParseInt(generation, 10, 64); err != nil || succeeded > n {
		return ""
	}
	return applied
}

// Reinstall returns from where to where Flux would move the workload of an object to bring it in line; false if it stays where it is.
func (d *Desired) Reinstall(o *Observed) (from, to Place, anew bool) {
	if o == nil {
		return from, to, false
	}
	from, to = Place{Release: o.Release, Namespace: o.Namespace, Names: o.Names},
		Place{Release: d.Release, Namespace: d.Namespace, Names: d.Names}
	if d.changesChart(o) {
		from.Chart, to.Chart = cmp.Or(o.Installed, o.Chart), d.Chart
	}
	return from, to, from != to
}

// TakesOver returns whether an object goes on with what another one has, or it itself, so that Flux takes nothing of
// it away: it neither reinstalls nor prunes one folder for another.
func (d *Desired) TakesOver(o *Observed) bool {
	if d.Key != o.Key {
		return canTakeOver(*d, *o)
	}
	_, _, anew := d.Reinstall(o)
	return !anew && d.Content == o.Content
}

// movesOnto returns the object that has the release still onto which an edit would move a workload; "" if none has.
func (d *Desired) movesOnto(o *Observed, leaving []Observed) string {
	if _, _, anew := d.Reinstall(o); !anew || d.sameRelease(o) {
		return ""
	}
	for i := range leaving {
		if d.sameRelease(&leaving[i]) && leaving[i].Key != d.Key {
			return leaving[i].Key.String()
		}
	}
	return ""
}

// leaves says how an object goes that has one release with another one that stays; false if there is none. There
// should be no two, but a hub may find them. Uninstalled, it would take away what the other one delivers; nothing is
// taken away if it is let go. One of a tenant's that nobody delivers keeps none of the platform's: anybody may have
// made it.
func (in *Input) leaves(o Observed, leaving []Observed) (Step, bool) {
	s := Step{Key: o.Key, Addon: o.Addon}
	if o.Release.Name == "" || o.Foreign || o.Replaced != "" {
		return s, false
	}
	for _, other := range in.Observed {
		goes := other.Deleting || other.Foreign || other.Replaced != "" ||
			slices.ContainsFunc(leaving, func(l Observed) bool { return l.Key == other.Key })
		if goes || other.Release != o.Release || in.outranks(o.Key, other.Key) && !in.desires(other.Key) {
			continue
		}
		s.Verb, s.Reason, s.To = HandOver, other.Key.String()+" has the same release, and goes on with it", other.Key
		if in.Suspend != "" {
			s.Verb, s.Reason = Hold, s.Reason+" when that is over: "+in.Suspend
		}
		return s, true
	}
	return s, false
}

// changesChart returns whether Flux would find another chart than the one that it has installed. What the chart says its name is may
// differ from what it was asked for by, so one that is asked for by the same name as before is the same.
func (d *Desired) changesChart(o *Observed) bool {
	known := o.Chart != "" || o.Installed != ""
	return known && d.Chart != "" && d.Chart != o.Chart && d.Chart != o.Installed
}

// String names the place, and tells it from others.
func (p Place) String() string {
	if (p.Release != hubv1.HelmReleaseIdentity{}) {
		chart := ""
		if p.Chart != "" {
			chart = fmt.Sprintf(" of chart %q", p.Chart)
		}
		return fmt.Sprintf("release %q%s in namespace %q (records in %q)", p.Release.Name, chart, p.Release.Namespace, p.Release.StorageNamespace)
	}
	into := "the namespaces that its manifests name"
	if p.Namespace != "" {
		into = fmt.Sprintf("namespace %q", p.Namespace)
	}
	if p.Names != "" {
		into += fmt.Sprintf(", with names %q", p.Names)
	}
	return "what it applies into " + into
}

// asks returns whether the object is to be reinstalled, and the removal guard has not let that through.
func (d *Desired) asks(o *Observed) bool {
	_, _, anew := d.Reinstall(o)
	return anew && !d.MayReinstall
}
