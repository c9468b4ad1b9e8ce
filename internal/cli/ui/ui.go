// SPDX-License-Identifier: Apache-2.0

// Package ui is `chandler ui`.
package ui

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/ui"
)

// Options are the flags of `chandler ui`.
type Options struct {
	hub.Connection
	terminal.Streams
	Port   uint16
	NoOpen bool
}

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Open a web page of the fleet",
		Long: `Serves a web page and opens it in a browser: clusters and add-ons, what fails and why, rollouts, held
removals. It runs until Ctrl-C, listens on localhost only, and works with your kubeconfig and your permissions. It only
changes what you confirm on the page, and never reads a Secret.

The address has a token. While the command runs, whoever has the address can do what you can do here.`,
		Example: `  chandler ui
  chandler ui --no-open --port 8111
  chandler ui -n team-a`,
		Args: command.OnlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Streams = terminal.Of(cmd)
			return command.Run(cmd.Context(), o, run, o.run)
		},
	}
	o.AddFlags(cmd, from)
	o.AddIdentity(cmd)
	f := cmd.Flags()
	f.Uint16Var(&o.Port, "port", 0, "port to listen on (default: a free one)")
	f.BoolVar(&o.NoOpen, "no-open", false, "print the address, do not open a browser")
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	config, err := o.Reach(ctx, o.Flags)
	if err != nil {
		return err
	}
	config = ui.Restrict(config)
	if o.Client, err = o.Dial(config); err != nil {
		return exit.Wrong(err)
	}
	o.Reader.Client = o.Client
	if err := o.Ask(ctx); err != nil {
		return err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(o.Port))))
	if err != nil {
		return fmt.Errorf("listen on the loopback interface: %w", err)
	}
	defer listener.Close()
	terminal.Say(o.ErrOut, "Reading the fleet from %s …", config.Host)
	fleet, err := ui.NewWatch(ctx, config, o.Reader.Client, *o.Flags.Namespace)
	if err != nil {
		return err
	}
	server := ui.New(ui.Options{Fleet: fleet, Reader: &o.Reader, Client: o.Client, Address: listener.Addr().String(), Hub: config.Host,
		Now: o.Now})
	if _, err := fmt.Fprintln(o.Out, server.URL()); err != nil {
		return err
	}
	if !o.NoOpen {
		if err := openBrowser(ctx, server.Ticket()); err != nil {
			terminal.Say(o.ErrOut, "No browser was opened (%s): open the address above.", err)
		}
	}
	terminal.Say(o.ErrOut, "Ctrl-C ends it.")
	return server.Serve(ctx, listener)
}

// openBrowser opens an address in the browser of this person. It does not wait for it.
func openBrowser(ctx context.Context, url string) error {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	c := exec.CommandContext(context.WithoutCancel(ctx), name, args...) // a browser outlives the command
	if err := c.Start(); err != nil {
		return err
	}
	go func() { _ = c.Wait() }() // the page in the browser shows whether it worked
	return nil
}
