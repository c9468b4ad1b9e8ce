// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	goruntime "runtime"
	"time"

	"github.com/fluxcd/cli-utils/pkg/flowcontrol"
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/chandler-hub/chandler/controllers"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/controllers/metrics"
	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/pressure"
	"github.com/chandler-hub/chandler/internal/version"
)

func newCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:           "hub",
		Short:         "Chandler's manager: add-ons for every cluster of a fleet, delivered by Flux",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.Get().String(),
		RunE:          func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *options) run(ctx context.Context) error {
	logger := o.logger(os.Stderr)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	build := version.Get()
	logger.Info("chandler hub", "version", build.Version, "revision", build.Revision, "go", build.Go)
	restConfig, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the management cluster: %w", err)
	}
	config, err := o.complete(findAPIServer(ctx, restConfig.Host, os.Getenv, net.DefaultResolver.LookupNetIP))
	if err != nil {
		return err
	}
	if o.PprofAddress != "0" {
		goruntime.SetMutexProfileFraction(100) // one in a hundred waits for a lock, which costs nothing to speak of
	}
	restConfig.UserAgent = "chandler-hub"
	led := &tenure.Tenure{}
	lease, err := newLock(restConfig, o.namespace, led)
	if err != nil {
		return err
	}
	leads := func() bool { return led.Holds(time.Now()) }
	restConfig.Wrap(onlyLeading(leads))
	restConfig.Wrap(keepEvents)
	if err := limit(ctx, restConfig); err != nil {
		return err
	}
	mgr, err := o.manager(restConfig, lease)
	if err != nil {
		return err
	}
	if config.Rules.ServiceCIDRs, err = serviceCIDRs(ctx, mgr.GetAPIReader()); err != nil {
		return err
	}
	if err := o.learnShards(ctx, mgr, config, leads); err != nil {
		return err
	}
	if err := controllers.AddToManager(ctx, mgr, config, led); err != nil {
		return err
	}
	if err := mgr.Add(newPublisher(mgr, o.namespace, config)); err != nil {
		return err
	}
	if err := o.addChecks(ctx, mgr, logger); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// addChecks adds what /healthz and /readyz ask, and the server of charts, which one of them asks.
func (o *options) addChecks(ctx context.Context, mgr manager.Manager, logger logr.Logger) error {
	if o.ChartAddress != "0" {
		charts := &chartServer{address: o.ChartAddress}
		if err := mgr.Add(charts); err != nil {
			return err
		}
		if err := mgr.AddReadyzCheck("charts", charts.Ready); err != nil {
			return err
		}
	}
	if !o.WithoutFence {
		f := &fence{live: mgr.GetAPIReader(), log: logger.WithName("policies"), now: time.Now}
		_ = f.look(ctx) // which logs what is missing
		if err := mgr.AddReadyzCheck("policies", f.Ready); err != nil {
			return err
		}
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("ping", healthz.Ping)
}

// manager makes the manager, which works when it has the Lease.
func (o *options) manager(config *rest.Config, lease *lock) (manager.Manager, error) {
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme:                              hubscheme.New(),
		Cache:                               index.CacheOptions(),
		Client:                              client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Metrics:                             server.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:              o.HealthAddress,
		PprofBindAddress:                    o.PprofAddress,
		LeaderElection:                      true,
		LeaderElectionResourceLockInterface: lease,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       ptr.To(leaseDuration),
		RenewDeadline:                       ptr.To(renewDeadline),
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	return mgr, mgr.AddReadyzCheck("lease", lease.Ready)
}

// writesAtATime is the maximum number of writes under way: twice the number with which an API server on two cores
// takes the most.
const writesAtATime = 64

// writesOfCluster is how many Flux objects of one cluster are written at a time. With ten add-ons it takes a new cluster two rounds, and
// eight clusters at the same time have what the API server takes.
const writesOfCluster = 8

// limit turns off the client's own rate limit if the API server has priority and fairness, which then decides how
// much the hub may ask of it.
func limit(ctx context.Context, config *rest.Config) error {
	fair, err := flowcontrol.IsEnabled(ctx, config)
	if err != nil {
		return fmt.Errorf("ask the management cluster: %w", err)
	}
	if !fair {
		return nil // client-go's own limit
	}
	config.QPS = -1
	l := pressure.New(writesAtATime, clock.RealClock{})
	config.Wrap(l.Wrap)
	return metrics.RegisterBound(ctrlmetrics.Registry, l.Bound)
}

func (o *options) logger(to io.Writer) logr.Logger {
	options := &slog.HandlerOptions{
		Level: map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "error": slog.LevelError}[o.LogLevel],
		// controller-runtime logs values that are not JSON but have a String method.
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if s, ok := a.Value.Any().(fmt.Stringer); ok && a.Value.Kind() == slog.KindAny {
				a.Value = slog.StringValue(s.String())
			}
			return a
		},
	}
	if o.LogEncoding == "console" {
		return logr.FromSlogHandler(slog.NewTextHandler(to, options))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(to, options))
}
