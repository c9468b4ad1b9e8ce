// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/chandler-hub/chandler/test/simulation/apiserver"
	"github.com/chandler-hub/chandler/test/simulation/policies"
)

// The policies of config/policies stand in front of the API server, as in an installation.

// whateverHappens are the invariants that hold whatever the break-glass group does.
var whateverHappens = []string{"loss", "orphans", "secrets", "panic"}

var fence = sync.OnceValue(func() *policies.Policies {
	p, err := policies.Load("../../config/policies")
	must(err)
	return p
})

// The users of requests, as an installation has them.
var (
	hubUser  = account("chandler-system", "chandler")
	fluxUser = account("flux-system", "helm-controller")
	person   = &user.DefaultInfo{Name: "jane", Groups: []string{user.AllAuthenticated}}
	rescuer  = &user.DefaultInfo{Name: "jane", Groups: []string{user.AllAuthenticated, "chandler.dev:break-glass"}}
)

func account(namespace, name string) user.Info {
	return &user.DefaultInfo{Name: "system:serviceaccount:" + namespace + ":" + name, Groups: []string{
		"system:serviceaccounts", "system:serviceaccounts:" + namespace, user.AllAuthenticated}}
}

// userOf returns who an actor is for the policies. The hub acts under the names of its field owners.
func (w *World) userOf(actor string) user.Info {
	switch {
	case actor == "user" && (w.brokeGlass || w.rescues):
		return rescuer
	case actor == "user":
		return person
	case actor == "flux":
		return fluxUser
	}
	return hubUser
}

// admit is asked by the API server before each write.
func (w *World) admit(a apiserver.Attempt) error {
	if w.fenceless {
		return nil
	}
	o := a.New
	if o == nil {
		o = a.Old
	}
	version, _ := o["apiVersion"].(string)
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	message := fence().Denied(&policies.Request{
		User: w.userOf(a.Actor), Operation: admission.Operation(a.Verb), Kind: gv.WithKind(a.Key.Kind), Subresource: a.Subresource, Object: a.New,
		Old: a.Old,
	}, w.server.List)
	if message == "" {
		return nil
	}
	if a.Actor == "user" {
		w.denies(message)
	} else {
		w.violated("fence", "%s is denied %s of %s: %s", a.Actor, a.Verb, a.Key, message)
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: a.Key.Group, Resource: a.Key.Kind}, a.Key.Name, errors.New(message))
}

// denied returns whether the policies deny a step to users.
func denied(line string) bool {
	f := strings.Fields(line)
	switch f[0] {
	case "forge", "forge-as", "uncopy":
		return true
	case "delete-all": // a namespace of sets has none of these kinds but what the hub has written
		return slices.Contains([]string{"AddonDelivery", "HelmRelease", "Kustomization", "HelmChart", "Secret"}, f[1])
	}
	return false
}

// denies notes that the policies deny something to a user.
func (w *World) denies(message string) {
	if !slices.Contains(w.denied, message) {
		w.denied = append(w.denied, message)
	}
}

// pastPolicies does something that no policy is asked about.
func (w *World) pastPolicies(do func()) {
	w.fenceless = true
	do()
	w.fenceless = false
}

// breakingGlass does something as a member of the break-glass group.
func (w *World) breakingGlass(do func()) {
	w.rescues = true
	do()
	w.rescues = false
}
