// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// profiled is for how long the processor's profile is taken, in seconds.
const profiled = 10

// profile takes a profile of the hub's processor time from now on, beside what goes on, if profiles are asked for.
func (r *run) profile(ctx context.Context, name string) {
	if r.profiles == "" {
		return
	}
	go r.save(ctx, fmt.Sprintf("profile?seconds=%d", profiled), name+".cpu")
}

// save keeps one of the hub's profiles. A run goes on without it.
func (r *run) save(ctx context.Context, which, name string) {
	if r.profiles == "" {
		return
	}
	if err := r.hub.fetch(ctx, which, filepath.Join(r.profiles, name+".pprof")); err != nil {
		_, _ = fmt.Fprintln(r.out, "  profile:", err)
	}
}

func (h *hub) fetch(ctx context.Context, which, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.pprof+"/debug/pprof/"+which, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", which, res.Status)
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
