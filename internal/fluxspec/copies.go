// SPDX-License-Identifier: Apache-2.0

package fluxspec

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// CopyAs is the field by which a Secret is delivered itself, in place of objects that it holds.
const CopyAs = "copyAs"

// SecretCopy is what a Secret that is delivered itself is called on the cluster.
type SecretCopy struct {
	// Name on the cluster. Default: that of the Secret.
	Name string `json:"name,omitempty"`
	// Namespace on the cluster. Default: targetNamespace.
	Namespace string `json:"namespace,omitempty"`
	// Labels and Annotations on the cluster. Those of the Secret are not copied: tools keep copies of its content there.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// checkCopy checks what an entry of manifestsFrom says of a copy.
func checkCopy(at string, entry map[string]any) []Problem {
	copyAs, said := entry[CopyAs]
	if !said {
		return nil
	}
	at += "." + CopyAs
	if _, hole := copyAs.(Hole); hole {
		return nil
	}
	to, ok := copyAs.(map[string]any)
	if !ok {
		return []Problem{{at, "must be an object; write {} to keep the Secret's name"}}
	}
	if entry["kind"] == "ConfigMap" {
		return []Problem{{at, "only a Secret can be copied as it is; write the ConfigMap into objects"}}
	}
	var problems []Problem
	for field, check := range map[string]func(string) []string{"name": validation.IsDNS1123Subdomain, "namespace": validation.IsDNS1123Label} {
		if text, ok := to[field].(string); ok {
			if wrong := check(text); len(wrong) > 0 {
				problems = append(problems, Problem{at + "." + field, fmt.Sprintf("is %q: %s", text, strings.Join(wrong, ", "))})
			}
		}
	}
	return problems
}

// checkCopies wants copies to come to the team's own namespaces.
func (r *TeamRules) checkCopies(body map[string]any) []Problem {
	from, _ := body["manifestsFrom"].([]any)
	var out []Problem
	for i, f := range from {
		entry, _ := f.(map[string]any)
		to, _ := entry[CopyAs].(map[string]any)
		if namespace, said := to["namespace"]; said && namespace != "" {
			out = append(out, r.checkNamespace(fmt.Sprintf("manifestsFrom[%d].%s.namespace", i, CopyAs), namespace)...)
		}
	}
	return out
}
