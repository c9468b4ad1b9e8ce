// SPDX-License-Identifier: Apache-2.0

package view

import (
	"crypto/sha256"
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
)

// Concern returns a text that changes when something changes of what a fleet in memory knows of one cluster: its registration, what is
// delivered to it, and what any set asks for. How the rollout of a set goes on elsewhere is none of it. It is "" if the fleet does not know
// the whole cluster.
func (x *Index) Concern(cluster types.NamespacedName) string {
	known := x.byKey[cluster]
	if known == nil || known.reg == nil || len(x.Unlisted) > 0 || x.Namespace != "" {
		return ""
	}
	sum := sha256.New()
	of := json.NewEncoder(sum) // it fails for none of these
	_ = of.Encode(known.reg)
	for _, d := range x.Deliveries {
		if d.Spec.RegistrationRef.Key() == cluster {
			_ = of.Encode(d)
		}
	}
	for _, s := range x.Sets {
		_ = of.Encode([]any{s.UID, s.Generation, s.Annotations})
	}
	return string(sum.Sum(nil))
}

// Version returns the resource version of a cluster's registration; "" if it is not known.
func (x *Index) Version(cluster types.NamespacedName) string {
	if known := x.byKey[cluster]; known != nil && known.reg != nil {
		return known.reg.ResourceVersion
	}
	return ""
}
