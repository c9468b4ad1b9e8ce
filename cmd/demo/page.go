// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"time"

	"github.com/spf13/pflag"

	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/ui"
)

// page serves what `chandler ui` serves until the context ends, and returns its address.
func (f *fleet) page(ctx context.Context) (string, error) {
	config := ui.Restrict(f.hub.Config)
	client, err := live.Connect(config)
	if err != nil {
		return "", err
	}
	reader := &live.Reader{Client: client}
	flags := pflag.NewFlagSet("page", pflag.ContinueOnError)
	reader.Hub.AddIdentityFlags(flags, hubconfig.DefaultNamespace)
	if err := reader.Ask(ctx, hubconfig.DefaultNamespace, flags); err != nil {
		return "", err
	}
	watch, err := ui.NewWatch(ctx, config, client, "")
	if err != nil {
		return "", err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := ui.New(ui.Options{Fleet: watch, Reader: reader, Client: client, Address: listener.Addr().String(), Hub: "the demo",
		Now: time.Now})
	go func() {
		if err := server.Serve(ctx, listener); err != nil {
			f.out.linef("The page is gone: %s", err)
		}
	}()
	return server.URL(), nil
}
