// SPDX-License-Identifier: Apache-2.0

package folding

import (
	"fmt"
	"slices"
	"strings"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/origin"
)

// mark is a label or an annotation that objects of one kind get by one command.
type mark struct{ verb, kind, namespace, pair, remark string }

// marks are the commands, each with the names of its objects.
type marks struct {
	order []mark
	names map[mark][]string
}

func (m *marks) add(one mark, name string) {
	if m.names[one] == nil {
		m.order = append(m.order, one)
	}
	if !slices.Contains(m.names[one], name) {
		m.names[one] = append(m.names[one], name)
	}
}

// maxNames is how many objects one command names.
const maxNames = 20

// commands returns the commands of kubectl.
func (m *marks) commands() []string {
	var out []string
	for _, one := range m.order {
		for names := range slices.Chunk(m.names[one], maxNames) {
			namespace := ""
			if one.namespace != "" {
				namespace = "-n " + one.namespace + " "
			}
			out = append(out, fmt.Sprintf("kubectl %s %s %s%s %s%s", one.verb, one.kind, namespace, strings.Join(names, " "), one.pair, one.remark))
		}
	}
	return out
}

// mark returns what gives the origin a label or an annotation. kubectl overwrites another value only if it is told to.
func (c *Cluster) mark(verb, key, value string) mark {
	flag := ""
	if is, there := c.marks[key]; there && is != value {
		flag = "--overwrite "
	}
	return mark{verb: verb, kind: strings.ToLower(c.Kind.GroupKind.String()), namespace: c.Namespace, pair: flag + key + "=" + value}
}

// register returns the commands that register the clusters that are not yet: one for all that lie in one namespace and are
// marked alike. The annotations that name keys come before the labels.
func (r *Result) register(hub hubconfig.Shared) []string {
	namespaces, keys, labels := marks{names: map[mark][]string{}}, marks{names: map[mark][]string{}}, marks{names: map[mark][]string{}}
	for _, c := range r.Clusters {
		if c.Registered {
			continue
		}
		open := slices.Contains(hub.Origins.SecretNamespaces, "*") || slices.Contains(hub.Origins.SecretNamespaces, c.Namespace)
		if c.Kind == origin.Secret && !open {
			namespaces.add(mark{verb: "label", kind: "namespace", pair: hubv1.RegisterSecretsLabel + "=true"}, c.Namespace)
		}
		if c.Kind == origin.Kamaji && c.Key != "" {
			keys.add(c.mark("annotate", "kamaji.clastix.io/kubeconfig-secret-key", c.Key), c.Origin)
		}
		if c.Kind == origin.Secret && c.Key != "" && c.Key != "value" {
			keys.add(c.mark("annotate", hubv1.KubeConfigKeyAnnotation, c.Key), c.Origin)
		}
		one := c.mark("label", hubv1.RegisterLabel, "true")
		if c.Assumed && c.Kind != origin.Secret {
			one.remark = "   # guessed from the names of Secrets, which were not read"
		}
		labels.add(one, c.Origin)
	}
	return slices.Concat(namespaces.commands(), keys.commands(), labels.commands())
}
