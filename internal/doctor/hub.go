// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/status"
)

const (
	// silent is how many times its term a holder of the Lease may be silent.
	silent = 3
	// recently is how long ago a pod may have ended so that it counts.
	recently = 24 * time.Hour
)

func hubSummary(f *Facts) string {
	if !f.Hub.Read {
		return "whether a hub runs"
	}
	var out []string
	for _, w := range f.Hub.Workloads {
		out = append(out, fmt.Sprintf("Deployment %s %s (%d/%d pods)", w.name(), w.Version, w.Ready, w.Replicas))
	}
	for _, l := range f.Hub.Leases {
		if l.alive(f.Now) {
			out = append(out, l.Holder+" leads")
		}
	}
	if len(out) == 0 {
		return "namespace " + f.HubNamespace
	}
	return strings.Join(out, ", ")
}

func (w *Workload) name() string { return w.Namespace + "/" + w.Name }

// alive returns whether the holder renews the Lease. A hub renews it every twenty seconds at the latest, for however long it lasts.
func (l *Lease) alive(now time.Time) bool {
	return l.Holder != "" && now.Sub(l.Renewed) <= silent*min(l.Lasts, 20*time.Second)
}

// hubMissing finds a hub of which nothing is to be seen.
func hubMissing(f *Facts) []Finding {
	if !f.Hub.Read || len(f.Hub.Workloads)+len(f.Hub.Leases) > 0 {
		return nil
	}
	if len(f.Hub.Published) > 0 {
		return one(Finding{Severity: Warning, Code: "HubNotSeen",
			What: fmt.Sprintf("a hub has been here (ConfigMap chandler-hub in %s), and neither a Deployment nor a Lease says whether one runs",
				list(f.Hub.Published)),
			Remedy: "start the hub, or delete that ConfigMap if it is gone"})
	}
	if len(hubUnproven(f)) > 0 {
		return nil // that says more
	}
	return one(Finding{Severity: Error, Code: "HubMissing",
		What: fmt.Sprintf("there is no hub: no Deployment, no Lease and no ConfigMap chandler-hub, in namespace %s or any other",
			f.HubNamespace),
		Remedy: "install the hub (docs/install.md), or choose another management cluster by --context; --hub-namespace says where it is"})
}

// hubsTwice finds two hubs on one management cluster.
func hubsTwice(f *Facts) []Finding {
	var out []Finding
	remedy := "uninstall one of them (docs/uninstall.md)"
	var leads, runs Objects
	for _, l := range f.Hub.Leases {
		if l.alive(f.Now) {
			leads.Add(fmt.Sprintf("%s: %s", l.Namespace, l.Holder))
		}
	}
	for _, w := range f.Hub.Workloads {
		if w.Replicas > 0 {
			runs.Add(w.name())
		}
	}
	switch {
	case leads.Count > 1:
		out = append(out, leads.about(Finding{Severity: Error, Code: "HubTwice",
			What: fmt.Sprintf("%d hubs lead on this management cluster, each in its namespace, and undo each other's work: one of them is of a "+
				"version that does not refuse (docs/scale.md#several-hubs)", leads.Count), Remedy: remedy}))
	case runs.Count > 1:
		out = append(out, runs.about(Finding{Severity: Error, Code: "HubTwice",
			What: fmt.Sprintf("%d Deployments run a hub on this management cluster: the one that came later does nothing "+
				"(docs/scale.md#several-hubs)", runs.Count), Remedy: remedy}))
	case len(f.Hub.Published) > 1:
		o := Objects{}
		for _, ns := range f.Hub.Published {
			o.Add("ConfigMap " + ns + "/chandler-hub")
		}
		out = append(out, o.about(Finding{Severity: Warning, Code: "HubTwiceOnce",
			What:   "hubs of several namespaces have published their flags here; one at the most runs now, as far as Leases and Deployments say",
			Remedy: "delete the ConfigMap of the hub that is gone, or stop one of them if both run"}))
	}
	return out
}

// hubUnproven finds what says of itself that it is a hub, and of which nothing else does. It may be a hub that others do not recognize,
// which runs outside the cluster (docs/adr/0030); or somebody has made it up, so it is no error.
func hubUnproven(f *Facts) []Finding {
	var o Objects
	u := &f.Hub.Unproven
	for _, l := range u.Leases {
		if l.alive(f.Now) {
			o.Add(fmt.Sprintf("Lease %s/%s, held by %s", l.Namespace, hubconfig.LeaseName, l.Holder))
		}
	}
	for i := range u.Workloads {
		if w := &u.Workloads[i]; w.Replicas > 0 {
			o.Add("Deployment " + w.name())
		}
	}
	why := "their accounts may not do a hub's work, so a hub takes no notice of them"
	if u.Unasked {
		why = "whether their accounts may do a hub's work could not be asked"
	}
	return some(o, Finding{Severity: Warning, Code: "HubUnproven",
		What: "in other namespaces there is what looks like a second hub, as anybody may write it who may write there: " + why,
		Remedy: "ask who has made it, and have him delete it. If a hub does run there, outside the cluster or without an account of its own, " +
			"both work, and undo each other's work: uninstall one (docs/uninstall.md). If it is the only hub, --hub-namespace says where it is"})
}

// hubPods finds a hub without pods that are ready.
func hubPods(f *Facts) []Finding { return pods(f.Hub.Workloads, "Hub") }

// pods finds Deployments that have not all of their pods.
func pods(workloads []Workload, prefix string) []Finding {
	var out []Finding
	for i := range workloads {
		w := &workloads[i]
		var waits Objects
		for _, p := range w.Pods {
			if p.Waiting != "" {
				waits.Add(p.Name + ": " + p.Waiting)
			}
		}
		remedy := fmt.Sprintf("kubectl -n %[1]s describe deployment %[2]s; kubectl -n %[1]s logs deployment/%[2]s --previous",
			w.Namespace, w.Name)
		switch {
		case w.Replicas == 0:
			out = append(out, Finding{Severity: Error, Code: prefix + "NotRunning", What: "Deployment " + w.name() + " is scaled to 0",
				Remedy: fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=1", w.Namespace, w.Name)})
		case w.Ready == 0:
			out = append(out, waits.about(Finding{Severity: Error, Code: prefix + "NotRunning",
				What: fmt.Sprintf("no pod of Deployment %s is ready, of %d", w.name(), w.Replicas), Remedy: remedy}))
		case w.Ready < w.Replicas:
			out = append(out, waits.about(Finding{Severity: Warning, Code: prefix + "PodsMissing",
				What: fmt.Sprintf("%d of %d pods of Deployment %s are ready", w.Ready, w.Replicas, w.name()), Remedy: remedy}))
		}
	}
	return out
}

// hubRestarts finds pods that end again and again.
func hubRestarts(f *Facts) []Finding {
	var out []Finding
	for i := range f.Hub.Workloads {
		w := &f.Hub.Workloads[i]
		var o Objects
		remedy := fmt.Sprintf("kubectl -n %s logs deployment/%s --previous", w.Namespace, w.Name)
		for _, p := range w.Pods {
			if p.Restarts == 0 || p.EndedAt.IsZero() || f.Now.Sub(p.EndedAt) > recently {
				continue
			}
			o.Add(fmt.Sprintf("%s: %s, the last one %s ago (%s)", p.Name, status.Count(p.Restarts, "restart"),
				excerpt.Duration(f.Now.Sub(p.EndedAt).Truncate(time.Second)), p.Ended))
			if p.Ended == "OOMKilled" {
				remedy = "give the hub more memory: docs/scale.md#sizing says how much a fleet takes"
			}
		}
		out = append(out, some(o, Finding{Severity: Warning, Code: "HubRestarts", What: "pods of the hub have restarted within a day",
			Remedy: remedy})...)
	}
	return out
}

// hubLeads finds a hub of which nobody leads.
func hubLeads(f *Facts) []Finding {
	if len(f.Hub.Leases) == 0 || slices.ContainsFunc(f.Hub.Leases, func(l Lease) bool { return l.alive(f.Now) }) {
		return nil
	}
	l := f.Hub.Leases[0]
	what := fmt.Sprintf("nobody leads: Lease %s/hub.chandler.dev has no holder", l.Namespace)
	if l.Holder != "" {
		what = fmt.Sprintf("nobody leads: %s has not renewed Lease %s/hub.chandler.dev for %s", l.Holder, l.Namespace,
			excerpt.Duration(f.Now.Sub(l.Renewed).Truncate(time.Second)))
	}
	return one(Finding{Severity: Error, Code: "HubDoesNotLead", What: what + ", so nothing is delivered or removed",
		Remedy: fmt.Sprintf("kubectl -n %s get pods,leases; a hub that runs and does not lead says why in its log", l.Namespace)})
}

// hubElects finds several replicas that all lead.
func hubElects(f *Facts) []Finding {
	var out []Finding
	for i := range f.Hub.Workloads {
		w := &f.Hub.Workloads[i]
		if v, ok := flag(w.Args, "leader-elect"); w.Replicas > 1 && (!ok || v == "false") {
			out = append(out, Finding{Severity: Error, Code: "HubWithoutElection",
				What:   fmt.Sprintf("Deployment %s has %d replicas without --leader-elect, so all of them write", w.name(), w.Replicas),
				Remedy: "add --leader-elect to its arguments"})
		}
	}
	return out
}

// flag returns the value of a flag in arguments, and whether it is there; "true" without a value.
func flag(args []string, name string) (string, bool) {
	for i, a := range args {
		a = strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-")
		if v, ok := strings.CutPrefix(a, name+"="); ok {
			return v, true
		}
		if a == name {
			if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				return args[i+1], true
			}
			return "true", true
		}
	}
	return "", false
}
