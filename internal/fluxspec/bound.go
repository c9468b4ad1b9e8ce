// SPDX-License-Identifier: Apache-2.0

package fluxspec

import "fmt"

// MaxObject bounds a generated object, in bytes of JSON: etcd accepts 1.5 MiB, and the status needs room too.
const MaxObject = 1 << 20

// maxValues is how many values a spec may have, beside the values of a Helm release. A schema is checked by a library of Kubernetes that
// compares each mistake with all others: without a bound, one set of a tenant would have the hub at work for half an hour.
const maxValues = 2000

// maxWrong is how many values may be of a wrong type before nothing else is looked for. When they are mended, the rest is told.
const maxWrong = 20

// maxTold is how many problems of a body are told. The hub remembers them for each cluster, and a short expression makes thousands of
// objects of which each lacks everything.
const maxTold = 200

// tooMany says that a spec has more values than are checked; nil if it has not. Those of manifests and of a Helm release are objects and
// values of a chart, which no schema of Flux says anything about.
func tooMany(kind string, spec map[string]any) []Problem {
	if kind == ManifestsKind {
		return nil
	}
	n := 0
	for field, v := range spec {
		if kind == HelmReleaseKind && field == "values" {
			continue
		}
		if n += count(v, maxValues-n); n > maxValues {
			return []Problem{{Message: fmt.Sprintf("has more than %d values, which are the most beside those of a Helm release; split it",
				maxValues)}}
		}
	}
	return nil
}

// count returns how many values there are in a value, itself among them. It stops soon after most.
func count(v any, most int) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			if n > most {
				break
			}
			n += count(x, most-n)
		}
	case []any:
		for _, x := range v {
			if n > most {
				break
			}
			n += count(x, most-n)
		}
	}
	return n
}
