// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"

	"github.com/chandler-hub/chandler/internal/status"
)

// ledger collects sentences about clusters. What is the same for several clusters is said once, with their number.
type ledger struct {
	entries []*entry
	byText  map[string]*entry
}

// entry is what is said of some clusters; of none if it is not about clusters.
type entry struct {
	text     string
	clusters []string
}

// add notes a sentence. about begins with what follows the cluster's name, such as ": spec.variables: ..."; without a cluster it is all.
func (l *ledger) add(cluster, about string) {
	e := l.byText[about]
	if e == nil {
		e = &entry{text: about}
		if l.byText == nil {
			l.byText = map[string]*entry{}
		}
		l.entries, l.byText[about] = append(l.entries, e), e
	}
	if cluster != "" {
		e.clusters = append(e.clusters, cluster)
	}
}

// lines returns the sentences, in the order in which they came first.
func (l *ledger) lines() []string {
	var out []string
	for _, e := range l.entries {
		switch n := len(e.clusters); n {
		case 0:
			out = append(out, oneLine(e.text))
		case 1:
			out = append(out, oneLine("ClusterRegistration "+e.clusters[0]+e.text))
		default:
			out = append(out, oneLine(fmt.Sprintf("%d ClusterRegistrations (%s)%s", n, status.List(e.clusters, maxWhy), e.text)))
		}
	}
	return out
}
