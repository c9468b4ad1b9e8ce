// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/test/localfleet"
)

// right is what a rule of a role gives: one verb on one resource, in one namespace or with one name if the rule says so.
type right struct{ verb, group, resource, namespace, name string }

func (r right) String() string {
	s := r.verb + " " + r.resource
	if r.group != "" {
		s += "." + r.group
	}
	if r.name != "" {
		s += " " + r.name
	}
	if r.namespace != "" {
		s += " in " + r.namespace
	}
	return s
}

// unasked are rights that no request shows, each with why the hub has it.
var unasked = map[right]string{
	{verb: "update", group: "chandler.dev", resource: "addonsets/finalizers"}: "the admission plugin OwnerReferencesPermissionEnforcement (OpenShift) asks for it when a revision gets its set as the owner",
	{verb: "get", group: "chandler.dev", resource: "addondeliveries"}:         "a delivery that cannot be made for a conflict is looked at, for whose it is; only a faulty API server answers so, and not in every run",
}

// ledger holds the rights that the hub has used, in all tests of this run. The hub of every test runs with the rights of
// config/rbac and no others.
type ledger struct {
	mu   sync.Mutex
	used map[right]bool
}

var rights = &ledger{used: map[right]bool{}}

// span is a time between two others.
type span struct{ from, to time.Time }

// collect reads the audit log of a management cluster. A request that RBAC denied fails the test.
func (l *ledger) collect(t *testing.T, h *hub) {
	requests, err := h.HubRequests()
	if err != nil {
		t.Errorf("what the hub asked for: %v", err)
	}
	denied := map[right]bool{}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range requests {
		at := requests[i].RequestReceivedTimestamp.Time
		if slices.ContainsFunc(h.withoutRights, func(s span) bool { return at.After(s.from) && at.Before(s.to) }) {
			continue
		}
		for _, asked := range asked(&requests[i]) {
			if localfleet.DeniedByRBAC(&requests[i]) {
				denied[asked] = true
			} else {
				l.used[asked] = true
			}
		}
	}
	if len(denied) > 0 {
		t.Errorf("config/rbac does not let the hub do what it tried: %s", list(denied))
	}
}

// asked returns the rights that a request needed: one of a resource as such, and the same narrowed to its name and to its
// namespace, as a rule may have it.
func asked(e *auditv1.Event) []right {
	o := e.ObjectRef
	r := right{verb: e.Verb, group: o.APIGroup, resource: o.Resource}
	if o.Subresource != "" {
		r.resource += "/" + o.Subresource
	}
	verbs := []string{r.verb}
	if r.verb == "patch" && e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusCreated {
		verbs = append(verbs, "create") // server-side apply of what is not there needs both
	}
	var out []right
	for _, verb := range verbs {
		r.verb = verb
		named, placed := r, r
		named.name, placed.namespace = o.Name, o.Namespace
		out = append(out, r, named, placed)
	}
	return out
}

// compare wants every right that the hub has to have been used.
func (l *ledger) compare() int {
	granted, err := shippedRights()
	if err != nil {
		fmt.Fprintln(os.Stderr, "config/rbac:", err)
		return 1
	}
	idle := map[right]bool{}
	for r := range granted {
		use := r
		if r.verb == "list" { // an informer lists before it watches, but where the API server streams lists, as here
			use.verb = "watch"
		}
		if _, ok := unasked[r]; !ok && !l.used[r] && !l.used[use] {
			idle[r] = true
		}
	}
	if len(idle) == 0 {
		return 0
	}
	fmt.Fprintf(os.Stderr, "--- FAIL: config/rbac gives the hub what it used in no test: %s\n", list(idle))
	return 1
}

// shippedRights reads the roles of config/rbac.
func shippedRights() (map[right]bool, error) {
	raw, err := os.ReadFile(filepath.Join("..", "config", "rbac", "role.yaml"))
	if err != nil {
		return nil, err
	}
	out := map[right]bool{}
	for _, text := range strings.Split(string(raw), "\n---\n") {
		role := rbacv1.Role{} // a ClusterRole has the same rules
		if err := yaml.Unmarshal([]byte(text), &role); err != nil {
			return nil, err
		}
		for _, rule := range role.Rules {
			names := rule.ResourceNames
			if len(names) == 0 {
				names = []string{""}
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						for _, name := range names {
							out[right{verb: verb, group: group, resource: resource, namespace: role.Namespace, name: name}] = true
						}
					}
				}
			}
		}
	}
	return out, nil
}

// everyTestRan returns whether this is a whole run: a part of the tests uses a part of the rights.
func everyTestRan() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return !testing.Short()
}

func list(set map[right]bool) string {
	var out []string
	for r := range maps.Keys(set) {
		out = append(out, r.String())
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
