// SPDX-License-Identifier: Apache-2.0

package fluxspec

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManifestsKind is the kind of an add-on of plain objects. A HelmRelease of one generic chart delivers it.
const ManifestsKind = "Manifests"

// Manifests is the body of such an add-on.
type Manifests struct {
	// Objects are delivered as they are written.
	Objects []map[string]any `json:"objects,omitempty"`
	// ManifestsFrom are ConfigMaps and Secrets that hold objects as YAML, and Secrets that are copied to the cluster.
	ManifestsFrom []ManifestsSource `json:"manifestsFrom,omitempty"`
	// TargetNamespace is the namespace for objects that name none, and where Helm keeps its records. Default:
	// default.
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// Strategy is Reconcile (the default: Flux corrects drift) or ApplyOnce (Flux creates the objects and then leaves
	// them alone).
	Strategy string `json:"strategy,omitempty"`
	// Interval and Timeout as in a HelmRelease.
	Interval *metav1.Duration `json:"interval,omitempty"`
	Timeout  *metav1.Duration `json:"timeout,omitempty"`
}

// ManifestsSource is a ConfigMap or Secret that holds objects, or a Secret that is copied.
type ManifestsSource struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// From is FromCluster for one in the namespace of the cluster's registration; empty for the set's namespace.
	From string `json:"from,omitempty"`
	// Key that holds them, or that is copied; all keys if it is empty.
	Key      string `json:"key,omitempty"`
	Optional bool   `json:"optional,omitempty"`
	// CopyAs has the Secret itself delivered, in place of objects that it holds.
	CopyAs *SecretCopy `json:"copyAs,omitempty"`
}

// The strategies of manifests.
const (
	StrategyReconcile = "Reconcile"
	StrategyApplyOnce = "ApplyOnce"
)

func requiredManifests(body map[string]any) []Problem {
	objects, _ := body["objects"].([]any)
	from, _ := body["manifestsFrom"].([]any)
	_, holes := body["objects"].(Hole)
	if len(objects)+len(from) == 0 && !holes {
		return []Problem{{"objects", "write objects, manifestsFrom or both"}}
	}
	var problems []Problem
	for i, o := range objects {
		m, _ := o.(map[string]any)
		for _, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}} {
			if _, hole := o.(Hole); !hole && !isThere(m, path...) {
				problems = append(problems, Problem{fmt.Sprintf("objects[%d].%s", i, dotted(path)), "is required"})
			}
		}
	}
	for i, f := range from {
		m, _ := f.(map[string]any)
		if k, _ := m["kind"].(string); k != "ConfigMap" && k != "Secret" {
			problems = append(problems, Problem{fmt.Sprintf("manifestsFrom[%d].kind", i), "must be ConfigMap or Secret"})
		}
		if !isThere(m, "name") {
			problems = append(problems, Problem{fmt.Sprintf("manifestsFrom[%d].name", i), "is required"})
		}
		problems = append(problems, checkCopy(fmt.Sprintf("manifestsFrom[%d]", i), m)...)
	}
	switch s := body["strategy"].(type) {
	case nil, Hole:
	case string:
		if s != StrategyReconcile && s != StrategyApplyOnce {
			problems = append(problems, Problem{"strategy", fmt.Sprintf("is %q: write %s or %s", s, StrategyReconcile, StrategyApplyOnce)})
		}
	}
	return problems
}
