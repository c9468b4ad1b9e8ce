// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/registrar"
)

// registrarOptions are the flags that `chandler register` and `chandler unregister` have in common.
type registrarOptions struct {
	genericiooptions.IOStreams
	// cluster and hub are where the two API servers are. kubectl's own flags mean the hub, as everywhere.
	cluster, hub *genericclioptions.ConfigFlags
	hubNamespace string
	reader       live.Reader
	yes          bool
	timeout      time.Duration
}

func newRegistrarOptions() *registrarOptions {
	o := &registrarOptions{cluster: genericclioptions.NewConfigFlags(false), hub: kubectlFlags()}
	o.cluster.Namespace = nil
	patience := requestTimeout
	o.cluster.Timeout = &patience
	return o
}

func (o *registrarOptions) addFlags(cmd *cobra.Command, timeout time.Duration) {
	f := cmd.Flags()
	f.StringVar(o.cluster.KubeConfig, "cluster-kubeconfig", "", "kubeconfig of the workload cluster, for an administrator; it is not kept")
	f.StringVar(o.cluster.Context, "cluster-context", "", "context of the workload cluster")
	o.hub.AddFlags(f)
	f.Lookup("namespace").Usage = "namespace of the registration (default: that of the context)"
	addHubNamespace(f, &o.hubNamespace)
	f.BoolVarP(&o.yes, "yes", "y", false, "skip the confirmation prompt")
	addTimeout(f, &o.timeout, timeout, "how long to wait")
	o.reader.Hub.AddFlags(f, hubconfig.DefaultNamespace)
	before := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		// A cluster that is hostile decides over parts of what is printed, and must not decide over the terminal.
		o.IOStreams = genericiooptions.IOStreams{In: cmd.InOrStdin(), Out: visible{cmd.OutOrStdout()}, ErrOut: visible{cmd.ErrOrStderr()}}
		if err := plainly(cmd.Context(), before(cmd, args)); err != nil {
			code := &exit{failed, err} // what was begun has failed, also if it is for a cluster that does not answer
			_ = errors.As(err, &code)
			return &exit{code.code, errors.New(excerpt.VisibleLines(err.Error()))}
		}
		return nil
	}
}

// connect finds the hub, and the cluster if somebody has said where it is.
func (o *registrarOptions) connect(cmd *cobra.Command) (*registrar.Registrar, error) {
	config, err := reach(cmd.Context(), o.hub)
	if err != nil {
		return nil, err
	}
	if o.reader.Client, err = live.Connect(config); err != nil {
		return nil, &exit{uncertain, err}
	}
	if err := o.reader.Ask(cmd.Context(), o.hubNamespace, cmd.Flags()); err != nil {
		return nil, decide(err)
	}
	r := &registrar.Registrar{Hub: o.reader, HubConfig: config, HubNamespace: o.hubNamespace, Out: o.Out, Wait: o.timeout}
	if *o.cluster.KubeConfig != "" || *o.cluster.Context != "" {
		if r.Cluster, err = o.cluster.ToRESTConfig(); err != nil {
			return nil, &exit{uncertain, fmt.Errorf("find the cluster: %w", err)}
		}
	}
	return r, nil
}

// name returns the registration that a command is about: NAME, or NAMESPACE/NAME.
func (o *registrarOptions) name(arg string) (types.NamespacedName, error) {
	namespace, name, both := strings.Cut(arg, "/")
	if !both {
		namespace, name = *o.hub.Namespace, arg
	}
	if both && *o.hub.Namespace != "" && *o.hub.Namespace != namespace {
		return types.NamespacedName{}, fmt.Errorf("cluster %s is not in namespace %q: leave out -n, or write the name "+
			"alone", arg, *o.hub.Namespace)
	}
	if namespace == "" {
		var err error
		if namespace, _, err = o.hub.ToRawKubeConfigLoader().Namespace(); err != nil {
			return types.NamespacedName{}, fmt.Errorf("find the hub: %w", err)
		}
	}
	if name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("%q is not a cluster: write NAME or NAMESPACE/NAME", arg)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

func (o *registrarOptions) agreed(ctx context.Context) error { return agreed(ctx, o.In, o.Out, o.yes) }

// agreed asks whether to go on.
func agreed(ctx context.Context, from io.Reader, to io.Writer, yes bool) error {
	if yes {
		return nil
	}
	in, ok := from.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return errors.New("nothing is changed: there is no terminal to ask at; --yes does it without asking")
	}
	fmt.Fprint(to, "\nContinue? [y/N] ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(io.LimitReader(in, 100)).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case a := <-answer:
		if a == "y" || a == "yes" {
			return nil
		}
	}
	return errors.New("nothing is changed")
}

// visible writes what is safe for a terminal.
type visible struct{ to io.Writer }

func (v visible) Write(p []byte) (int, error) {
	_, err := io.WriteString(v.to, excerpt.VisibleLines(string(p)))
	return len(p), err
}
