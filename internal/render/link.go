// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/plan"
)

// Dependency is an object on the same cluster that must come before another one.
type Dependency struct {
	// Addon is its name.
	Addon string
	// Namespace and Name are those of its Flux object, if Flux orders the two; empty if the hub does.
	Namespace, Name string
}

// Link sets what an object is delivered after, and gives it its final hash. sets names AddonSets that must come
// before it as a whole.
func (o *Object) Link(dependencies []Dependency, sets []string) {
	o.dependencies, o.sets = dependencies, sets
	o.Hash = o.bodyHash
	if len(dependencies)+len(sets) > 0 {
		o.Hash = identity.Hash(16, o.bodyHash, fmt.Sprint(dependencies), strings.Join(sets, ","))
	}
}

// Manifest returns the linked object, ready to be applied.
func (o *Object) Manifest() *unstructured.Unstructured {
	u := o.Object.DeepCopy()
	u.SetName(o.Name) // an add-on may go on with an object that was made for another one
	var refs []any
	var names []string
	for _, d := range o.dependencies {
		names = append(names, d.Addon)
		if d.Name == "" {
			continue
		}
		ref := map[string]any{"name": d.Name}
		if d.Namespace != o.Namespace {
			ref["namespace"] = d.Namespace
		}
		refs = append(refs, ref)
	}
	if len(refs) > 0 {
		u.Object["spec"].(map[string]any)["dependsOn"] = refs
	}
	for _, s := range o.sets {
		names = append(names, plan.SetBefore(identity.LabelValue(s)))
	}
	a := u.GetAnnotations()
	a[hubv1.HashAnnotation] = o.Hash
	if len(names) > 0 {
		a[hubv1.DependsOnAnnotation] = strings.Join(names, ",")
	}
	u.SetAnnotations(a)
	return u
}

// Skeleton returns the object without its body, for callers that remember what was rendered and do not need every
// byte.
func (o *Object) Skeleton() Object {
	out := *o
	out.Object, out.Trace, out.Shared = nil, nil, nil
	return out
}

// Complete gives a skeleton the body of the same object, which was rendered again. It returns false if that came out otherwise now.
func (o *Object) Complete(whole *Object) bool {
	if o.bodyHash != whole.bodyHash {
		return false
	}
	o.Object, o.Trace, o.Shared = whole.Object, whole.Trace, whole.Shared
	return true
}

// An object is delivered after so much at most: sixteen add-ons and sixteen sets, as the API has it, and the definitions of the add-on
// itself.
const (
	maxDependsOn       = 16 + 16 + 1
	maxDependsOnLength = maxDependsOn * (len("set/") + 63 + len(","))
)

// ParseDependsOn parses what Manifest wrote into DependsOnAnnotation. It returns nothing if that is more than a set can have: another
// writer has written it then, and the plan goes through each name of each object that leaves.
func ParseDependsOn(names string) []string {
	if names == "" || len(names) > maxDependsOnLength || strings.Count(names, ",") >= maxDependsOn {
		return nil
	}
	return strings.Split(names, ",")
}
