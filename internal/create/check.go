// SPDX-License-Identifier: Apache-2.0

package create

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/team"
)

// Check checks objects as `chandler render` does, and sources as if they were of a set. others are the Teams that the hub
// has already, which decide about them.
func Check(objects []*unstructured.Unstructured, others []hubv1.Team, hub hubconfig.Shared, now time.Time) error {
	list := []any{}
	for _, u := range objects {
		u = u.DeepCopy()
		u.SetCreationTimestamp(metav1.NewTime(now)) // of two Teams the older one has a namespace
		for i := range others {
			if isTeam(u, &others[i]) {
				u.SetCreationTimestamp(others[i].CreationTimestamp)
			}
		}
		list = append(list, u.Object)
	}
	for i := range others {
		t := others[i].DeepCopy()
		if slices.ContainsFunc(objects, func(u *unstructured.Unstructured) bool { return isTeam(u, t) }) {
			continue
		}
		t.APIVersion, t.Kind, t.ManagedFields = hubv1.GroupVersion.String(), "Team", nil
		list = append(list, t)
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": list})
	if err != nil {
		return fmt.Errorf("write what is to be created: %w", err)
	}
	parsed, _, err := preview.Parse("what is to be created", raw)
	if err != nil {
		return err
	}
	fleet, err := preview.NewFleet(parsed, hub.Origins)
	if err != nil {
		return err
	}
	errs := checkSources(objects, others, hub)
	for _, text := range preview.Render(fleet, preview.Options{Shared: hub, Now: now}).Errors {
		errs = append(errs, errors.New(text))
	}
	return errors.Join(errs...)
}

func isTeam(u *unstructured.Unstructured, t *hubv1.Team) bool {
	return u.GetKind() == "Team" && u.GetNamespace() == t.Namespace && u.GetName() == t.Name
}

// checkSources asks the Team of a source's namespace about it.
func checkSources(objects []*unstructured.Unstructured, others []hubv1.Team, hub hubconfig.Shared) []error {
	var out []error
	for _, u := range objects {
		if u.GroupVersionKind().Group != sourcev1.GroupVersion.Group {
			continue
		}
		t := team.Of(u.GetNamespace(), others, hub.IsPlatform)
		if t == nil {
			continue
		}
		spec, _, _ := unstructured.NestedMap(u.Object, "spec")
		for _, p := range fluxspec.CheckSource(u.GetKind(), spec, fluxspec.Author{Namespace: u.GetNamespace(), Team: team.Rules(t)}) {
			field := "spec"
			if p.Path != "" {
				field += "." + p.Path
			}
			out = append(out, fmt.Errorf("%s %s/%s: %s: %s", u.GetKind(), u.GetNamespace(), u.GetName(), field, p.Message))
		}
	}
	return out
}
