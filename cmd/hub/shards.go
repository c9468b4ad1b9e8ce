// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/shard"
)

// The hub learns the shards of Flux when it starts, and starts again when they are others: clusters move between shards by a write to each
// of their Flux objects, which is nothing to do while a Deployment is replaced. So another answer counts when it has lasted, also across
// starts: a hub goes on with the shards that are published. The leader publishes others, and each process starts again that has not learned
// what is published.

// settledShards is for how long Flux's controllers have to serve other shards before the hub moves clusters.
const settledShards = 5 * time.Minute

// lookForShards is how often the hub looks.
const lookForShards = time.Minute

// shards watches the shards of Flux's controllers.
type shards struct {
	client client.Client
	live   client.Reader
	leads  func() bool
	// flux and hub are the namespaces of Flux and of the hub.
	flux, hub string
	// known are those that this process gives to clusters, beside those of tenants.
	known, tenants []string
	// others are those that Flux serves in place of them, since when.
	others []string
	since  time.Time
}

// learnShards has the hub learn the shards of Flux, if no flag names them.
func (o *options) learnShards(ctx context.Context, mgr manager.Manager, config *hubconfig.Config, leads func() bool) (err error) {
	if !config.LearnShards {
		return nil
	}
	s := &shards{client: mgr.GetClient(), live: mgr.GetAPIReader(), leads: leads, flux: o.FluxNamespace, hub: o.namespace}
	if config.FluxShards, err = s.learn(ctx, config.FluxTenantShards); err != nil {
		return err
	}
	return mgr.Add(s)
}

// learn returns the shards to give to clusters: those that an earlier process has published, or else those that Flux serves now.
func (s *shards) learn(ctx context.Context, tenants []string) ([]string, error) {
	s.tenants = tenants
	published, there, err := s.published(ctx)
	if !there && err == nil {
		published, err = s.served(ctx)
	}
	s.known = published
	return s.known, err
}

// published returns the shards that a process has published, and whether there is what it publishes in.
func (s *shards) published(ctx context.Context) (shards []string, there bool, err error) {
	published := &corev1.ConfigMap{}
	err = s.live.Get(ctx, client.ObjectKey{Namespace: s.hub, Name: hubconfig.ConfigMapName}, published)
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("read ConfigMap %s/%s: %w", s.hub, hubconfig.ConfigMapName, err)
	}
	return strings.FieldsFunc(published.Data[hubconfig.FlagFluxShards], func(r rune) bool { return r == ',' }), true, nil
}

// served returns the shards that both of Flux's controllers serve which apply add-ons.
func (s *shards) served(ctx context.Context) ([]string, error) {
	list := &appsv1.DeploymentList{}
	if err := s.live.List(ctx, list, client.InNamespace(s.flux)); err != nil {
		return nil, fmt.Errorf("look for Flux's shards in namespace %s (--%s=%s): %w", s.flux, hubconfig.FlagFluxShards, hubconfig.AutoShards,
			err)
	}
	const kustomize, helm = "kustomize-controller", "helm-controller"
	all := map[string][]string{}
	for i := range list.Items {
		d := &list.Items[i]
		if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 || d.DeletionTimestamp != nil {
			continue
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			image, _, _ := strings.Cut(c.Image, "@")
			name, _, _ := strings.Cut(path.Base(image), ":")
			all[name] = append(all[name], shard.Served(selectorIn(c.Args))...)
		}
	}
	out := shard.Learn(all, kustomize, helm)
	return slices.DeleteFunc(out, func(one string) bool { return slices.Contains(s.tenants, one) }), nil
}

// selectorIn returns the label selector in the arguments of a controller of Flux.
func selectorIn(args []string) string {
	f := pflag.NewFlagSet("flux", pflag.ContinueOnError)
	f.ParseErrorsAllowlist.UnknownFlags = true
	f.SetOutput(io.Discard)
	selector := f.String("watch-label-selector", "", "")
	_ = f.Parse(args) // what it does not know is Flux's own
	return *selector
}

// NeedLeaderElection lets each process look: a standby has to know the same shards.
func (s *shards) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. It ends the process when other shards are published, or when it leads and Flux has served others for
// a while.
func (s *shards) Start(ctx context.Context) error {
	ticker := time.NewTicker(lookForShards)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := s.look(ctx, time.Now()); errors.As(err, &errShards{}) {
			return err
		} else if err != nil {
			ctrl.Log.WithName("shards").Error(err, "the hub goes on with the shards that it knows")
		}
	}
}

// look asks which shards are published, and which Flux serves. It returns errShards if this process is to start again with others.
func (s *shards) look(ctx context.Context, now time.Time) error {
	published, there, err := s.published(ctx)
	if err != nil {
		return err
	}
	if there && !slices.Equal(published, s.known) {
		return errShards{s.known, published}
	}
	served, err := s.served(ctx)
	switch {
	case err != nil:
		return err
	case slices.Equal(served, s.known):
		s.since = time.Time{}
		return nil
	case s.since.IsZero() || !slices.Equal(served, s.others):
		s.others, s.since = served, now
		return nil
	case now.Sub(s.since) < settledShards || !s.leads():
		return nil
	}
	if err := s.publish(ctx, served); err != nil {
		return fmt.Errorf("publish the shards of Flux for the next process: %w", err)
	}
	return errShards{s.known, served}
}

// publish writes down the shards for the next process.
func (s *shards) publish(ctx context.Context, shards []string) error {
	published := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.hub, Name: hubconfig.ConfigMapName}}
	patch := fmt.Appendf(nil, `{"data":{%q:%q}}`, hubconfig.FlagFluxShards, strings.Join(shards, ","))
	return s.client.Patch(ctx, published, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(hubv1.FieldManager))
}

// errShards ends a process that gives other shards to clusters than Flux serves.
type errShards struct{ known, now []string }

func (e errShards) Error() string {
	return fmt.Sprintf("Flux's controllers serve the shards %s, and no longer %s: the hub starts again with these", list(e.now), list(e.known))
}

func list(shards []string) string {
	if len(shards) == 0 {
		return "(none)"
	}
	return strings.Join(shards, ", ")
}
