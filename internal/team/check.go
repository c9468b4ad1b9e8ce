// SPDX-License-Identifier: Apache-2.0

package team

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// Errors are all problems of a Team, in the order of its fields.
type Errors []fluxspec.Problem

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.Path + ": " + p.Message
	}
	return strings.Join(lines, "; ")
}

// Check returns what is wrong with a Team beyond its schema, as Errors; nil if nothing is.
func Check(t *hubv1.Team) error {
	c := checker{kept: reservedFor(t)}
	c.name(t.Name)
	seen := map[string]bool{}
	for i, ns := range t.Spec.HubNamespaces {
		if seen[ns] {
			c.fail(fmt.Sprintf("spec.hubNamespaces[%d]", i), "%q is there twice: write it once", ns)
		}
		seen[ns] = true
	}
	if _, err := Selector(t); err != nil {
		c.fail("spec.clusterSelector", "%s", err)
	}
	clear(seen)
	for i := range t.Spec.Namespaces {
		n := &t.Spec.Namespaces[i]
		if seen[n.Name] {
			c.fail(namespacePath(n)+".name", "is there twice: write one entry for it")
		}
		seen[n.Name] = true
		c.namespace(n)
	}
	if s := t.Spec.Sources; s != nil {
		for i, pattern := range s.Allow {
			if what := fluxspec.CheckPattern(pattern); what != "" {
				c.fail(fmt.Sprintf("spec.sources.allow[%d]", i), "is %q: %s", pattern, what)
			}
		}
	}
	if role := t.Spec.ClusterRole; role != "" && c.plain("spec.clusterRole", role) {
		if what := content.IsPathSegmentName(role); len(what) > 0 {
			c.fail("spec.clusterRole", "is %q, and no ClusterRole can be called so: the name %s", role, what[0])
		}
	}
	if len(c.errs) > 0 {
		return c.errs
	}
	return nil
}

type checker struct {
	kept []reserved
	errs Errors
}

func (c *checker) fail(path, format string, args ...any) {
	c.errs = append(c.errs, fluxspec.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// unfit are names that no Team can have, with the reason.
var unfit = map[string]string{
	"system":  "chandler-system is the hub's own namespace",
	"default": "every namespace has a ServiceAccount of that name already",
}

func (c *checker) name(name string) {
	what := content.IsDNS1123Label(name)
	switch {
	case unfit[name] != "":
		c.fail("metadata.name", "is %q, and %s: make a Team of another name", name, unfit[name])
	case len(what) > 0 && len(name) <= maxName:
		c.fail("metadata.name", "is %q: namespaces and add-ons are named after it, and %s. Make a Team of another name", name, what[0])
	case len(name) > maxName:
		c.fail("metadata.name", "has %d characters, and add-on %s<name> has room for %d: make a Team with a shorter name", len(name),
			setPrefix, maxName)
	}
}

func namespacePath(n *hubv1.TeamNamespace) string { return fmt.Sprintf("spec.namespaces[%s]", n.Name) }

var levels = []string{"privileged", "baseline", "restricted"}

func (c *checker) namespace(n *hubv1.TeamNamespace) {
	path := namespacePath(n)
	if what := checkName(n.Name, c.kept); what != "" {
		c.fail(path+".name", "%s", what)
	}
	if n.PodSecurity != "" && !slices.Contains(levels, n.PodSecurity) {
		c.fail(path+".podSecurity", "is %q: write one of %s", n.PodSecurity, strings.Join(levels, ", "))
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		c.label(fmt.Sprintf("%s.labels[%s]", path, key), key, n.Labels[key])
	}
	if q := n.ResourceQuota; q != nil {
		c.quota(path+".resourceQuota", q)
	}
	if l := n.LimitRange; l != nil {
		c.limits(path+".limitRange", l)
	}
	if p := n.NetworkPolicy; p != "" && p != hubv1.TeamNetworkNone && p != hubv1.TeamNetworkIsolated {
		c.fail(path+".networkPolicy", "is %q: write %s or %s", p, hubv1.TeamNetworkNone, hubv1.TeamNetworkIsolated)
	}
}

// label checks a label of a namespace. Those that the hub, Kubernetes or Helm write are not the Team's to choose.
func (c *checker) label(path, key, value string) {
	domain, _, _ := strings.Cut(key, "/")
	switch {
	case strings.HasPrefix(key, podSecurityLabel):
		c.fail(path, "must not be set: write podSecurity")
	case domain == hubDomain || strings.HasSuffix(domain, "."+hubDomain):
		c.fail(path, "must not be set: labels of %s are the hub's. Remove it", hubDomain)
	case key == corev1.LabelMetadataName || key == managedByLabel:
		c.fail(path, "must not be set: Kubernetes or Helm sets it. Remove it")
	case !c.plain(path, key) || !c.plain(path, value):
	default:
		if what := content.IsLabelKey(key); len(what) > 0 {
			c.fail(path, "is no key of a label: the %s", what[0])
		}
		if what := content.IsLabelValue(value); len(what) > 0 {
			c.fail(path, "is %q, and no label has such a value: %s", value, what[0])
		}
	}
}

func (c *checker) quota(path string, q *corev1.ResourceQuotaSpec) {
	if len(q.Hard) == 0 {
		c.fail(path+".hard", `is empty, and limits nothing: write what it limits, such as {requests.cpu: "4"}, or leave resourceQuota out`)
	}
	if c.plain(path, q) {
		c.resources(path+".hard", q.Hard)
	}
}

func (c *checker) limits(path string, l *corev1.LimitRangeSpec) {
	if len(l.Limits) == 0 {
		c.fail(path+".limits", "is empty, and limits nothing: write a limit, or leave limitRange out")
	}
	if !c.plain(path, l) {
		return
	}
	for i := range l.Limits {
		item, at := &l.Limits[i], fmt.Sprintf("%s.limits[%d]", path, i)
		if item.Type == "" {
			c.fail(at+".type", "is required: Container, Pod or PersistentVolumeClaim")
		}
		if len(item.Max)+len(item.Min)+len(item.Default)+len(item.DefaultRequest)+len(item.MaxLimitRequestRatio) == 0 {
			c.fail(at, "limits nothing: write max, min, default, defaultRequest or maxLimitRequestRatio, or remove it")
		}
		c.resources(at+".max", item.Max)
		c.resources(at+".min", item.Min)
		c.resources(at+".default", item.Default)
		c.resources(at+".defaultRequest", item.DefaultRequest)
		c.resources(at+".maxLimitRequestRatio", item.MaxLimitRequestRatio)
	}
}

func (c *checker) resources(path string, list corev1.ResourceList) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		at, quantity := fmt.Sprintf("%s[%s]", path, name), list[name]
		if what := content.IsLabelKey(string(name)); len(what) > 0 {
			c.fail(at, "is no name of a resource: the %s", what[0])
		}
		if quantity.Sign() < 0 {
			c.fail(at, "is %s: write 0 or more", quantity.String())
		}
	}
}

// plain returns whether no text in a value could be taken for an expression, and tells of those that could. The
// compiler would look for expressions in every text of the Team's objects, and only names of namespaces are meant to
// have them.
func (c *checker) plain(path string, v any) bool {
	raw, err := json.Marshal(v)
	if err != nil {
		c.fail(path, "cannot be written as JSON: %s", err)
		return false
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		c.fail(path, "cannot be read as JSON: %s", err)
		return false
	}
	before := len(c.errs)
	c.walk(path, tree)
	return len(c.errs) == before
}

func (c *checker) walk(path string, v any) {
	switch v := v.(type) {
	case string:
		if expression.Has(v) {
			c.fail(path, "holds <<, which begins an expression: only the names of namespaces may have expressions. Write a plain text")
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			at := path + "." + k
			if expression.Has(k) {
				c.fail(at, "holds <<, which begins an expression: only the names of namespaces may have expressions. Write a plain text")
			}
			c.walk(at, v[k])
		}
	case []any:
		for i, x := range v {
			c.walk(fmt.Sprintf("%s[%d]", path, i), x)
		}
	}
}
