// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
)

// restart starts the hub, which was stopped, and waits until it has reconciled everything. Of two restarts the later
// one counts, because the fleet is larger then.
func (r *run) restart(ctx context.Context) error {
	if err := r.hub.listen(); err != nil {
		return err
	}
	r.profileStart(ctx, r.hub.pprof)
	begin := time.Now()
	if err := r.launch(ctx, r.hub); err != nil {
		return err
	}
	r.result.RestartReady = time.Since(begin).Seconds()
	last, err := r.hub.quiet(ctx, rested)
	if err != nil {
		return err
	}
	writes, err := r.hub.writes(ctx)
	if err != nil {
		return err
	}
	r.result.RestartSeconds, r.result.RestartWrites = last.Sub(begin).Seconds(), max(writes, r.result.RestartWrites)
	cpu, err := r.hub.cpu() // of the process since its start
	if err != nil {
		return err
	}
	r.result.RestartCPU = float64(cpu.Microseconds()) / 1000 / float64(max(len(r.observer.in(sets)), 1))
	if r.larger.resident == 0 {
		return nil
	}
	peak, err := r.hub.memory(residentMax)
	r.result.RestartPeak = peak / r.larger.resident
	return err
}

// soon restarts the hub, and registers a cluster when it says that it is ready. The fleet is not looked at yet.
func (r *run) soon(ctx context.Context) error {
	const name = "soon"
	if err := r.admit(ctx, []string{name}, nil); err != nil {
		return err
	}
	r.hub.process.Stop()
	begin := time.Now()
	if err := r.startHub(ctx); err != nil {
		return err
	}
	ready := time.Since(begin)
	if err := r.register(ctx, name); err != nil {
		return err
	}
	last, err := r.complete(ctx, name)
	if err != nil {
		return err
	}
	r.result.RestartFirst = last.Sub(begin).Seconds()
	made, err := r.made(ctx, name)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(r.out, "  ready after %.1f s, registered after %.0f s, its delivery there after %.0f s, its last object after %.1f s\n",
		ready.Seconds(), made[0].Sub(begin).Seconds(), made[1].Sub(begin).Seconds(), last.Sub(begin).Seconds())
	_, err = r.hub.quiet(ctx, rested)
	return err
}

// made returns when a cluster's registration and its delivery were made, to the second.
func (r *run) made(ctx context.Context, cluster string) (out [2]time.Time, err error) {
	registrations, deliveries := &hubv1.ClusterRegistrationList{}, &hubv1.AddonDeliveryList{}
	if err := errors.Join(r.management.Client.List(ctx, registrations), r.management.Client.List(ctx, deliveries)); err != nil {
		return out, err
	}
	for i := range registrations.Items {
		if reg := &registrations.Items[i]; reg.Name == cluster {
			out[0] = reg.CreationTimestamp.Time
		}
	}
	for i := range deliveries.Items {
		if d := &deliveries.Items[i]; d.Spec.RegistrationRef.Name == cluster {
			out[1] = d.CreationTimestamp.Time
		}
	}
	return out, nil
}

// takeOver kills the replica that leads, with another one waiting, and registers a cluster at once. What is left of the lease is not
// counted.
func (r *run) takeOver(ctx context.Context) error {
	const name = "over"
	if err := r.admit(ctx, []string{name}, nil); err != nil {
		return err
	}
	r.hub.process.Stop()
	if err := r.hub.listen(); err != nil {
		return err
	}
	if err := r.launch(ctx, r.hub); err != nil {
		return err
	}
	if _, err := r.hub.quiet(ctx, rested); err != nil {
		return err
	}
	charts, err := freeAddress()
	if err != nil {
		return err
	}
	first, second := r.hub.process, *r.hub
	if err := second.listen(); err != nil {
		return err
	}
	if err := r.launch(ctx, &second, "--chart-bind-address="+charts, "--chart-url=http://"+charts); err != nil {
		return err
	}
	defer func() { first.Kill(); r.hub = &second }()
	if err := r.caughtUp(ctx, &second); err != nil {
		return err
	}
	before, err := r.leader(ctx)
	if err != nil {
		return err
	}
	first.Kill()
	if err := r.register(ctx, name); err != nil {
		return err
	}
	for now := before; now == before || now == ""; {
		if now, err = r.leader(ctx); err != nil {
			return err
		}
		if err := r.wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	begin := time.Now()
	last, err := r.complete(ctx, name)
	if err != nil {
		return err
	}
	r.result.TakeOverSeconds = last.Sub(begin).Seconds()
	_, err = second.quiet(ctx, rested)
	return err
}

// complete waits until a cluster has its objects, and returns when it had the last of them.
func (r *run) complete(ctx context.Context, name string) (time.Time, error) {
	err := r.served(ctx, name)
	last, _ := r.observer.complete(name, r.p.Addons)
	return last, err
}

// leader returns who holds the hub's lease.
func (r *run) leader(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	err := r.management.Client.Get(ctx, client.ObjectKey{Namespace: hubconfig.LeaseNamespace, Name: hubconfig.LeaseName}, lease)
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

// caughtUp waits until a replica that does not lead has read what it watches: it does nothing any more.
func (r *run) caughtUp(ctx context.Context, h *hub) error {
	for before := time.Duration(-1); ; {
		now, err := h.cpu()
		if err != nil {
			return fmt.Errorf("the other replica: %w", err)
		}
		if before >= 0 && now-before < 50*time.Millisecond {
			return nil
		}
		before = now
		if err := r.wait(ctx, 2*time.Second); err != nil {
			return err
		}
	}
}

func (r *run) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
