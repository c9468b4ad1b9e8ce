// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/ui"
)

// uiOptions are the flags of `chandler ui`.
type uiOptions struct {
	hubOptions
	port   uint16
	noOpen bool
}

func uiCommand() *cobra.Command {
	o := &uiOptions{}
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
		Args: onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.add(cmd)
	o.addIdentity(cmd)
	f := cmd.Flags()
	f.Uint16Var(&o.port, "port", 0, "port to listen on (default: a free one)")
	f.BoolVar(&o.noOpen, "no-open", false, "print the address, do not open a browser")
	return cmd
}

func (o *uiOptions) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	config, err := reach(ctx, o.flags)
	if err != nil {
		return err
	}
	config = ui.Restrict(config)
	if o.client, err = live.Connect(config); err != nil {
		return &exit{uncertain, err}
	}
	o.reader.Client = o.client
	if err := o.reader.Ask(ctx, o.hubNamespace, cmd.Flags()); err != nil {
		return err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(o.port))))
	if err != nil {
		return fmt.Errorf("listen on the loopback interface: %w", err)
	}
	defer listener.Close()
	sayLine(cmd.ErrOrStderr(), "Reading the fleet from %s …", config.Host)
	fleet, err := ui.NewWatch(ctx, config, o.reader.Client, *o.flags.Namespace)
	if err != nil {
		return err
	}
	server := ui.New(ui.Options{Fleet: fleet, Reader: &o.reader, Client: o.client, Address: listener.Addr().String(), Hub: config.Host,
		Now: time.Now})
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), server.URL()); err != nil {
		return err
	}
	if !o.noOpen {
		if err := openBrowser(ctx, server.Ticket()); err != nil {
			sayLine(cmd.ErrOrStderr(), "No browser was opened (%s): open the address above.", err)
		}
	}
	sayLine(cmd.ErrOrStderr(), "Ctrl-C ends it.")
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
	go func() { _ = c.Wait() }() // whether it worked is for everybody to see
	return nil
}
