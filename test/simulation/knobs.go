// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// knob sets a flag of the hub, which starts with it. A script that says nothing has those of flags.
func (w *World) knob(name, value string) string {
	if name == "concurrent" {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return "write a number from 1 on"
		}
		w.config.Concurrency = n
		return ""
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		return err.Error()
	}
	of := map[string]*time.Duration{
		"removal-delay": &w.config.RemovalDelay, "deselection-delay": &w.config.DeselectionDelay, "teardown-grace": &w.config.TeardownGrace,
		"chart-retention": &w.config.ChartRetention, "probe-interval": &w.config.ProbeInterval,
	}[name]
	if of == nil {
		return "there is no such knob"
	}
	*of = d
	w.stopHub()
	w.startHub()
	return ""
}

// knobs draws how the hub is set, how many more clusters there are, and whether something comes between the requests of a reconcile.
// What the oracle reckons with keeps its bounds: a grace of at most an hour, a probe each minute at least.
func (d *draw) knobs() []string {
	var out []string
	for _, k := range []struct {
		name   string
		values []string
	}{
		{"removal-delay", []string{"1s", "1s", "25s", "2m"}},
		{"deselection-delay", []string{"0s", "30s", "20m"}},
		{"teardown-grace", []string{"10m", "30m"}},
		{"chart-retention", []string{"1m", "2m", "1h"}}, // in less, one of two processes collects what the other has just made
		{"probe-interval", []string{"20s", "40s"}},
		{"concurrent", []string{"4", "16"}},
	} {
		if v := d.one(k.values...); d.IntN(3) == 0 {
			out = append(out, "knob "+k.name+" "+v)
		}
	}
	if every, seed := d.one("2", "3", "10"), d.number(1000000); d.IntN(2) == 0 {
		out = append(out, "interleave "+every+" "+seed)
	}
	return out
}

// fleet draws how many clusters there are beside the usual six: none in most seeds, up to forty in all in a few.
func (d *draw) fleet() []string {
	more := 0
	switch n := d.IntN(40); {
	case n == 0:
		more = 20 + d.IntN(15)
	case n < 4:
		more = 5 + d.IntN(10)
	case n < 12:
		more = 1 + d.IntN(4)
	}
	var out []string
	for i := range more {
		out = append(out, fmt.Sprintf("cluster w%d %s tier=%s", 10+i, d.one("Secret", "Secret", "Kamaji"), d.one("prod", "prod", "test")))
	}
	return out
}

// longName is as long as a name of a cluster may be that a label holds with all that the hub adds.
const longName = "a-cluster-in-eu-west-1-with-a-name-that-is-rather-long"

// rename gives w3 another name in all of a script, in some seeds.
func (d *draw) rename(script []string) []string {
	name := "w3"
	if d.IntN(4) == 0 {
		name = d.one(longName, "w3.example.org", "w-3")
	}
	for i, line := range script {
		f := strings.Fields(line)
		for j := range f {
			if f[j] == "w3" || strings.HasPrefix(f[j], "w3-") {
				f[j] = name + strings.TrimPrefix(f[j], "w3")
			}
		}
		script[i] = strings.Join(f, " ")
	}
	return script
}

// flap draws a label that is gone for a moment, as of a tool that writes an object twice.
func (d *draw) flap() []string {
	c := d.cluster()
	return []string{"label " + c + " tier -", "wait " + d.one("1s", "2s", "10s", "1m"), "label " + c + " tier prod"}
}
