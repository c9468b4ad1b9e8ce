// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

const metadataSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: labelled, namespace: flux-system}
spec:
  selectAll: true
  rollout: {waves: [{name: first, size: 1, soak: 1h}]}
  $METADATA
  addons:
    - name: labelled
      manifests: {interval: 1h, objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: labelled}, data: {a: $VALUE}}]}
`

// TestMetadata: a webhook in the place of notification-controller gets Flux's event about an add-on with the annotation of the team. Another label
// reaches the object while the wave soaks, and makes no revision; what is taken out of the set leaves.
func TestMetadata(t *testing.T) {
	beside(t)
	ctx := t.Context()
	sink := &fluxEvents{}
	server := httptest.NewServer(sink)
	t.Cleanup(server.Close)
	h := startHub(t, hubOptions{name: "hub-metadata",
		flux: &localfleet.FluxOptions{Args: map[string][]string{parts.HelmController: {"--events-addr=" + server.URL}}}})
	namespace(t, h.Client, "fleet")
	register(t, h.Client, "fleet", "one", workload(t, "workload-a"), nil)
	write := func(metadata, value string) {
		t.Helper()
		apply(t, h.Client, strings.NewReplacer("$METADATA", metadata, "$VALUE", value).Replace(metadataSet))
	}
	const annotation = "event.toolkit.fluxcd.io/team"
	write(`metadata: {labels: {team: payments}, annotations: {`+annotation+`: "payments, on << cluster.name >>"}}`, "one")
	soon(t, "Flux tells whose add-on it is", func() error {
		sink.mu.Lock()
		defer sink.mu.Unlock()
		for _, e := range sink.events {
			if e.InvolvedObject.Kind == "HelmRelease" && e.Metadata[annotation] == "payments, on one" && e.Metadata[hubv1.EventClusterAnnotation] == "fleet/one" {
				return nil
			}
		}
		return fmt.Errorf("none of %d events says so", len(sink.events))
	})
	revision := func() string {
		set := addonSet("flux-system", "labelled")
		check(t, h.Client.Get(ctx, client.ObjectKeyFromObject(set), set))
		return set.Status.Revision
	}
	var first string
	soon(t, "the set has a revision", func() error {
		if first = revision(); first == "" {
			return errors.New("none yet")
		}
		return nil
	})
	holds := func(what, team, event string) {
		t.Helper()
		soon(t, what, func() error {
			list := &helmv2.HelmReleaseList{}
			if err := h.Client.List(ctx, list, client.InNamespace("flux-system"), client.MatchingLabels{hubv1.AddonLabel: "labelled"}); err != nil {
				return err
			}
			var errs []error
			for _, hr := range list.Items {
				if hr.Labels["team"] != team || hr.Annotations[annotation] != event {
					errs = append(errs, fmt.Errorf("%s has %q and %q", hr.Name, hr.Labels["team"], hr.Annotations[annotation]))
				}
				if hr.Generation != 1 {
					t.Errorf("%s has generation %d: its spec was written", hr.Name, hr.Generation)
				}
			}
			if len(list.Items) != 1 {
				errs = append(errs, fmt.Errorf("there are %d objects", len(list.Items)))
			}
			return errors.Join(errs...)
		})
		if now := revision(); now != first {
			t.Errorf("revision %s became %s", first, now)
		}
	}
	write("metadata: {labels: {team: shop}}", "one")
	holds("the label is another, and the annotation is gone", "shop", "")
	write("metadata: {labels: {sharding.fluxcd.io/key: theirs}}", "one")
	soon(t, "a key of Flux is refused", func() error {
		set := addonSet("flux-system", "labelled")
		if err := h.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if c := status.Find(set, hubv1.StalledCondition); c == nil || !strings.Contains(c.Message, "is a key of Flux") {
			return fmt.Errorf("Stalled is %+v", c)
		}
		return nil
	})
	holds("no label is left", "", "")
	write("", "one")
	soon(t, "the set is well again", func() error {
		return condition(ctx, h.Client, addonSet("flux-system", "labelled"), hubv1.ReadyCondition, metav1.ConditionTrue, "")
	})
	holds("nothing is left", "", "")
	soon(t, "what runs is as it was", func() error { return wantData(ctx, workload(t, "workload-a"), "default", "labelled", "a", "one") })
}
