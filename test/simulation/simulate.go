// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Result is what came of a simulation.
type Result struct {
	Script     []string
	Story      []string
	Violations []Violation
	// Writes and Reconciles are the hub's, and Trace is a digest of its writes: the same script has the same.
	Writes, Reconciles int
	Trace              uint64
	// Denied are the acts of users that the policies have denied.
	Denied []string
}

// Play carries out a script.
func Play(script []string) (Result, error) {
	w := newWorld()
	w.startHub()
	var err error
	for _, line := range script {
		if err = w.do(line); err != nil || len(w.violations) > 0 {
			break
		}
	}
	if err == nil {
		w.end()
	}
	w.stopHub()
	return Result{Script: script, Story: w.story, Violations: w.violations, Writes: w.writes, Reconciles: w.reconciles,
		Trace: w.trace, Denied: w.denied}, err
}

// Draw makes a script from a seed. Its steps do not depend on what comes of them. It has no act that the policies deny.
func Draw(seed uint64, steps int) []string {
	return slices.DeleteFunc(drawAll(seed, steps), denied)
}

// DrawBreakGlass makes a script from a seed in which members of the break-glass group also do what the policies deny to others.
func DrawBreakGlass(seed uint64, steps int) []string {
	return append([]string{"break-glass"}, drawAll(seed, steps)...)
}

func drawAll(seed uint64, steps int) []string {
	lots := func(of uint64) *draw { return &draw{rand.New(rand.NewPCG(seed, of))} }
	d, more, expressions, registrations, teams, rollouts, outages := lots(42), lots(43), lots(44), lots(45), lots(46), lots(47), lots(48)
	knobs, besides := lots(49), lots(50)
	first := slices.Concat(knobs.knobs(), knobs.fleet())
	script := append(slices.Clone(first),
		"cluster w1 Secret tier=prod", "cluster w2 Kamaji tier=prod", "cluster w3 Secret tier=prod", "cluster w4 Hand tier=prod",
		"cluster w5 Kamaji tier=prod",
		"cluster t1 Secret tier=prod",
		"set flux-system base tier=prod hello:helm web:kustomization:hello",
		"set flux-system extra tier=prod logs:manifests optional-agent:helm",
		"set team apps all shop:helm",
	)
	steps += len(first) // what is drawn beside does not make the history shorter
	withTeam := teams.IntN(4) == 0
	if withTeam {
		script = append(script, "team shop shop-team "+teams.one("tier=prod", "tier=prod", "all"),
			"set shop-team store "+teams.one("tier=prod", "all")+" till:helm shelf:"+teams.one("kustomization", "manifests:till"))
	}
	added := 0
	withRollout := rollouts.IntN(4) == 0
	if withRollout {
		script = append(script, "label "+rollouts.one("w1", "w2")+" ring canary", "label "+rollouts.one("w1", "w3", "w4")+" ring canary",
			"set flux-system staged "+rollouts.one("tier=prod", "tier=prod", "all")+" core:helm edge:helm",
			"rollout staged "+rollouts.one("canary", "approved", "sizes", "single", "evenhours", "usual", "unnamed"))
		added = 4
	}
	script = append(script, d.one("wait 2m", "wait 5m", "run 300 "+d.number(1000)))
	// What came later comes in some seeds only, and beside what they drew before.
	later := []struct {
		*draw
		step func() string
	}{
		{expressions, []func() string{nil, expressions.expression}[expressions.IntN(2)]},
		{registrations, []func() string{nil, nil, registrations.second, registrations.elsewhere}[registrations.IntN(4)]},
		{teams, map[bool]func() string{true: teams.team}[withTeam]},
		{rollouts, map[bool]func() string{true: rollouts.rollout}[withRollout]},
		{rollouts, map[bool]func() string{true: rollouts.rollout}[withRollout]}, // twice as many
		{outages, []func() string{nil, nil, nil, outages.outages()}[outages.IntN(4)]},
		{besides, []func() string{nil, nil, besides.beside}[besides.IntN(3)]},
	}
	for len(script)-added < steps {
		for _, l := range later {
			if l.step != nil && l.IntN(4) == 0 {
				script, added = append(script, l.step()), added+1
			}
		}
		if more.IntN(8) == 0 {
			script = append(script, more.further())
		}
		if knobs.IntN(30) == 0 {
			script = append(script, knobs.flap()...)
		}
		script = append(script, d.step())
		switch d.IntN(10) {
		case 0, 1, 2:
			script = append(script, "wait "+d.one("1s", "10s", "1m", "7m", "20m"))
		case 3, 4, 5:
			script = append(script, fmt.Sprintf("run %d %s", 1+d.IntN(60), d.number(1000000)))
		}
	}
	return knobs.rename(script)
}

type draw struct{ *rand.Rand }

func (d *draw) one(of ...string) string { return of[d.IntN(len(of))] }
func (d *draw) number(below int) string { return fmt.Sprint(d.IntN(below)) }
func (d *draw) cluster() string         { return d.one("w1", "w2", "w3", "w4", "w5", "t1") }
func (d *draw) set() string             { return d.one("base", "base", "extra", "apps") }
func (d *draw) addon() string           { return d.one("hello", "web", "logs", "optional-agent", "shop", "more") }
func (d *draw) of(set string) string {
	switch set {
	case "base":
		return set + " " + d.one("hello", "web", "more")
	case "extra":
		return set + " " + d.one("logs", "optional-agent")
	}
	return set + " shop"
}

// step draws what somebody does, or what goes wrong.
func (d *draw) step() string {
	set := d.set()
	namespace := map[string]string{"base": "flux-system", "extra": "flux-system", "apps": "team"}[set]
	c := d.cluster()
	switch d.IntN(46) {
	case 0, 1:
		return "label " + c + " tier " + d.one("prod", "prod", "test", "-")
	case 2, 3:
		return "register " + c + " " + d.one("true", "true", "true", "false", "-")
	case 4:
		return "select " + set + " " + d.one("tier=prod", "tier=prod", "tier=test", "all")
	case 5:
		return "drop " + d.of(set)
	case 6:
		return "add " + set + " " + d.one("more:helm:hello", "more:kustomization:web", "hello:helm", "web:kustomization")
	case 7:
		return "version " + d.of(set) + " 1." + d.number(9) + ".0"
	case 8:
		return "chart " + d.of(set) + " " + d.one("other", "another")
	case 9:
		return "release " + d.of(set) + " " + d.one("renamed", "again")
	case 10:
		return "form " + d.of(set) + " " + d.one("helm", "manifests", "kustomization")
	case 11:
		return "rename " + d.of(set) + " " + d.one("newname", "nextname")
	case 12:
		return d.one("move base more extra", "move base web extra", "move extra web base", "move extra logs base")
	case 13:
		return "priority " + set + " " + d.number(3)
	case 14:
		return "pause " + c
	case 15:
		return "unpause " + c
	case 16:
		return "exclude " + c + " " + d.one("optional-agent", "hello")
	case 17:
		return "include " + c
	case 18, 19:
		return "rotate " + c
	case 20, 21:
		return d.one("down ", "hang ") + c
	case 22, 23:
		return "up " + c
	case 24:
		return "rebuild " + c
	case 25, 26:
		return "approve " + set
	case 27:
		return "delete AddonSet " + namespace + " " + set
	case 28, 29:
		return "reapply " + set
	case 30:
		return "policy " + set + " " + d.one("Orphan", "Delete")
	case 31:
		return "guard " + set + " " + d.one("on", "on", "off")
	case 32:
		return d.one("break ", "mend ") + d.addon()
	case 33:
		return "delete-all AddonDelivery " + namespace
	case 34:
		return "delete ClusterRegistration " + d.place(c)
	case 35, 36, 37:
		return fmt.Sprintf("crash %d %s", 1+d.IntN(8), d.one("before", "after"))
	case 38, 39:
		return fmt.Sprintf("apierror %d %s", 1+d.IntN(8), d.one("before", "after"))
	case 40:
		return "restart"
	case 41:
		return "relist"
	case 42:
		return "upgrade"
	case 43:
		return "forge " + c
	case 44:
		return d.one("foreground Secret "+d.place(d.one("w1", "w3", "t1")), "delete-all Secret flux-system",
			"delete-all Kustomization flux-system", "delete-all HelmRelease flux-system",
			"delete-all HelmChart flux-system", "delete-all ServiceAccount flux-system", "collect Secret "+d.place(d.one("w1", "w3", "t1")))
	}
	return d.one("account "+d.of(set)+" deployer", "backup", "restore ClusterRegistration "+d.place(c), "restore AddonSet "+namespace+" "+set)
}

// further draws what was added to the simulation later, from a source of its own, so that each seed still draws what
// it drew before.
func (d *draw) further() string {
	c := d.cluster()
	switch d.IntN(11) {
	case 8, 9, 10:
		return "overlap " + d.number(12)
	case 0, 1:
		return "delete Secret " + d.place(c) + map[string]string{"w2": "-admin-kubeconfig", "w5": "-admin-kubeconfig", "w4": "-by-hand"}[c]
	case 2, 3:
		return "origin " + c
	case 4:
		return "uncopy " + c + " " + d.one("flux-system", "flux-system", "team")
	case 5:
		return "destroy " + c
	}
	return "recreate " + c
}

// second draws what has a cluster registered twice.
func (d *draw) second() string {
	c := d.one("w1", "w1", "w2", "w4", "t1")
	switch d.IntN(9) {
	case 0, 1, 2:
		return "twin " + c
	case 3:
		return "delete ClusterRegistration " + d.place(c) + "-b"
	case 4:
		return "register " + c + " " + d.one("true", "false")
	case 5:
		return "label " + c + "-b tier " + d.one("prod", "test", "-")
	case 6:
		return "exclude " + d.one(c, c+"-b") + " " + d.one("optional-agent", "hello")
	case 7:
		return d.one("pause ", "unpause ") + c + "-b"
	}
	return "include " + d.one(c, c+"-b")
}

// elsewhere draws what has a registration come from another origin, or lead to another cluster.
func (d *draw) elsewhere() string {
	switch d.IntN(5) {
	case 0:
		return "adopt w4"
	case 1:
		return "repoint " + d.one("w1 w1", "w2 w2", "w4 w4", "w5 w5")
	case 2:
		return "destroy " + d.cluster()
	case 3:
		return "recreate " + d.cluster()
	}
	return "repoint " + d.one("w1", "w2", "w3", "w4") + " " + d.one("w1", "w2", "w4", "w5")
}

// expression draws whether expressions fail.
func (d *draw) expression() string {
	set := d.set()
	switch d.IntN(6) {
	case 0, 1:
		return "needs " + d.of(set) + " " + d.one("vars.color", "vars.color", "cluster.labels.tier", "origin", "-")
	case 2, 3:
		return "variables " + set + " color " + d.one("red", "-", "-")
	case 4:
		return "label " + d.cluster() + " tier " + d.one("prod", "-")
	}
	return d.one("variable ", "annotate ") + d.cluster() + " color " + d.one("blue", "7", "-")
}

// beside draws what lies beside clusters, and which add-ons read it.
func (d *draw) beside() string {
	switch d.IntN(5) {
	case 0, 1:
		return "reads " + d.of(d.set()) + " " + d.one("true", "true", "false")
	case 2:
		return "values " + d.cluster() + " " + d.one("-", "kept")
	}
	return "values " + d.cluster() + " v" + d.number(9) + " shared"
}

// team draws what the platform, a Team and somebody in it do.
func (d *draw) team() string {
	c, addon := d.cluster(), d.one("till", "till", "shelf", "hello", "web")
	switch d.IntN(24) {
	case 0, 1, 2:
		return "label " + c + " tier " + d.one("prod", "test", "-")
	case 3, 4, 5:
		return "team shop shop-team " + d.one("tier=prod", "tier=prod", "tier=test", "all")
	case 6:
		return "delete Team flux-system shop"
	case 7:
		return "version store " + addon + " 1." + d.number(9) + ".0"
	case 8, 9:
		return "add store " + d.one("hello:helm", "hello:manifests", "web:kustomization", "till:helm", "shelf:kustomization")
	case 10:
		return "drop store " + addon
	case 11:
		return "select store " + d.one("tier=prod", "all")
	case 12, 13:
		return "approve " + d.one("store", "team-shop")
	case 14:
		return "delete-all " + d.one("HelmRelease", "Kustomization", "AddonDelivery", "Secret") + " shop-team"
	case 15:
		return "uncopy " + c + " shop-team"
	case 16, 17:
		return "tokens " + c + " " + d.one("given", "refused")
	case 18:
		return "delete AddonSet " + d.one("shop-team store", "flux-system team-shop")
	case 19:
		return "reapply store"
	case 20:
		return "policy store " + d.one("Orphan", "Delete")
	case 21:
		return "forge-as " + c + " shop-team " + d.one("store", "base", "team-shop")
	case 22:
		return "guard store " + d.one("on", "off")
	}
	return "form store " + addon + " " + d.one("helm", "manifests", "kustomization")
}

func (d *draw) place(c string) string {
	if strings.HasPrefix(c, "t") {
		return "team " + c
	}
	return "fleet " + c
}

// Shrink drops steps of a script as long as the same invariant fails in the same way, for so long at most: halves, quarters and so on to
// single ones, and then again, because what was needed by a step that has gone can go too.
func Shrink(r Result, limit time.Duration) Result {
	began := time.Now()
	for {
		before := len(r.Script)
		for size := max(1, before/2); size >= 1; size /= 2 {
			for at := 0; at < len(r.Script); {
				if time.Since(began) > limit {
					return r
				}
				shorter := slices.Concat(r.Script[:at], r.Script[min(at+size, len(r.Script)):])
				if s, err := Play(shorter); err == nil && r.failsLike(s) {
					r = s
					continue
				}
				at += size
			}
		}
		if len(r.Script) == before {
			return r
		}
	}
}

// failsLike returns whether a shorter script's result shows the same.
func (r Result) failsLike(s Result) bool {
	return len(s.Violations) > 0 && s.Violations[0].Invariant == r.Violations[0].Invariant && s.Violations[0].form == r.Violations[0].form
}
