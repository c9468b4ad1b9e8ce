// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
)

// profiled is how long a processor profile takes, in seconds.
const profiled = 10

var cpuProfile = fmt.Sprintf("profile?seconds=%d", profiled)

// profile takes processor profiles of the hub and of the API server from now on, in the background, if profiles are
// asked for.
func (r *run) profile(ctx context.Context, name string) {
	if r.profiles == "" {
		return
	}
	go r.save(ctx, cpuProfile, name+".cpu")
	r.profileAPI(ctx, name)
}

// profileAPI takes that of the API server alone, for what the bare client does.
func (r *run) profileAPI(ctx context.Context, name string) {
	if r.profiles == "" {
		return
	}
	go func() {
		api, err := rest.HTTPClientFor(r.management.Config)
		if err == nil {
			err = fetch(ctx, api, r.management.Config.Host, cpuProfile, filepath.Join(r.profiles, name+".api.cpu.pprof"))
		}
		r.complain(err)
	}()
}

// profileStart takes a processor profile of a hub that is about to start, from when it answers: the larger the fleet, the longer, but it
// ends before the restart does, since a process takes one at a time.
func (r *run) profileStart(ctx context.Context, address string) {
	if r.profiles == "" {
		return
	}
	which := fmt.Sprintf("profile?seconds=%d", max(5, r.result.Objects/3000))
	go func() {
		for ctx.Err() == nil {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err == nil {
				_ = c.Close()
				r.save(ctx, which, "restart.cpu")
				return
			}
			_ = r.wait(ctx, 20*time.Millisecond)
		}
	}()
}

// save keeps one of the hub's profiles. If it fails, the run goes on.
func (r *run) save(ctx context.Context, which, name string) {
	if r.profiles == "" {
		return
	}
	r.complain(fetch(ctx, http.DefaultClient, "http://"+r.hub.pprof, which, filepath.Join(r.profiles, name+".pprof")))
}

func (r *run) complain(err error) {
	if err != nil {
		_, _ = fmt.Fprintln(r.out, "  profile:", err)
	}
}

func fetch(ctx context.Context, c *http.Client, host, which, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, host+"/debug/pprof/"+which, nil)
	if err != nil {
		return err
	}
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", which, res.Status)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, res.Body); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
