// SPDX-License-Identifier: Apache-2.0

package course

import (
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/rollout"
)

// Course is how the next revision of a set reaches its clusters.
type Course struct {
	Strategy *rollout.Strategy
	// Waves are empty if all clusters get it at once.
	Waves []rollout.WaveView
	// Fresh are the clusters that have nothing of the set yet: they wait for no wave.
	Fresh []types.NamespacedName
}

// Waves is Plan for a program. has says which clusters have an older revision, and same on which of them the next one changes nothing.
// All count as healthy.
func Waves(in *Input, has, same func(types.NamespacedName) bool) (*Course, error) {
	_, all, err := in.clusters()
	if err != nil {
		return nil, err
	}
	registrations := map[types.NamespacedName]*hubv1.ClusterRegistration{}
	for i := range in.Registrations {
		reg := &in.Registrations[i]
		registrations[types.NamespacedName{Namespace: reg.Namespace, Name: reg.Name}] = reg
	}
	out := &Course{}
	var clusters []rollout.Cluster
	for _, key := range all {
		if !has(key) {
			out.Fresh = append(out.Fresh, key)
			continue
		}
		clusters = append(clusters, rollout.Cluster{Key: key, Labels: registrations[key].Labels, Revision: former, Ready: true, Healthy: true})
	}
	engine, err := in.engine(clusters, len(out.Fresh))
	if err != nil {
		return nil, err
	}
	engine.Revision, engine.Pause, engine.State = next, nil, nil
	engine.Same = func(c *rollout.Cluster, _ string) bool { return same(c.Key) }
	if out.Strategy = engine.Strategy; !out.Strategy.AtOnce() {
		out.Waves = rollout.Survey(engine, next)
	}
	return out, nil
}
