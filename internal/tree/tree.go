// SPDX-License-Identifier: Apache-2.0

// Package tree shows what a cluster has: its sets, their add-ons and the Flux objects.
package tree

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/status"
)

// Node is a line, and what hangs on it.
type Node struct {
	Text  string
	Under []Node
}

// Print writes a node and all below it.
func (n *Node) Print(w io.Writer) error {
	if _, err := fmt.Fprintln(w, n.Text); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return n.below(w, "")
}

func (n *Node) below(w io.Writer, margin string) error {
	for i := range n.Under {
		branch, next := "├─ ", "│  "
		if i == len(n.Under)-1 {
			branch, next = "└─ ", "   "
		}
		if _, err := fmt.Fprintln(w, margin+branch+n.Under[i].Text); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		if err := n.Under[i].below(w, margin+next); err != nil {
			return err
		}
	}
	return nil
}

// Cluster is what hangs on a cluster.
type Cluster struct {
	Registration   *hubv1.ClusterRegistration
	Deliveries     []hubv1.AddonDelivery
	Releases       []helmv2.HelmRelease
	Kustomizations []kustomizev1.Kustomization
	// FluxUnread says that the Flux objects could not be read.
	FluxUnread bool
	Now        time.Time
}

// Tree returns it as a tree.
func (c *Cluster) Tree() *Node {
	reg := c.Registration
	root := &Node{Text: line("ClusterRegistration "+reg.Namespace+"/"+reg.Name, conditionText(reg, hubv1.ReadyCondition),
		conditionText(reg, hubv1.ReachableCondition), reg.Status.KubernetesVersion)}
	deliveries := slices.SortedFunc(slices.Values(c.Deliveries), func(a, b hubv1.AddonDelivery) int {
		return cmp.Or(cmp.Compare(a.SetKey().String(), b.SetKey().String()), cmp.Compare(a.Name, b.Name))
	})
	seen := map[string]bool{}
	for i := range deliveries {
		d := &deliveries[i]
		node := Node{Text: line("AddonSet "+d.SetKey().String(), summary(d), d.Spec.RevisionName)}
		for j := range d.Status.Addons {
			node.Under = append(node.Under, c.addon(d, &d.Status.Addons[j], seen))
		}
		root.Under = append(root.Under, node)
	}
	if others := c.others(seen); len(others) > 0 {
		root.Under = append(root.Under, Node{Text: "Flux objects that no delivery reports", Under: others})
	}
	return root
}

func (c *Cluster) addon(d *hubv1.AddonDelivery, a *hubv1.AddonStatus, seen map[string]bool) Node {
	since := ""
	if a.Since != nil {
		since = page.Since(&a.Since.Time, c.Now)
	}
	node := Node{Text: line(a.Name, string(a.State), since, a.Version, excerpt.Of(excerpt.Line(a.Message), maxMessage))}
	if a.Object == "" {
		return node
	}
	key := a.Kind + " " + d.Namespace + "/" + a.Object
	seen[key] = true
	text := ""
	for _, o := range c.objects() {
		if o.key == key {
			text = o.text
		}
	}
	switch {
	case text == "" && c.FluxUnread:
		text = line(key, "you may not read it")
	case text == "":
		text = line(key, "is not there")
	}
	node.Under = []Node{{Text: text}}
	return node
}

// maxMessage is how much of a message is shown; chandler explain shows all of it.
const maxMessage = 100

// object is a Flux object and its line.
type object struct{ key, text string }

func (c *Cluster) objects() []object {
	var out []object
	add := func(kind string, o metav1.Object, suspended bool, conditions []metav1.Condition) {
		key := kind + " " + o.GetNamespace() + "/" + o.GetName()
		state := "Ready=Unknown"
		if r := meta.FindStatusCondition(conditions, fluxmeta.ReadyCondition); r != nil {
			state = fmt.Sprintf("Ready=%s (%s)", r.Status, r.Reason)
		}
		held := ""
		if suspended {
			held = "suspended"
			if why := o.GetAnnotations()[hubv1.SuspendedAnnotation]; why != "" {
				held += " by the hub: " + why
			}
		}
		going := ""
		if o.GetDeletionTimestamp() != nil {
			going = "being deleted"
		}
		out = append(out, object{key, line(key, state, held, going)})
	}
	for i := range c.Releases {
		o := &c.Releases[i]
		add("HelmRelease", o, o.Spec.Suspend, o.Status.Conditions)
	}
	for i := range c.Kustomizations {
		o := &c.Kustomizations[i]
		add("Kustomization", o, o.Spec.Suspend, o.Status.Conditions)
	}
	return out
}

func (c *Cluster) others(seen map[string]bool) []Node {
	var out []Node
	for _, o := range c.objects() {
		if !seen[o.key] {
			out = append(out, Node{Text: o.text})
		}
	}
	slices.SortFunc(out, func(a, b Node) int { return cmp.Compare(a.Text, b.Text) })
	return out
}

// summary says how a delivery stands.
func summary(d *hubv1.AddonDelivery) string {
	parts := []string{conditionText(d, hubv1.ReadyCondition)}
	if c := d.Status.AddonCounts; c != nil {
		parts = append(parts, cmp.Or(c.Summary, status.Fraction(c.Ready, c.Total))+" add-ons Ready")
	}
	if d.DeletionTimestamp != nil {
		parts = append(parts, "being deleted")
	}
	return strings.Join(parts, gap)
}

func conditionText(o status.Object, typ string) string {
	c := status.Find(o, typ)
	if c == nil {
		return typ + "=Unknown"
	}
	return fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Reason)
}

const gap = "  "

// line joins what is not empty, and makes it safe for a terminal.
func line(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p = strings.TrimSpace(excerpt.Visible(p)); p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, gap)
}
