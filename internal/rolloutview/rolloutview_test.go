// SPDX-License-Identifier: Apache-2.0

package rolloutview_test

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/golden"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/page"
	"github.com/chandler-hub/chandler/internal/rolloutview"
)

// load reads a set and what belongs to it from one file. A delivery gets the name that the hub gives.
func load(t *testing.T, file string) *rolloutview.Input {
	t.Helper()
	raw := must.Read(t, file)
	in := &rolloutview.Input{Now: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}
	for _, text := range strings.Split(string(raw), "\n---\n") {
		var kind metav1.TypeMeta
		decode(t, text, &kind, false)
		switch kind.Kind {
		case "AddonSet":
			in.Set = decode(t, text, &hubv1.AddonSet{}, true)
			in.Reach = match.Reach{Namespace: in.Set.Namespace, Platform: true}
		case "AddonDelivery":
			d := decode(t, text, &hubv1.AddonDelivery{}, true)
			d.Name = cmp.Or(d.Name, identity.Delivery(d.Spec.AddonSetRef.Name, d.Spec.RegistrationRef.Key()))
			in.Deliveries = append(in.Deliveries, *d)
		case "ClusterRegistration":
			in.Registrations = append(in.Registrations, *decode(t, text, &hubv1.ClusterRegistration{}, true))
		case "ControllerRevision":
			in.Revisions = append(in.Revisions, *decode(t, text, &appsv1.ControllerRevision{}, true))
		default:
			t.Fatalf("%s: what is %q", file, kind.Kind)
		}
	}
	return in
}

func decode[T any](t *testing.T, text string, into *T, strict bool) *T {
	t.Helper()
	read := yaml.Unmarshal
	if strict {
		read = yaml.UnmarshalStrict
	}
	if err := read([]byte(text), into); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return into
}

// play plays one command, with words as on the command line.
func play(t *testing.T, in *rolloutview.Input, words []string) string {
	t.Helper()
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	var p *page.Page
	var d *rolloutview.PlanDocument
	var order *rolloutview.Order
	var err error
	switch words[0] {
	case "status":
		p, err = rolloutview.Status(in, arg(1) == "--per-cluster")
	case "plan":
		d, err = rolloutview.Plan(in)
	case "plan-of-files":
		d, err = rolloutview.PlanOfFiles(&rolloutview.Input{Set: in.Set, Reach: in.Reach, Registrations: in.Registrations, Now: in.Now})
	case "history":
		p = rolloutview.History(in)
	case "approve":
		order, err = rolloutview.Approve(in, arg(1), "")
	case "approve-seen":
		order, err = rolloutview.Approve(in, "", arg(1))
	case "expedite":
		order, err = rolloutview.Expedite(in, strings.Join(words[1:], " "), "")
	case "retry":
		order, err = rolloutview.Retry(in, arg(1))
	case "undo":
		order, err = rolloutview.Undo(in, strings.TrimPrefix(arg(1), "--now"), words[len(words)-1] == "--now")
	case "redo":
		order, err = rolloutview.Redo(in)
	case "pause":
		order, err = rolloutview.Pause(in, arg(1), strings.Join(words[min(2, len(words)):], " "))
	case "resume":
		order, err = rolloutview.Resume(in)
	case "wait":
		over, err := rolloutview.Reached(in.Set)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		return map[bool]string{true: "over: ", false: "waits: "}[over] + rolloutview.Progress(in.Set) + "\n"
	default:
		t.Fatalf("what is %q", words[0])
	}
	var out strings.Builder
	if d != nil {
		p = d.Page()
	}
	switch {
	case err != nil:
		return "error: " + err.Error() + "\n"
	case p != nil:
		must.Do(t, p.Flush(&out))
		return out.String()
	}
	if order.Patch != nil {
		raw := must.Get(json.Marshal(order.Patch)).Or(t)
		accepted(t, in.Set, raw)
		out.WriteString(string(raw) + "\n")
	}
	out.WriteString(order.Says + "\n")
	for _, n := range order.Notes {
		out.WriteString("Note: " + n + "\n")
	}
	return out.String()
}

// accepted holds the set to its CRD, with an order's patch.
func accepted(t *testing.T, set *hubv1.AddonSet, patch []byte) {
	t.Helper()
	schema := crdschema.Ours("AddonSet")
	var change struct {
		Spec struct{ Pause *hubv1.RolloutPause }
	}
	must.Do(t, json.Unmarshal(patch, &change))
	after := set.DeepCopy()
	if after.Spec.Pause = change.Spec.Pause; after.Spec.Pause == nil {
		return
	}
	after.Status = hubv1.AddonSetStatus{}
	raw := must.Get(json.Marshal(after)).Or(t)
	if err := schema.Refuses(raw); err != nil {
		t.Errorf("%s: %v", patch, err)
	}
}

// TestCommands plays the commands of each folder: those of args.txt, on the objects of in.yaml. A line that begins with + is a patch of
// the set for the lines after it.
func TestCommands(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("testdata", "*"))
	if err != nil || len(folders) == 0 {
		t.Fatal(folders, err)
	}
	for _, dir := range folders {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			lines := must.Read(t, filepath.Join(dir, "args.txt"))
			in := load(t, filepath.Join(dir, "in.yaml"))
			var got strings.Builder
			for _, line := range strings.Split(strings.TrimSpace(string(lines)), "\n") {
				got.WriteString("$ " + line + "\n")
				if patch, ok := strings.CutPrefix(line, "+"); ok {
					decode(t, patch, in.Set, true)
					got.WriteString("\n")
					continue
				}
				got.WriteString(play(t, in, strings.Fields(line)) + "\n")
			}
			golden.Compare(t, filepath.Join(dir, "want.txt"), got.String())
		})
	}
}
