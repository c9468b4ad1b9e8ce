// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/examples"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// TestRolloutAlerts: when an edit in Git fails in its first wave, Flux sends an error for each of the Alerts of examples/rollout:
// one of the add-on, which names the cluster, and one of the Kustomization that brings the set, long before its timeout.
func TestRolloutAlerts(t *testing.T) {
	beside(t)
	ctx := t.Context()
	sink := &fluxEvents{}
	server := httptest.NewServer(sink)
	t.Cleanup(server.Close)
	to := []string{"--events-addr=" + server.URL}
	h := startHub(t, hubOptions{name: "hub-alerts",
		flux: &localfleet.FluxOptions{Args: map[string][]string{parts.HelmController: to, parts.KustomizeController: to}}})
	_, git := serve(t)
	commit := func(file string) {
		t.Helper()
		text, err := examples.Read("rollout/"+file, nil)
		check(t, err)
		_, err = git.Commit("fleet", map[string]string{"sets/set.yaml": text})
		check(t, err)
	}
	commit("addonset.yaml")
	registerBy(t, h.Client, "fleet", "one", kubeconfigOf(t, workload(t, "with-nodes")), map[string]string{"tier": "prod"})
	apply(t, h.Client, fmt.Sprintf(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: flux-system}
spec: {url: %s, interval: 2s, ref: {branch: main}}
`, git.URL("fleet")))
	text, err := examples.Read("rollout/alerts.yaml", nil)
	check(t, err)
	parts := strings.Split(text, "\n---\n")
	apply(t, h.Client, parts[len(parts)-1]) // the others are for notification-controller
	k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "sets"}}
	soon(t, "the Kustomization is Ready", func() error {
		return condition(ctx, h.Client, k, "Ready", metav1.ConditionTrue, "")
	})
	commit("bad-edit.yaml")
	for what, is := range map[string]func(fluxEvent) bool{
		"the add-on": func(e fluxEvent) bool {
			return e.InvolvedObject.Kind == "HelmRelease" && e.Metadata[hubv1.EventClusterAnnotation] == "fleet/one" &&
				e.Metadata[hubv1.EventSetAnnotation] == "flux-system/entrance"
		},
		"the set": func(e fluxEvent) bool {
			return e.InvolvedObject.Kind == "Kustomization" && e.InvolvedObject.Name == "sets" &&
				strings.Contains(e.Message, "AddonSet/flux-system/entrance")
		},
	} {
		soon(t, "Flux tells that it failed, about "+what, func() error { return sink.errors(is) })
	}
}

// errors returns an error unless there was an event of an error about something.
func (f *fluxEvents) errors(about func(fluxEvent) bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	errs := []error{fmt.Errorf("none of %d events", len(f.events))}
	for _, e := range f.events {
		if e.Severity == "error" && about(e) {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s %s %s: %s", e.Severity, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message))
	}
	return errors.Join(errs...)
}
