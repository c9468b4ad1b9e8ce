// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

// Place says where Flux puts a workload. When it changes, helm-controller uninstalls the release and installs another
// (ReleaseTargetChanged), and kustomize-controller prunes what it applied and applies it anew.
type Place struct {
	// Release is a HelmRelease's.
	Release hubv1.HelmReleaseIdentity
	// Chart is the chart's name, if the chart is what changes.
	Chart string
	// Namespace is where a Kustomization puts objects that name no namespace. Names is what it makes of names: see
	// Names.
	Namespace, Names string
}

// Names returns what a Kustomization makes of the names of its objects, by its namePrefix and nameSuffix; empty if it
// leaves them as they are.
func Names(prefix, suffix string) string {
	if prefix+suffix == "" {
		return ""
	}
	return prefix + "*" + suffix
}

// FolderOf returns the folder of a source that a Kustomization applies, in one spelling: "./a", "a" and "a/" are the
// same.
func FolderOf(p string) string { return path.Clean("/" + p) }

// Content is what a Kustomization applies, and where; zero for a HelmRelease.
type Content struct {
	// Namespace is where it puts objects that name no namespace, Names is what Names returns for it, and Folder what
	// FolderOf returns.
	Namespace, Names, Folder string
}

// hash identifies a content.
func (c Content) hash() string { return identity.Hash(16, "content", c.Namespace, c.Names, c.Folder) }

// Mark returns the note for a Kustomization that is about to be updated: what Flux has applied, if that differs from
// what it is to apply from now on. Until Flux has succeeded with the new content, its inventory, and so what Flux
// would remove, is of the old one. A Kustomization that is written again without a change keeps its mark: Flux is
// about to succeed with its generation. One that is written as it is resumed gets it anew: Flux may have raised
// observedGeneration to that of the suspension, and has applied nothing (kustomize-controller, finalizeStatus).
func (d *Desired) Mark(o *Observed) string {
	applied := cmp.Or(o.AppliedAs, o.hash())
	if d.Release.Name != "" || applied == d.hash() {
		return ""
	}
	if !o.Suspended && !d.Moves(o) {
		return o.Mark
	}
	return note(o.Generation, applied)
}

// MarkSuspended returns the mark of a Kustomization that is about to be suspended; "" if Flux has applied what it is to apply. Flux raises
// observedGeneration to that of the suspension. And if it was at work when the spec had changed, its Ready=True, which is of the generation
// before, may name a later one. So a hub that starts later could not tell from a mark of an earlier generation.
func (o *Observed) MarkSuspended() string {
	generation := o.Generation
	if !o.Suspended {
		generation++ // by the suspension itself
	}
	return o.markOf(generation)
}

// MarkResumed returns the mark of a Kustomization that is about to be resumed; "" if it has none. The suspension may have raised
// observedGeneration, so that the mark that it has says nothing to a hub that starts later.
func (o *Observed) MarkResumed() string { return o.markOf(o.Generation) }

func (o *Observed) markOf(generation int64) string {
	if o.AppliedAs == "" {
		return ""
	}
	return note(generation, o.AppliedAs)
}

// note is what ReadMark reads: what Flux has applied, as long as it has not succeeded with a later generation.
func note(generation int64, applied string) string { return fmt.Sprintf("%d %s", generation, applied) }

// Moves returns whether a Kustomization is to apply something else from now on, or elsewhere.
func (d *Desired) Moves(o *Observed) bool { return d.Release.Name == "" && d.Content != o.Content }

// ReadMark returns what Mark noted; "" if it noted nothing, or if Flux has succeeded with a later generation than it
// was noted of. succeeded is the generation that Flux has applied with success.
func ReadMark(mark string, succeeded int64) string {
	generation, applied, _ := strings.Cut(mark, " ")
	if n, err := strconv.ParseInt(generation, 10, 64); err != nil || succeeded > n {
		return ""
	}
	return applied
}

// placeOf returns where Flux puts a workload. The folder is no part of it: objects that are in both folders stay.
func placeOf(release hubv1.HelmReleaseIdentity, c Content) Place {
	return Place{Release: release, Namespace: c.Namespace, Names: c.Names}
}

// Reinstall returns from where to where Flux would move an object's workload if the object were updated, or is to move it already and
// has not; false if the workload stays where it is.
func (d *Desired) Reinstall(o *Observed) (from, to Place, anew bool) {
	if o == nil {
		return from, to, false
	}
	from, to = placeOf(o.Release, o.Content), placeOf(d.Release, d.Content)
	if o.moves() {
		from.Release = o.InstalledAs
	}
	if d.changesChart(o) {
		from.Chart, to.Chart = cmp.Or(o.Installed, o.Chart), d.Chart
	}
	return from, to, from != to
}

// movesOnto returns the object that still has the release onto which an update would move a workload; "" if none has.
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

// staying returns the objects that stay, by Helm release. It is made once for all that leave: a user who may write Flux objects in a
// namespace can have any number of them leave.
func (in *Input) staying(leaving []Observed) map[hubv1.HelmReleaseIdentity][]Key {
	leaves := make(map[Key]bool, len(leaving))
	for i := range leaving {
		leaves[leaving[i].Key] = true
	}
	out := map[hubv1.HelmReleaseIdentity][]Key{}
	for i := range in.Observed {
		if o := &in.Observed[i]; o.Release.Name != "" && !o.Deleting && !o.Foreign && o.Replaced == "" && !leaves[o.Key] {
			out[o.Release] = append(out[o.Release], o.Key)
		}
	}
	return out
}

// leaves returns the step for a leaving object whose Helm release another object has too, and that one stays; false
// if there is none. There should be no two, but a hub may find them. If it were uninstalled, what the other object
// delivers would go. A tenant's object that no set delivers does not keep a platform's object from leaving: a user
// may have made it. staying is what that function returned.
func (in *Input) leaves(o Observed, staying map[hubv1.HelmReleaseIdentity][]Key) (Step, bool) {
	s := Step{Key: o.Key, Addon: o.Addon}
	if o.Foreign || o.Replaced != "" {
		return s, false
	}
	for _, other := range staying[o.Release] {
		if in.outranks(o.Key, other) && !in.desires(other) {
			continue
		}
		s.Verb, s.Reason, s.To = HandOver, other.String()+" has the same release, and goes on with it", other
		if in.Suspend != "" {
			s.Verb, s.Reason = Hold, s.Reason+" when that is over: "+in.Suspend
		}
		return s, true
	}
	return s, false
}

// changesChart returns whether Flux would find another chart than the one that it has installed. The name in a chart
// may differ from the name that it is requested by, so a chart that is requested by the same name as before counts as
// the same.
func (d *Desired) changesChart(o *Observed) bool {
	known := o.Chart != "" || o.Installed != ""
	return known && d.Chart != "" && d.Chart != o.Chart && d.Chart != o.Installed
}

// String describes the place, and differs for different places.
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

// moves returns whether a HelmRelease asks for another release than Flux has installed: Flux uninstalls that one as soon as it can.
func (o *Observed) moves() bool { return o.InstalledAs.Name != "" }

// asks returns whether the object is to be reinstalled, and the removal guard has not granted that.
func (d *Desired) asks(o *Observed) bool {
	_, _, anew := d.Reinstall(o)
	return anew && !d.MayReinstall
}
