// SPDX-License-Identifier: Apache-2.0

// Package reconcile is `chandler reconcile`.
package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/request"
	"github.com/chandler-hub/chandler/internal/status"
)

// pollEvery is how often it looks.
const pollEvery = time.Second

// Options are the flags of `chandler reconcile`.
type Options struct {
	hub.Connection
	terminal.Streams
	// Args are a cluster, and maybe one of its add-ons.
	Args             []string
	WithSource, Wait bool
	Timeout          time.Duration
}

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reconcile CLUSTER [ADDON]",
		Short: "Reconcile the add-ons of a cluster now",
		Long: `Has Flux reconcile all add-ons of a cluster, or one of them, as flux reconcile does, and waits for the
result. --with-source has Flux fetch their sources first, which other clusters may use too. Suspended objects are left out,
and listed.

CLUSTER is NAME or NAMESPACE/NAME; without -n it is looked for in all namespaces.`,
		Example: `  chandler reconcile edge1
  chandler reconcile fleet/edge1 cert-manager --with-source --timeout 10m`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return errors.New("reconcile: write a cluster, and optionally one of its add-ons: chandler reconcile CLUSTER [ADDON]")
			}
			return nil
		},
	}
	o := &Options{}
	o.AddFlags(cmd, from)
	cmd.ValidArgsFunction = o.CompleteAddon
	f := cmd.Flags()
	f.BoolVar(&o.WithSource, "with-source", false, "fetch the sources first")
	f.BoolVar(&o.Wait, "wait", true, "wait for the result")
	command.AddTimeout(f, &o.Timeout, 5*time.Minute, "how long to wait")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Streams, o.Args = terminal.Of(cmd), args
		return command.Run(cmd.Context(), o, run, o.run)
	}
	exit.Means(cmd, "everything is Ready", "something is not Ready or suspended, or the time is over")
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	o.Out = terminal.Visible(o.Out)
	name, addon := o.Args[0], ""
	if len(o.Args) > 1 {
		addon = o.Args[1]
	}
	if err := o.Connect(ctx); err != nil {
		return err
	}
	reg, err := o.Reader.Find(ctx, name, *o.Flags.Namespace)
	if err != nil {
		return err
	}
	deliveries, err := o.Deliveries(ctx, reg)
	if err != nil {
		return err
	}
	objects := request.Objects(deliveries, addon)
	if len(objects) == 0 && addon != "" {
		return fmt.Errorf("cluster %s/%s has no add-on %q with an object of Flux's: chandler get addons %s/%s lists its add-ons",
			reg.Namespace, reg.Name, addon, reg.Namespace, reg.Name)
	} else if len(objects) == 0 {
		return fmt.Errorf("cluster %s/%s has no add-on with an object of Flux's: chandler explain %s says why", reg.Namespace, reg.Name, name)
	}
	ctx, cancel := command.Limited(ctx, o.Timeout)
	defer cancel()
	failed := 0
	if o.WithSource {
		sources, err := o.sourcesOf(ctx, objects)
		if err != nil {
			return err
		}
		// A chart is read from what is known of its repository: so that comes first.
		for _, charts := range []bool{false, true} {
			more, err := o.ask(ctx, slices.DeleteFunc(slices.Clone(sources), func(s request.Object) bool {
				return (s.Kind.Kind == "HelmChart") != charts
			}), true)
			if failed += more; err != nil {
				return err
			}
		}
	}
	more, err := o.ask(ctx, objects, o.Wait)
	if err != nil {
		return err
	}
	if failed += more; failed > 0 {
		return fmt.Errorf("%s not Ready, or suspended", status.Are(failed, "object"))
	}
	return nil
}

// sourcesOf returns the sources of objects, each once.
func (o *Options) sourcesOf(ctx context.Context, objects []request.Object) (out []request.Object, err error) {
	seen := map[string]bool{}
	for i := range objects {
		u, err := o.get(ctx, &objects[i])
		if err != nil {
			return nil, err
		}
		for _, s := range request.Sources(u, objects[i].Addon) {
			if key := s.Kind.Kind + " " + s.Namespace + "/" + s.Name; !seen[key] {
				seen[key], out = true, append(out, s)
			}
		}
	}
	return out, nil
}

func (o *Options) get(ctx context.Context, of *request.Object) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(of.Kind)
	if err := o.Reader.Client.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, u); err != nil {
		return nil, fmt.Errorf("read %s: %w", of, err)
	}
	return u, nil
}

// ask asks Flux to look at objects, waits, and returns how many are not Ready.
func (o *Options) ask(ctx context.Context, objects []request.Object, wait bool) (failed int, err error) {
	at := o.Now().Format(time.RFC3339Nano)
	raw, err := json.Marshal(request.Patch(at))
	if err != nil {
		return 0, err
	}
	var asked []request.Object
	for i := range objects {
		one := &objects[i]
		u, err := o.get(ctx, one)
		if err != nil {
			return failed, err
		}
		if why := request.Never(u); why != "" {
			fmt.Fprintf(o.Out, "%s: left out, %s\n", one, why)
			if u.GetKind() != "HelmRepository" {
				failed++
			}
			continue
		}
		err = o.Reader.Client.Patch(ctx, u, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(request.Manager))
		if apierrors.IsForbidden(err) {
			return failed, fmt.Errorf("you may not patch %s: %w", one, err)
		} else if err != nil {
			return failed, fmt.Errorf("ask for %s: %w", one, err)
		}
		if !wait {
			fmt.Fprintf(o.Out, "%s: asked for\n", one)
			continue
		}
		asked = append(asked, *one)
	}
	more, err := o.await(ctx, asked, at)
	return failed + more, err
}

// await waits until Flux has looked at objects, and says what it waits for.
func (o *Options) await(ctx context.Context, asked []request.Object, at string) (failed int, err error) {
	said := ""
	for len(asked) > 0 {
		var left []request.Object
		waits := ""
		for i := range asked {
			u, err := o.get(ctx, &asked[i])
			if err != nil && ctx.Err() == nil {
				return failed, err
			}
			if err != nil {
				left = append(left, asked[i])
				continue
			}
			outcome := request.Look(u, at)
			if !outcome.Over {
				left, waits = append(left, asked[i]), fmt.Sprintf("%s: %s", &asked[i], outcome.Text)
				continue
			}
			if outcome.Failed {
				failed++
			}
			fmt.Fprintf(o.Out, "%s: %s\n", &asked[i], outcome.Text)
		}
		if asked = left; len(asked) == 0 {
			break
		}
		if text := fmt.Sprintf("waiting for %s; %s", status.Count(len(asked), "object"), waits); text != said && waits != "" {
			terminal.Say(o.ErrOut, "%s", text)
			said = text
		}
		select {
		case <-ctx.Done():
			return failed, fmt.Errorf("%w; %s not finished, such as %s", context.Cause(ctx), status.Are(len(asked), "object"), &asked[0])
		case <-time.After(pollEvery):
		}
	}
	return failed, nil
}
