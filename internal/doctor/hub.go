// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/status"
)

// recently is how long ago a pod may have ended so that it counts.
const recently = 24 * time.Hour

func hubSummary(f *Facts) string {
	if !f.Hub.Read {
		return "whether a hub runs"
	}
	var out []string
	for _, w := range f.Hub.Workloads {
		out = append(out, fmt.Sprintf("Deployment %s %s (%d/%d pods)", w.name(), w.Version, w.Ready, w.Replicas))
	}
	if l := f.Hub.Lease; l.Alive(f.Now) {
		out = append(out, l.Holder+" leads")
	}
	if len(out) == 0 {
		return "namespace " + f.HubNamespace
	}
	return strings.Join(out, ", ")
}

func (w *Workload) name() string { return w.Namespace + "/" + w.Name }

// hubMissing finds a hub of which nothing is to be seen.
func hubMissing(f *Facts) []Finding {
	if !f.Hub.Read || len(f.Hub.Workloads) > 0 || f.Hub.Lease != nil {
		return nil
	}
	if len(f.Hub.Published) > 0 {
		return one(Finding{Severity: Warning, Code: "HubNotSeen",
			What: fmt.Sprintf("a hub has been here (ConfigMap chandler-hub in %s), and neither a Deployment nor a Lease says whether one runs",
				list(f.Hub.Published)),
			Remedy: "start the hub, or delete that ConfigMap if it is gone"})
	}
	return one(Finding{Severity: Error, Code: "HubMissing",
		What: fmt.Sprintf("there is no hub: no Deployment, no Lease and no ConfigMap chandler-hub, in namespace %s or any other",
			f.HubNamespace),
		Remedy: "install the hub (docs/install.md), or choose another management cluster by --context; --hub-namespace says where it is"})
}

// hubsTwice finds a second hub on the management cluster.
func hubsTwice(f *Facts) []Finding {
	var runs Objects
	for _, w := range f.Hub.Workloads {
		if w.Replicas > 0 {
			runs.Add(w.name())
		}
	}
	switch {
	case runs.Count > 1:
		at := "none of them has the Lease yet"
		if l := f.Hub.Lease; l != nil {
			at = fmt.Sprintf("the one in namespace %s has the Lease, and any other waits", l.Installation)
		}
		return one(runs.about(Finding{Severity: Warning, Code: "HubTwice",
			What:   fmt.Sprintf("%d Deployments run a hub on this management cluster: %s (docs/scale.md#several-hubs)", runs.Count, at),
			Remedy: "uninstall all but one (docs/uninstall.md)"}))
	case len(f.Hub.Published) > 1:
		o := Objects{}
		for _, ns := range f.Hub.Published {
			o.Add("ConfigMap " + ns + "/chandler-hub")
		}
		return one(o.about(Finding{Severity: Warning, Code: "HubTwiceOnce",
			What:   "hubs of several namespaces have published their flags here; one at the most runs now, as far as Deployments say",
			Remedy: "delete the ConfigMap of the hub that is gone, or stop one of them if both run"}))
	}
	return nil
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
				remedy = "give the hub more memory: docs/scale.md#sizes says how much a fleet takes"
			}
		}
		out = append(out, some(o, Finding{Severity: Warning, Code: "HubRestarts", What: "pods of the hub have restarted within a day",
			Remedy: remedy})...)
	}
	return out
}

// hubLeads finds a hub of which no process leads.
func hubLeads(f *Facts) []Finding {
	l := f.Hub.Lease
	if l == nil || l.Alive(f.Now) {
		return nil
	}
	lease := hubconfig.LeaseNamespace + "/" + hubconfig.LeaseName
	what := fmt.Sprintf("no hub leads: Lease %s has no holder", lease)
	if l.Holder != "" {
		what = fmt.Sprintf("no hub leads: %s has not renewed Lease %s for %s", l.Holder, lease,
			excerpt.Duration(f.Now.Sub(l.Renewed).Truncate(time.Second)))
	}
	return one(Finding{Severity: Error, Code: "HubDoesNotLead", What: what + ", so nothing is delivered or removed",
		Remedy: fmt.Sprintf("kubectl -n %s get pods; a hub that runs and does not lead says why in its log", l.Installation)})
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
