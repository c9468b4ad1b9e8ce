// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/runbook"
)

// nobody has the reasons that need no person: they pass by themselves, a person has chosen them, or all is well.
var nobody = []string{
	// All is well.
	"Succeeded", "ProbeSucceeded", "FluxSucceeds", "AddonsReady", "SourcesFloat", "Frozen", "NoAddonSetMatches",
	// They pass.
	"Progressing", "Terminating", "KubeConfigNotReady", "NotProbed", "NotReady", "Canceled", "WaitingForCluster", "WaitingForWave",
	"WaitingForWindow", "AddonsLeaving", "FactUnknown", "NotSelected", "HandOver", "ExpiresIn30Days", "Complete", "Soaking", "Withdrawing",
	// Somebody has chosen them, or Kamaji or Cluster API is at work.
	"Paused", "Suspended", "ClusterSleeping", "ClusterWriteLimited", "ClusterMigrating", "ClusterUpgrading",
	"ClusterCertificateAuthorityRotating", "ClusterAPIPaused", "LabelRemoved", "Unregistered", "OriginDeleted", "Forced", "DrainInProgress",
	"Drained", "Dropped", "Reinstall",
}

// TestReasons: each reason has a runbook or needs nobody, and the hub knows no other reason.
func TestReasons(t *testing.T) {
	known := map[string]bool{}
	for dir, name := range map[string]string{
		"../api/v1alpha1":   `Reason$|^Rollout(Progressing|Soaking|WaitingFor\w+|Paused|Failed|RollingBack|RolledBack|Done|Withdrawing)$`,
		"../internal/probe": `^Reason`, "../internal/kubeconfig": `^Reason`,
	} {
		for _, reason := range reasons(t, dir, name) {
			known[reason] = true
		}
	}
	if len(known) < 100 {
		t.Errorf("only %d reasons were found", len(known))
	}
	needy := runbook.Reasons()
	for reason := range known {
		if needs, needsNot := needy[reason] != "", slices.Contains(nobody, reason); needs == needsNot {
			t.Errorf("%s: has a runbook: %t; needs nobody: %t", reason, needs, needsNot)
		}
	}
	for _, reason := range nobody {
		if !known[reason] {
			t.Errorf("there is no reason %s that needs nobody", reason)
		}
	}
	there := anchors(read(t, runbook.Page))
	for reason, anchor := range needy {
		if !known[reason] {
			t.Errorf("there is no reason %s that needs a person", reason)
		}
		if !there[anchor] {
			t.Errorf("%s leads to %s#%s, which is not there", reason, runbook.Page, anchor)
		}
	}
}

// TestRunbooks: there is one for each alert and each reason, and no other. It says symptom, cause and remedy, with the command, in 120 words.
func TestRunbooks(t *testing.T) {
	var rules struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert       string
					Annotations map[string]string
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "../config/observability/rules.yaml")), &rules); err != nil {
		t.Fatal(err)
	}
	page, used, count := read(t, runbook.Page), map[string]bool{"a-flux-object-stays-terminating": true}, 0
	there := anchors(page)
	for _, g := range rules.Spec.Groups {
		for _, r := range g.Rules {
			count++
			anchor, ok := strings.CutPrefix(r.Annotations["runbook_url"], runbook.DefaultDocs+"/"+runbook.Page+"#")
			if used[anchor] = true; !ok || !there[anchor] || !strings.Contains(page, "`"+r.Alert+"`") {
				t.Errorf("alert %s: there is no %q, or it does not name the alert", r.Alert, r.Annotations["runbook_url"])
			}
		}
	}
	if count < 10 {
		t.Errorf("only %d alerts were found", count)
	}
	for _, anchor := range runbook.Reasons() {
		used[anchor] = true
	}
	heading := regexp.MustCompile(`(?m)^#{1,2} .*$`)
	for _, part := range strings.Split(heading.ReplaceAllString(page, ""), "\n### ")[1:] {
		title, text, _ := strings.Cut(part, "\n")
		for anchor := range anchors("# " + title) {
			if !used[anchor] {
				t.Errorf("no alert and no reason leads to %q", title)
			}
		}
		if n := len(strings.Fields(marked.ReplaceAllString(fence.ReplaceAllString(text, ""), "$1"))); n > 120 {
			t.Errorf("%q has %d words, more than 120", title, n)
		}
		for _, must := range []string{"**Symptom:**", "**Cause:**", "**Remedy:**", "```sh"} {
			if !strings.Contains(text, must) {
				t.Errorf("%q has no %s", title, must)
			}
		}
	}
}
