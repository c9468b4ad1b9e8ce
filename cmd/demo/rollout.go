// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/examples"
)

// rollout applies examples/rollout and then two edits of it, of which the first is bad, and shows where each of them gets to.
func (f *fleet) rollout(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, edit := range []struct {
		file, says string
		ends       hubv1.RolloutPhase
		port       int32
	}{
		{"addonset.yaml", "The first revision goes to one cluster first, as every one does:", hubv1.RolloutDone, 8080},
		{"bad-edit.yaml", "A user writes port 80800, which does not exist:", hubv1.RolloutRolledBack, 8080},
		{"good-edit.yaml", "The next edit is a good one:", hubv1.RolloutDone, 9090},
	} {
		text, err := examples.Read("rollout/"+edit.file, nil)
		if err != nil {
			return err
		}
		f.out.linef("%s\n  applied examples/rollout/%s", edit.says, edit.file)
		generation, err := f.edit(ctx, text)
		if err != nil {
			return fmt.Errorf("apply examples/rollout/%s: %w", edit.file, err)
		}
		if err := f.rolled(ctx, generation, edit.ends); err != nil {
			return err
		}
		if err := f.entrances(ctx, edit.port); err != nil {
			return err
		}
	}
	return nil
}

// edit applies the set, and returns its generation.
func (f *fleet) edit(ctx context.Context, text string) (int64, error) {
	if err := f.apply(ctx, text); err != nil {
		return 0, err
	}
	set := &hubv1.AddonSet{}
	err := f.hub.Client.Get(ctx, client.ObjectKey{Namespace: "flux-system", Name: "entrance"}, set)
	return set.Generation, err
}

// rolled shows the rollout of a generation of the set until it is in a phase.
func (f *fleet) rolled(ctx context.Context, generation int64, ends hubv1.RolloutPhase) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		set := &hubv1.AddonSet{}
		if err := f.hub.Client.Get(ctx, client.ObjectKey{Namespace: "flux-system", Name: "entrance"}, set); err != nil {
			return err
		}
		is := set.Status.Rollout
		if is != nil && set.Status.ObservedGeneration == generation {
			f.out.table(waveRows(is))
			left := func(w hubv1.WaveStatus) bool { return w.Done < w.Total }
			if is.Phase == ends && !slices.ContainsFunc(is.Waves, left) {
				for _, why := range is.Failed {
					f.out.linef("It failed on %s.", why)
				}
				f.out.line("")
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the rollout is not %s: %w", ends, ctx.Err())
		case <-tick.C:
		}
	}
}

func waveRows(is *hubv1.RolloutStatus) [][]string {
	rows := [][]string{{"REVISION", "PHASE", "WAVE", "TOTAL", "DONE", "RUNNING", "FAILED"}}
	for _, w := range is.Waves {
		n := func(n int32) string { return strconv.Itoa(int(n)) }
		rows = append(rows, []string{is.Revision, string(is.Phase), w.Name, n(w.Total), n(w.Done), n(w.Running), n(w.Failed)})
	}
	return rows
}

// entrances reads the Service back from every cluster.
func (f *fleet) entrances(ctx context.Context, want int32) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		var ports []string
		good := 0
		for _, w := range f.workloads {
			s := &corev1.Service{}
			port := "none"
			if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "entrance"}, s); err == nil {
				if port = strconv.Itoa(int(s.Spec.Ports[0].Port)); s.Spec.Ports[0].Port == want {
					good++
				}
			}
			ports = append(ports, w.name+" "+port)
		}
		if good == len(f.workloads) {
			f.out.linef("Read back from the clusters: port %s.\n", strings.Join(ports, ", "))
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the clusters have port %s, want %d: %w", strings.Join(ports, ", "), want, ctx.Err())
		case <-tick.C:
		}
	}
}
