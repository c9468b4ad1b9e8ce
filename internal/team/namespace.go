// SPDX-License-Identifier: Apache-2.0

package team

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/expression"
)

// reserved is a namespace that no team gets, or all whose names begin alike.
type reserved struct {
	// name of the namespace; if all is true, what the names begin with.
	name string
	all  bool
	// example is a name that it stands for.
	example string
	// why completes "the namespace is kept for …".
	why string
}

// reservedFor returns the namespaces that a Team must not have. A team has the rights of its role in its namespaces:
// in these it would have all rights of the cluster, or of another team.
func reservedFor(t *hubv1.Team) []reserved {
	out := []reserved{
		{name: "kube-", all: true, example: "kube-system", why: "Kubernetes"},
		// Helm's records of the add-ons of manifests are there, and with them what Flux deletes and restores.
		{name: "default", example: "default", why: "objects that name no namespace, and for Helm's records of manifests"},
		{name: "flux-system", example: "flux-system", why: "Flux"},
		// The hub's own, and those of the ServiceAccounts of all teams.
		{name: accountPrefix, all: true, example: AccountNamespace("system"), why: "the hub, and for the ServiceAccounts of teams"},
	}
	if t.Namespace != "" { // the management cluster may be registered as a workload cluster
		out = append(out, reserved{name: t.Namespace, example: t.Namespace, why: "the platform's own AddonSets and Teams"})
	}
	return out
}

// is returns whether a name is reserved.
func (r *reserved) is(name string) bool {
	return name == r.name || r.all && strings.HasPrefix(name, r.name)
}

// mayBecome returns whether a name that begins with a text may be reserved, whatever comes after.
func (r *reserved) mayBecome(prefix string) bool {
	return strings.HasPrefix(r.name, prefix) || r.is(prefix)
}

// checkName returns what is wrong with the name of a namespace; "" if nothing is.
//
// What an expression gives differs from cluster to cluster, and it is not checked there: the labels, annotations and
// variables of a cluster may be its owner's. "<< cluster.labels.app >>" would make a team the admin of kube-system
// on every cluster with the label app=kube-system. So a name with expressions must begin with a text of its own. What
// a name begins with stays, whatever the expressions give. If no reserved name begins with that text, and that text
// begins with none that all names of a group begin with, then no result is reserved on any cluster.
func checkName(name string, kept []reserved) string {
	if !expression.Has(name) {
		if what := content.IsDNS1123Label(name); len(what) > 0 {
			return fmt.Sprintf("is no name of a namespace: %s", what[0])
		}
		for _, r := range kept {
			if r.is(name) {
				return fmt.Sprintf("the namespace is kept for %s: write another name", r.why)
			}
		}
		return ""
	}
	t, err := expression.Compile(name)
	if err != nil {
		return err.Error()
	}
	if t.UsesOrigin() || t.AllVars() || len(t.Vars()) > 0 {
		return "reads vars or origin: only cluster may be read here, so that the hub knows the name wherever it checks what the team's " +
			"AddonSets write"
	}
	texts := t.Literals()
	for _, r := range kept {
		if r.mayBecome(texts[0]) {
			return fmt.Sprintf("could become %q on some cluster, and that namespace is kept for %s: begin the name with another text before "+
				"its first expression, such as apps-<< cluster.name >>", r.example, r.why)
		}
	}
	sample := strings.Join(texts, "x")
	if what := content.IsDNS1123Label(sample); len(what) > 0 {
		return fmt.Sprintf("gives names such as %q, and no namespace can be called so: %s", sample, what[0])
	}
	return ""
}
