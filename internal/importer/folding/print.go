// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/hubconfig"
)

// Steps returns what has to be done before and after the sets are applied, line by line.
func (r *Result) Steps(hub hubconfig.Shared) []string {
	var out []string
	step := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	n := 1
	if r.NotHere {
		step("%d. Register the clusters under these names, by `chandler register` or by labelled Secrets with their kubeconfigs:", n)
		for _, c := range r.Clusters {
			if !c.Registered {
				step("     %s (namespace %s)", c.Name, c.Namespace)
			}
		}
		step("%d. Suspend all Kustomizations and HelmReleases on each cluster, in every namespace (`flux suspend kustomization --all -n …`).",
			n+1)
		step("   Never delete them: that would uninstall everything. `flux uninstall` removes Flux and leaves what it has delivered.")
		step("%d. Apply the sources and the sets. Helm releases go on with an upgrade; objects stay, and get new owner labels.", n+2)
		return out
	}
	if commands := r.register(hub); len(commands) > 0 {
		step("%d. Register the clusters. Without an AddonSet, nothing is delivered:", n)
		for _, c := range commands {
			step("     %s", c)
		}
		n++
	}
	if len(r.Makers) > 0 {
		step("%d. These keep some of the objects, and would make them again. Stop them first; when the add-ons are Ready, remove the", n)
		step("   objects from what they apply, with its pruning off:")
		for _, m := range r.Makers {
			step("     %s (%s)", m.Name, strings.Join(m.Objects, ", "))
			if kind, name, ok := strings.Cut(m.Name, " "); ok && !strings.HasPrefix(m.Name, "Argo") {
				namespace, name, _ := strings.Cut(name, "/")
				step("       flux suspend %s -n %s %s", strings.ToLower(kind), namespace, name)
			}
		}
		n++
	}
	step("%d. Apply the sets. `chandler explain CLUSTER` says what was adopted. Take adopt out when all add-ons are Ready.", n)
	return out
}

// Summary says in one line what came of it.
func (r *Result) Summary() string {
	text := fmt.Sprintf("%s of %s on %s", plural(len(r.Sets), "AddonSet"), plural(len(r.Folded), "object"), plural(len(r.Clusters), "cluster"))
	if n := len(r.Left); n > 0 {
		text += fmt.Sprintf("; %s %s", plural(n, "object"), Verb(n, "is left as it is", "are left as they are"))
	}
	return text
}

// Nothing says why there is no set.
func (r *Result) Nothing() string {
	local := r.Seen - r.Own - r.Remote
	switch {
	case r.Seen == 0:
		return "nothing to import: no HelmRelease or Kustomization of Flux was read"
	case r.Own == r.Seen:
		return fmt.Sprintf("nothing to import: the hub made %s", Verb(r.Seen, "the only Flux object", fmt.Sprintf("all %d Flux objects", r.Seen)))
	}
	var parts []string
	if r.Own > 0 {
		parts = append(parts, fmt.Sprintf("%d %s made by the hub", r.Own, Verb(r.Own, "was", "were")))
	}
	if local > 0 {
		parts = append(parts, Count(local, "is for the cluster that it is in", "are for the cluster that they are in")+" (no spec.kubeConfig)")
	}
	if r.Remote > 0 {
		parts = append(parts, Count(r.Remote, "is for another cluster and left as it is", "are for other clusters and left as they are"))
	}
	return fmt.Sprintf("nothing to import: of %s %s", plural(r.Seen, "Flux object"), strings.Join(parts, ", "))
}

// Table says how many objects there were, and what became of them.
func (r *Result) Table() []string {
	rows := []struct {
		what string
		n    int
	}{
		{"Flux objects that were read", r.Seen}, {"of these made by the hub", r.Own},
		{"of these for other clusters (spec.kubeConfig)", r.Remote}, {"imported", len(r.Folded)},
		{"left as they are", len(r.Left)}, {"AddonSets", len(r.Sets)}, {"clusters", len(r.Clusters)},
		{"of these not registered yet", len(slices.DeleteFunc(slices.Clone(r.Clusters), func(c *Cluster) bool { return c.Registered }))},
		{"notes on what is not quite as it was", len(r.notes())},
	}
	var out []string
	for _, row := range rows {
		out = append(out, fmt.Sprintf("%-46s %5d", row.what, row.n))
	}
	return out
}

// Verb returns the form of a verb that goes with a number.
func Verb(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}

// Count returns a number, with the text that goes with it.
func Count(n int, one, several string) string { return fmt.Sprintf("%d %s", n, Verb(n, one, several)) }

func plural(n int, what string) string { return Count(n, what, what+"s") }

// String says which object stays, and why.
func (l Left) String() string { return l.said(l.Reason) }

// String says of which object the note is, and what it says.
func (n Note) String() string { return n.said(n.Text) }

// notes returns the notes, each text once, with the objects that it is about.
func (r *Result) notes() []string {
	about := map[string][]Note{}
	var order []string
	for _, n := range r.Notes {
		if about[n.Text] == nil {
			order = append(order, n.Text)
		}
		about[n.Text] = append(about[n.Text], n)
	}
	out := make([]string, len(order))
	for i, text := range order {
		all := about[text]
		out[i] = all[0].String()
		if more := len(all) - 1; more > 0 {
			out[i] = excerpt.Line(fmt.Sprintf("%s and %s like it: %s", all[0].Object, plural(more, "object"), text))
		}
	}
	return out
}

// said puts an object, and where it is, before what is said of it.
func (o *Object) said(text string) string {
	where := ""
	if o.File != "" {
		where = " (" + o.where() + ")"
	}
	return excerpt.Line(fmt.Sprintf("%s%s: %s", o, where, text))
}

// Head returns the comment that comes before the sets.
func (r *Result) Head(hub hubconfig.Shared) string {
	var b strings.Builder
	// Names of objects, files and labels are what other people chose: none of them ends the comment.
	line := func(text string) { b.WriteString(strings.TrimRight("# "+excerpt.Visible(text), " ") + "\n") }
	line(r.Summary())
	line("")
	for _, row := range r.Table() {
		line("  " + row)
	}
	line("")
	for _, s := range r.Steps(hub) {
		line(s)
	}
	if len(r.Notes) > 0 {
		line("")
		line("Not quite as it was:")
		for _, text := range r.notes() {
			line("  " + text)
		}
	}
	if len(r.Left) > 0 {
		line("")
		line("Left as they are:")
		for _, l := range r.Left {
			line("  " + l.String())
		}
		if remedy := r.Remedy(hub); remedy != "" {
			line(remedy)
		}
	}
	return b.String()
}

// Remedy says with which platform namespaces more objects are folded; "" if with none.
func (r *Result) Remedy(hub hubconfig.Shared) string {
	if r.More <= 0 {
		return ""
	}
	return fmt.Sprintf("With --platform-namespaces %s, here and for the hub, %s %s imported. Sets in such a namespace reach every cluster.",
		strings.Join(slices.Concat(hub.PlatformNamespaces, r.Confined), ","), plural(r.More, "more object"), Verb(r.More, "is", "are"))
}

// YAML returns a set as one document.
func YAML(s *hubv1.AddonSet) (string, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		return "", fmt.Errorf("write AddonSet %s/%s: %w", s.Namespace, s.Name, err)
	}
	delete(object, "status")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	raw, err := yaml.Marshal(object)
	if err != nil {
		return "", fmt.Errorf("write AddonSet %s/%s: %w", s.Namespace, s.Name, err)
	}
	return string(raw), nil
}
