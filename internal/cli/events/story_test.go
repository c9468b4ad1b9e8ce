// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/events"
)

// storied is what a cluster with a story has beside the objects of testdata/live.
const storied = `
---
apiVersion: v1
kind: Event
metadata: {name: s1, namespace: flux-system, uid: s1, creationTimestamp: "2026-06-01T11:30:00Z"}
involvedObject: {apiVersion: chandler.dev/v1alpha1, kind: AddonDelivery, namespace: flux-system, name: base-edge3-77aa}
related: {kind: Kustomization, namespace: flux-system, name: edge3-policies-77aa}
type: Warning
reason: AddonFailed
message: 'add-on "policies": it is another one'
---
apiVersion: v1
kind: Event
metadata: {name: s2, namespace: flux-system, uid: s2, creationTimestamp: "2026-06-01T11:40:00Z"}
involvedObject: {apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmRepository, namespace: flux-system, name: jetstack}
type: Normal
reason: NewArtifact
message: stored fetched index
count: 3`

// TestStory: a story has the events, the conditions and the history of one add-on, in order of time, and nothing of another one.
func TestStory(t *testing.T) {
	h := clitest.NewSmallHub(t, clitest.SmallFleet()+storied)
	for _, u := range h.Objects {
		if u.GetName() == "edge3-cert-manager-77aa" && u.GetKind() == "HelmRelease" {
			status := `{"conditions": [
				{"type": "Ready", "status": "False", "reason": "InstallFailed", "message": "timed out", "lastTransitionTime": "2026-06-01T11:19:00Z"},
				{"type": "Released", "status": "False", "reason": "InstallFailed", "message": "timed out", "lastTransitionTime": "2026-06-01T11:19:00Z"}],
				"history": [{"name": "cm", "namespace": "cm", "version": 1, "chartName": "cert-manager", "chartVersion": "1.18.2", "status": "failed", "lastDeployed": "2026-06-01T11:14:00Z"}]}`
			change(t, u, "status", status)
			change(t, u, "spec", `{"chart": {"spec": {"chart": "cert-manager", "sourceRef": {"kind": "HelmRepository", "name": "jetstack"}}}}`)
		}
	}
	out, errs, code := run("events edge3 cert-manager")
	if code != 0 || errs != "" {
		t.Errorf("exit code %d: %s", code, errs)
	}
	clitest.Golden(t, "story.txt", out)
	if asked := h.Lines("secrets"); len(asked) > 0 {
		t.Errorf("it asked %q", asked)
	}
	for _, line := range h.Lines("/events") {
		if !strings.Contains(line, "involvedObject.name") {
			t.Errorf("it reads the events of everything: %s", line)
		}
	}
	for args, want := range map[string]string{
		"events edge3 cert-manager --tail 1": "older lines are left out",
		"events edge3 nothing":               `cluster fleet/edge3 has no add-on "nothing": chandler explain edge3 nothing says why`,
		"events nobody cert-manager":         `there is no cluster "nobody"`,
	} {
		if out, errs, _ := run(args); !strings.Contains(errs, want) || strings.Count(out, "\n") > 2 {
			t.Errorf("%s: %s\n%s", args, errs, out)
		}
	}
	h.Forbidden = "/namespaces/flux-system/events"
	if out, errs, code := run("events edge3 cert-manager"); code != 0 || !strings.Contains(errs, "you may not list the events in namespace flux-system") || !strings.Contains(out, "Helm release cm/cm") {
		t.Errorf("without the right to read events: exit code %d, %s\n%s", code, errs, out)
	}
}

// change sets a field of an object.
func change(t *testing.T, u *unstructured.Unstructured, field, text string) {
	t.Helper()
	var value map[string]any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	u.Object[field] = value
}

// TestStoryAreFollowed: what is told and what changes is shown once, and Ctrl-C is no error.
func TestStoryAreFollowed(t *testing.T) {
	const readEvery = 20 * time.Millisecond
	events.ReadEvery(t, readEvery)
	h := clitest.NewSmallHub(t, clitest.SmallFleet())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd, out := root(), &clitest.Output{}
	cmd.SetArgs([]string{"events", "edge3", "cert-manager", "--follow"})
	cmd.SetOut(out)
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	wait := func(want string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !strings.Contains(out.String(), want) && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
	}
	wait("InstallFailed")
	event := func(uid, name, reason, version string) string {
		return `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Event","metadata":{"name":"` + uid + `","namespace":"flux-system","uid":"` + uid + `","resourceVersion":"` + version + `","creationTimestamp":"2026-06-01T12:00:00Z"},"involvedObject":{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","namespace":"flux-system","name":"` + name + `"},"type":"Normal","reason":"` + reason + `","message":"it happened"}}`
	}
	h.Mu.Lock()
	h.Told = []string{event("n1", "edge3-cert-manager-77aa", "InstallSucceeded", "101"), event("n2", "edge1-cert-manager-1fc32e0c", "Elsewhere", "102"), event("n1", "edge3-cert-manager-77aa", "InstallSucceeded", "101")}
	for _, u := range h.Objects {
		if u.GetName() == "edge3-cert-manager-77aa" && u.GetKind() == "HelmRelease" {
			change(t, u, "status", `{"conditions": [{"type": "Ready", "status": "True", "reason": "InstallSucceeded", "message": "installed", "lastTransitionTime": "2026-06-01T12:00:00Z"}]}`)
		}
	}
	for _, u := range h.Objects {
		if u.GetName() == "base-edge3-77aa" {
			change(t, u, "status", `{"addons": [{"name": "cert-manager", "kind": "HelmRelease", "object": "edge3-cert-manager-77aa", "state": "Ready", "since": "2026-06-01T12:00:01Z"}]}`)
		}
	}
	h.Mu.Unlock()
	wait("it happened")
	wait("InstallSucceeded: installed")
	wait(`add-on "cert-manager"`)
	time.Sleep(10 * readEvery) // it looks again, and finds nothing new
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	text := out.String()
	if !strings.Contains(text, "Ready               add-on \"cert-manager\"\n") {
		t.Errorf("what the delivery says now is not there, or with what it said before:\n%s", text)
	}
	for _, once := range []string{"it happened", "InstallSucceeded: installed", "timed out", "TIME"} {
		if n := strings.Count(text, once); n != 1 {
			t.Errorf("%q is there %d times", once, n)
		}
	}
	if strings.Contains(text, "Elsewhere") {
		t.Errorf("it shows\n%s", text)
	}
}
