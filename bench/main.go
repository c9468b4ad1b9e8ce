// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr"
)

func main() {
	log.SetLogger(logr.Discard())
	var p Parameters
	flag.IntVar(&p.Clusters, "clusters", 500, "clusters of the fleet")
	flag.IntVar(&p.Addons, "addons", 5, "add-ons of each")
	flag.Float64Var(&p.Dead, "dead", 0.1, "share of the clusters that hang in the last phase")
	flag.BoolVar(&p.Rollout, "rollout", false, "measure rollouts in waves instead, of sets with one add-on")
	flag.IntVar(&p.Sets, "sets", 100, "with -rollout: sets that change at the same time")
	flag.BoolVar(&p.Flux, "flux", false, "run the Flux controllers too")
	flag.DurationVar(&p.ProbeInterval.Duration, "probe-interval", time.Minute,
		"the hub's; the clusters that are probed share the machine with all else")
	profiles := flag.String("profiles", "", "a folder for profiles of the hub and the API server; none are taken without. "+
		"It also prints what the slowest of ten clusters a second waited for")
	noise := flag.Duration("noise", 30*time.Second, "how long Flux's status noise is")
	runs := flag.Int("runs", 1, "measure so many times")
	against := flag.String("check", "", "a file of recorded runs: fail if a quarter is lost against the newest ones of this size")
	into := flag.String("record", "", "a file to append each run to, as a line of JSON")
	commit := flag.String("commit", "", "what is measured, for -record")
	peer := peerFlags()
	timeout := flag.Duration("timeout", time.Hour, "give up after this time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	if !p.Rollout {
		p.Sets = 0
	}
	run := func() (Result, error) {
		r, err := bench(ctx, p, *noise, *profiles)
		r.Commit, r.Date = *commit, time.Now().UTC().Format(time.DateOnly)
		if err == nil && *into != "" {
			err = record(*into, &r)
		}
		return r, err
	}
	var err error
	switch {
	case peer.Name != "":
		err = benchPeer(ctx, os.Stdout, p, *peer)
	case p.Rollout:
		err = benchRollouts(ctx, p, *profiles)
	case *against != "":
		err = checked(os.Stdout, *against, run)
	default:
		for n := 0; n < *runs && err == nil; n++ {
			_, err = run()
		}
	}
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench measures once, and prints what it gives.
func bench(ctx context.Context, p Parameters, noise time.Duration, profiles string) (result Result, err error) {
	if p.Clusters < 2 || p.Addons < 1 || p.Dead < 0 || p.Dead > 1 {
		return result, fmt.Errorf("-clusters must be at least 2, -addons at least 1, and -dead from 0 to 1")
	}
	fmt.Printf("%d clusters x %d add-ons, Flux there: %t\n", p.Clusters, p.Addons, p.Flux)
	f, err := startFleet(ctx, p)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	r, err := newRun(f, p, os.Stdout)
	if err != nil {
		return result, err
	}
	r.profiles, r.noise = profiles, noise
	if err := r.all(ctx); err != nil {
		return result, errors.Join(err, fmt.Errorf("the end of the hub's log:\n%s", f.hub.process.Tail(30)))
	}
	if err := r.finish(); err != nil {
		return result, err
	}
	return r.result, r.result.Write(os.Stdout)
}
