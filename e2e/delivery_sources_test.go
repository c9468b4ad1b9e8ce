// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

const sourcesSet = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: sources, namespace: flux-system}
spec:
  selectAll: true
  rollout: {strategy: AllAtOnce}
  sources:
    - {name: charts, kind: HelmRepository, spec: {url: https://charts.example.org}}
    - {name: git, kind: GitRepository, spec: {url: https://git.example.org/fleet, ref: {branch: main}}}
    - {name: oci, kind: OCIRepository, spec: {url: oci://registry.example.org/fleet, ref: {tag: v1}}}
    - {name: bucket, kind: Bucket, spec: {endpoint: bucket.example.org, bucketName: fleet}}
  addons:
    - {name: src-charts, helmRelease: {chart: {spec: {chart: c, sourceRef: {name: charts}}}}}
    - {name: src-git, kustomization: {sourceRef: {name: git}}}
    - {name: src-oci, kustomization: {sourceRef: {name: oci}}}
    - {name: src-bucket, kustomization: {sourceRef: {name: bucket}}}
`

// TestSources: sources of every kind come and go with the set, and one of such a name that somebody else made stays as it is.
func TestSources(t *testing.T) {
	beside(t)
	ctx := t.Context()
	c := workload(t, "workload-a")
	h := startHub(t, hubOptions{name: "hub-sources"})
	namespace(t, h.Client, "fleet")
	register(t, h.Client, "fleet", "one", c, nil)
	apply(t, h.Client, sourcesSet)

	found := map[string]*unstructured.Unstructured{}
	list := func() error {
		clear(found)
		for _, kind := range []string{"HelmRepository", "GitRepository", "OCIRepository", "Bucket"} {
			l := &unstructured.UnstructuredList{}
			l.SetAPIVersion(sourceAPI)
			l.SetKind(kind + "List")
			if err := h.Client.List(ctx, l); err != nil {
				return err
			}
			for i := range l.Items {
				found[kind] = &l.Items[i]
			}
		}
		return nil
	}
	soon(t, "a source of each kind is made", func() error {
		if err := list(); err != nil || len(found) != 4 {
			return fmt.Errorf("%d sources (%w)", len(found), err)
		}
		return nil
	})
	made := maps.Clone(found)
	set := addonSet("flux-system", "sources")
	check(t, h.Client.Delete(ctx, set))
	soon(t, "they go with the set", func() error {
		if err := list(); err != nil || len(found) != 0 {
			return fmt.Errorf("%d sources are left (%w)", len(found), err)
		}
		return wantGone(ctx, h.Client, set)
	})

	for _, o := range made {
		theirs := o.DeepCopy()
		theirs.Object["metadata"] = map[string]any{"namespace": o.GetNamespace(), "name": o.GetName()}
		check(t, unstructured.SetNestedField(theirs.Object, "7m", "spec", "interval"))
		check(t, h.Client.Create(ctx, theirs))
	}
	apply(t, h.Client, sourcesSet)
	soon(t, "each add-on says that its source is somebody else's", func() error {
		l := &hubv1.AddonDeliveryList{}
		if err := h.Client.List(ctx, l); err != nil || len(l.Items) != 1 {
			return fmt.Errorf("%d deliveries (%w)", len(l.Items), err)
		}
		d := l.Items[0]
		var errs []error
		for _, a := range d.Status.Addons {
			if !strings.Contains(a.Message, "did not make") {
				errs = append(errs, fmt.Errorf("%s is %s: %q", a.Name, a.State, a.Message))
			}
		}
		if len(d.Status.Addons) != 4 {
			errs = append(errs, fmt.Errorf("%d add-ons", len(d.Status.Addons)))
		}
		return errors.Join(errs...)
	})
	check(t, list())
	for kind, o := range found {
		interval, _, _ := unstructured.NestedString(o.Object, "spec", "interval")
		if interval != "7m" || len(o.GetLabels()) > 0 {
			t.Errorf("%s %s was changed: interval %s, labels %v", kind, o.GetName(), interval, o.GetLabels())
		}
	}
}
