// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"time"
)

// arrivals registers clusters one after the other.
func (r *run) arrivals(ctx context.Context) error {
	took, err := r.arrive(ctx, names("one", singles), 0)
	r.result.NewClusterP50, r.result.NewClusterP99 = percentile(took, 0.5), percentile(took, 0.99)
	return err
}

// dead makes a part of the fleet hang, and then registers clusters one after the other.
func (r *run) dead(ctx context.Context) error {
	r.facade.Kill(names("c", int(float64(r.p.Clusters)*r.p.Dead)))
	took, err := r.arrive(ctx, names("well", singles), 0)
	r.result.HealthyDelayRatio = percentile(took, 0.5) / r.result.NewClusterP50
	return err
}

// arrive registers clusters, either each when the one before has all its objects, or one per interval. It returns how
// long each took, in milliseconds, from its label to its last Flux object.
func (r *run) arrive(ctx context.Context, names []string, every time.Duration) ([]float64, error) {
	if err := r.admit(ctx, names, nil); err != nil {
		return nil, err
	}
	labelled := map[string]time.Time{}
	for i, name := range names {
		labelled[name] = time.Now()
		if err := r.register(ctx, name); err != nil {
			return nil, err
		}
		switch {
		case every == 0:
			if err := r.served(ctx, name); err != nil {
				return nil, err
			}
		default:
			time.Sleep(time.Until(labelled[names[0]].Add(time.Duration(i+1) * every)))
		}
	}
	var took []float64
	for _, name := range names {
		if err := r.served(ctx, name); err != nil {
			return nil, err
		}
		last, _ := r.observer.complete(name, r.p.Addons)
		took = append(took, float64(last.Sub(labelled[name]).Microseconds())/1000)
	}
	return took, nil
}

func (r *run) served(ctx context.Context, name string) error {
	return r.observer.until(ctx, name+" has its objects", func() bool {
		_, ok := r.observer.complete(name, r.p.Addons)
		return ok
	})
}

// percentile returns a percentile of values, which it sorts; 0 if there are none.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(float64(len(values))*p))]
}
