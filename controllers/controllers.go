// SPDX-License-Identifier: Apache-2.0

// Package controllers wires up the controllers of the hub. Each controller is a package of its own, and no two controllers write the
// same thing: discovery writes a registration's origin and labels, registration writes its status, addonset writes
// the deliveries, delivery writes the Flux objects and the deliveries' status, sharedobjects writes the HelmCharts
// and sources.
package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chandler-hub/chandler/controllers/addonset"
	"github.com/chandler-hub/chandler/controllers/delivery"
	"github.com/chandler-hub/chandler/controllers/discovery"
	"github.com/chandler-hub/chandler/controllers/enqueue"
	"github.com/chandler-hub/chandler/controllers/fluxcrds"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/metrics"
	"github.com/chandler-hub/chandler/controllers/originreader"
	"github.com/chandler-hub/chandler/controllers/profiles"
	"github.com/chandler-hub/chandler/controllers/programs"
	"github.com/chandler-hub/chandler/controllers/recorder"
	"github.com/chandler-hub/chandler/controllers/registration"
	"github.com/chandler-hub/chandler/controllers/sharedobjects"
	"github.com/chandler-hub/chandler/controllers/teams"
	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/controllers/tokens"
	"github.com/chandler-hub/chandler/internal/apply"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/probe"
)

// What the hub may do on the management cluster. It reads Secrets everywhere, because kubeconfigs lie beside their clusters,
// and writes them only beside AddonSets, and where a Secret asks it to renew the token in it; so too the ConfigMaps by which
// Flux logs in with a workload identity. It patches one label and one annotation of the objects that clusters come from. The
// end-to-end tests run it with these rights, and fail if it asks for another, or does not use one.
//
// +kubebuilder:rbac:groups=chandler.dev,resources=addonsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=chandler.dev,resources=teams,verbs=list;watch;patch
// +kubebuilder:rbac:groups=chandler.dev,resources=addondeliveries,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=chandler.dev,resources=clusterregistrations,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=chandler.dev,resources=clusterregistrations/status;addonsets/status;addondeliveries/status;teams/status,verbs=patch
// +kubebuilder:rbac:groups=chandler.dev,resources=addonsets/finalizers,verbs=update
// +kubebuilder:rbac:groups=helm.toolkit.fluxcd.io,resources=helmreleases,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=kustomize.toolkit.fluxcd.io,resources=kustomizations,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmcharts;helmrepositories;gitrepositories;ocirepositories;buckets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get
// +kubebuilder:rbac:groups=networking.k8s.io,resources=servicecidrs,verbs=list
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update,namespace=kube-system

// AddToManager adds every controller to a manager. led is the tenure of this process.
func AddToManager(ctx context.Context, mgr manager.Manager, config *hubconfig.Config, led *tenure.Tenure) error {
	system := &corev1.Namespace{}
	if err := mgr.GetAPIReader().Get(ctx, types.NamespacedName{Name: "kube-system"}, system); err != nil {
		return fmt.Errorf("read this cluster's own identity: %w", err)
	}
	if err := index.Add(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	measured, err := metrics.Register(ctrlmetrics.Registry)
	if err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	c := measured.Counted(mgr.GetClient())
	pool := probe.NewPool(probe.PoolOptions{
		Interval: config.ProbeInterval,
		Probe: measured.Measured(func(ctx context.Context, target *kubeconfig.Config) probe.Result {
			return probe.Once(ctx, target, probe.Options{Rules: target.Rules(), UserAgent: "chandler-hub"})
		}),
	})
	if err := measured.Collect(c, mgr.Elected(), pool); err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	flux := &fluxcrds.Reader{Live: mgr.GetAPIReader()}
	if _, err := flux.Read(ctx); err != nil {
		mgr.GetLogger().Error(err, "The CRDs of Flux cannot be read; those that are built in count")
	}
	return AddControllers(mgr, config, World{
		Flux: flux, Client: c, Pool: pool, Token: probe.Token, Probe: probe.Once, Clock: clock.RealClock{}, HubUID: system.UID,
		Keep: measured.Keep, Tenure: led,
	})
}

// World is what the controllers use from outside.
type World struct {
	// Client reads from the manager's cache and writes.
	Client client.Client
	// Pool probes the clusters.
	Pool *probe.Pool
	// Token asks a cluster for a token of a ServiceAccount: probe.Token, except in tests.
	Token tokens.Request
	// Probe asks a cluster who it is, once: probe.Once, except in tests.
	Probe tokens.Probe
	Clock clock.PassiveClock
	// Tenure is that of this process.
	Tenure *tenure.Tenure
	// Flux reads Flux's CRDs; nil for those that are built in.
	Flux *fluxcrds.Reader
	// HubUID is the kube-system UID of the management cluster itself.
	HubUID types.UID
	// Keep is told what the controllers keep in memory; nil if that is not needed.
	Keep func(map[string]metrics.Kept) error
}

// AddControllers adds every controller to a manager whose cache has the indexes (index.Add).
func AddControllers(mgr manager.Manager, config *hubconfig.Config, w World) error {
	c, live, now := apply.Documented(w.Client, config.DocsURL), mgr.GetAPIReader(), w.Clock
	known := originreader.New(mgr.GetClient(), live, config.Origins)
	recorderOf := func(of string) events.EventRecorder {
		return recorder.Bounded(mgr.GetEventRecorder("chandler-" + of))
	}
	keeper := &sharedobjects.Keeper{Client: c, Config: config, Live: live, Clock: now}
	compiled := &programs.Cache{Slots: min(2, config.Concurrency/2)}
	sets, clusters := enqueue.NewBell(enqueue.AllSets(c)), enqueue.NewFleetBell(enqueue.Everywhere(c))
	if w.Flux != nil {
		w.Flux.Changed, compiled.Schemas = []*enqueue.Bell{sets, clusters}, w.Flux.Library
		if err := w.Flux.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("set up fluxcrds: %w", err)
		}
	}
	shown := func(manager.Manager) error { return nil }
	if config.ClusterProfiles {
		shown = (&profiles.Reconciler{Client: c, Live: live, Origins: known, Config: config,
			Recorder: recorderOf("profiles")}).SetupWithManager
	}
	deciding := &addonset.Reconciler{Programs: compiled, Rejudged: sets, Client: c, Live: live, Config: config, Clock: now,
		Labels: known.Labels, Shared: keeper, Recorder: recorderOf("addonset"), Tenure: w.Tenure}
	delivering := &delivery.Reconciler{Programs: compiled, Rejudged: clusters, Client: c, Live: live, Config: config, Shared: keeper,
		Origins: known, Clock: now, Recorder: recorderOf("delivery"), Tenure: w.Tenure}
	if w.Keep != nil {
		if err := w.Keep(map[string]metrics.Kept{"programs": compiled.Kept, "documents": delivering.Documents,
			"readers":    func() (entries, bytes int) { return deciding.Readers() + delivering.Readers(), -1 },
			"renderings": delivering.Renderings, "shared": keeper.Kept}); err != nil {
			return fmt.Errorf("register the metrics of what is kept: %w", err)
		}
	}
	for _, one := range []struct {
		name  string
		setup func(manager.Manager) error
	}{
		{"discovery", (&discovery.Reconciler{Client: c, Live: live, Origins: known, Config: config, Clock: now,
			Recorder: recorderOf("discovery"), Tenure: w.Tenure}).SetupWithManager},
		{"registration", (&registration.Reconciler{
			Client: c, Live: live, Origins: known, Config: config, Pool: w.Pool, Clock: now, HubUID: w.HubUID,
			Recorder: recorderOf("registration"), Tenure: w.Tenure,
		}).SetupWithManager},
		{"addonset", deciding.SetupWithManager},
		{"delivery", delivering.SetupWithManager},
		{"team", (&teams.Reconciler{Client: c, Live: live, Config: config, Clock: now}).SetupWithManager},
		{"tokens", (&tokens.Reconciler{Client: c, Live: live, Config: config, Clock: now, Token: w.Token,
			Recorder: recorderOf("tokens")}).SetupWithManager},
		{"renewal", (&tokens.Renewal{Client: c, Live: live, Config: config, Clock: now, Token: w.Token, Probe: w.Probe,
			Recorder: recorderOf("tokens")}).SetupWithManager},
		{"profiles", shown},
		{"shared", keeper.SetupWithManager},
		{"origins", known.SetupWithManager},
	} {
		if err := one.setup(mgr); err != nil {
			return fmt.Errorf("set up %s: %w", one.name, err)
		}
	}
	return nil
}
