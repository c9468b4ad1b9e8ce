// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/rollout"
)

// Course is how the next revision of a set reaches its clusters.
type Course struct {
	Strategy *rollout.Strategy
	// Waves are empty if all clusters get it at once.
	Waves []rollout.WaveView
}

// Waves is Plan for a program. has says which clusters have an older revision, and same on which of them the next one changes nothing. The
// others have nothing of the set yet. All count as healthy.
func Waves(in *Input, has, same func(types.NamespacedName) bool) (*Course, error) {
	clusters, err := in.clusters()
	if err != nil {
		return nil, err
	}
	for i := range clusters {
		c := rollout.Cluster{Key: clusters[i].Key, Labels: clusters[i].Labels}
		if has(c.Key) {
			c.Revision, c.Ready, c.Healthy = former, true, true
		}
		clusters[i] = c
	}
	engine, err := in.engine(clusters)
	if err != nil {
		return nil, err
	}
	out := &Course{}
	engine.Revision, engine.Pause, engine.State = next, nil, nil
	engine.Same = func(c *rollout.Cluster, _ string) bool { return same(c.Key) }
	if out.Strategy = engine.Strategy; !out.Strategy.AtOnce() {
		out.Waves = rollout.Survey(engine, next)
	}
	return out, nil
}
