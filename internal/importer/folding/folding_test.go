// SPDX-License-Identifier: Apache-2.0

package folding_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/crdschema"
	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/golden"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/importer/folding"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/preview"
)

func hub() hubconfig.Shared {
	return hubconfig.Shared{HubID: "chandler", PlatformNamespaces: []string{"flux-system"}, Origins: origin.Policy{SecretNamespaces: []string{"*"}}}
}

// input reads objects from YAML.
func input(t *testing.T, text string) folding.Input {
	t.Helper()
	in := folding.Input{Namespace: "flux-system", Hub: hub(), Now: time.Unix(1e9, 0)}
	found := must.Get(preview.Documents("in.yaml", []byte(text))).Or(t)
	for _, d := range found {
		switch u := d.Unstructured; u.GetKind() {
		case "HelmRelease", "Kustomization":
			in.Objects = append(in.Objects, folding.Object{File: "in.yaml", Line: d.Line, Unstructured: u})
		case "AddonSet":
			set := hubv1.AddonSet{}
			must.Do(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &set))
			in.Sets = append(in.Sets, set)
		case "ClusterRegistration":
			reg := hubv1.ClusterRegistration{}
			must.Do(t, preview.Strict(u, &reg))
			in.Registrations = append(in.Registrations, reg)
		default:
			in.Origins = append(in.Origins, u)
		}
	}
	return in
}

// holds holds a result to the promise: each object is folded or left, once; and what the sets deliver to each cluster, as
// `chandler render` shows it of the text that is printed, is what the folded objects are, and nothing else.
func holds(in folding.Input, out *folding.Result) error {
	objects := map[string]*folding.Object{}
	for i := range in.Objects {
		objects[in.Objects[i].String()] = &in.Objects[i]
	}
	todo := map[string]*folding.Object{}
	for _, o := range out.Folded {
		if todo[o.String()] != nil || objects[o.String()] == nil {
			return fmt.Errorf("%s is folded twice, or was not there", o)
		}
		todo[o.String()] = o
	}
	if n := len(out.Folded) + len(out.Left) + out.Ignored; n != len(in.Objects) {
		return fmt.Errorf("%d objects went in, and %d are accounted for", len(in.Objects), n)
	}
	for _, l := range out.Left {
		if todo[l.Object.String()] == l.Object {
			return fmt.Errorf("%s is folded, and left: %s", l.Object, l.Reason)
		}
	}
	report, err := rendered(in, out)
	if err != nil {
		return err
	}
	if len(report.Errors) > 0 {
		return fmt.Errorf("chandler render says: %s", strings.Join(report.Errors, "; "))
	}
	charts := map[string]*unstructured.Unstructured{}
	for _, u := range report.Shared {
		if u.GetKind() == "HelmChart" {
			charts[u.GetNamespace()+"/"+u.GetName()] = u
		}
	}
	for _, c := range report.Clusters {
		if n := len(c.Failed) + len(c.Lost) + len(c.NotOwned) + len(c.Refused); n > 0 {
			return fmt.Errorf("cluster %s/%s: %v %v %v", c.Namespace, c.Name, c.Failed, c.Lost, c.NotOwned)
		}
		for _, r := range c.Objects {
			adopted := ""
			for _, remark := range r.Remarks {
				if rest, ok := strings.CutPrefix(remark, "takes over from "); ok {
					adopted, _, _ = strings.Cut(rest, ", where")
				}
			}
			before := todo[adopted]
			if before == nil {
				return fmt.Errorf("cluster %s/%s: add-on %s takes over %q, which was not folded, or is taken over already", c.Namespace, c.Name, r.Addon, adopted)
			}
			delete(todo, adopted)
			if err := sameCluster(out, before, c.Namespace, c.Name); err != nil {
				return err
			}
			ref, _, _ := unstructured.NestedStringMap(r.Manifest.Object, "spec", "chartRef")
			was, err := folding.Meaning(before.Unstructured, nil)
			if err != nil {
				return err
			}
			ofCopies(before, r, types.NamespacedName{Namespace: c.Namespace, Name: c.Name})
			is, err := folding.Meaning(r.Manifest, charts[ref["namespace"]+"/"+ref["name"]])
			if err != nil {
				return err
			}
			if d := cmp.Diff(was, is); d != "" {
				return fmt.Errorf("%s comes out otherwise (-was +is):\n%s", adopted, d)
			}
			if err := sameDependencies(before, r, c, out); err != nil {
				return err
			}
		}
	}
	if len(todo) > 0 {
		return fmt.Errorf("nobody takes over %v", slices.Sorted(maps.Keys(todo)))
	}
	return nil
}

func sameCluster(out *folding.Result, o *folding.Object, namespace, name string) error {
	secret, _, _ := unstructured.NestedString(o.Unstructured.Object, "spec", "kubeConfig", "secretRef", "name")
	for _, c := range out.Clusters {
		ofKamaji := c.Kind == origin.ClusterAPI && secret == origin.Kamaji.UsualSecret(c.Name)
		if c.Namespace == o.GetNamespace() && (c.Secret == secret || ofKamaji) || c.Secret == "b" && secret == "copy-of-b" {
			if c.Namespace != namespace || c.Name != name {
				return fmt.Errorf("%s is for %s, and comes out for %s/%s", o, c, namespace, name)
			}
			return nil
		}
	}
	return fmt.Errorf("%s is for a cluster that is not there", o)
}

// sameDependencies holds the add-on's dependsOn to that of the object.
func sameDependencies(before *folding.Object, r preview.Rendered, c preview.Cluster, out *folding.Result) error {
	adopted := map[string]string{} // set/add-on on this cluster, to the object
	for _, o := range c.Objects {
		for _, remark := range o.Remarks {
			if rest, ok := strings.CutPrefix(remark, "takes over from "); ok {
				adopted[o.Set+"/"+o.Addon], _, _ = strings.Cut(rest, ", where")
			}
		}
	}
	var want, got []string
	list, _, _ := unstructured.NestedSlice(before.Unstructured.Object, "spec", "dependsOn")
	for _, x := range list {
		d := x.(map[string]any)
		ns, _ := d["namespace"].(string)
		if ns == "" {
			ns = before.GetNamespace()
		}
		need := fmt.Sprintf("%s %s/%s", before.GetKind(), ns, d["name"])
		if !dropped(out, before, need) {
			want = append(want, need)
		}
	}
	for _, s := range out.Sets {
		for _, a := range s.Spec.Addons {
			if s.Namespace+"/"+s.Name != r.Set || a.Name != r.Addon {
				continue
			}
			for _, d := range a.DependsOn {
				set := r.Set
				if d.AddonSet != "" {
					set = s.Namespace + "/" + d.AddonSet
				}
				got = append(got, adopted[set+"/"+d.Name])
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(slices.Compact(want), got); d != "" {
		return fmt.Errorf("%s depends on other objects (-was +is):\n%s", before, d)
	}
	return nil
}

// dropped returns whether an add-on need not wait for what its object depends on: a note says so, or it makes the cluster.
func dropped(out *folding.Result, o *folding.Object, need string) bool {
	return strings.HasSuffix(need, "-cluster") || slices.ContainsFunc(out.Notes, func(n folding.Note) bool {
		return n.Object == o && strings.Contains(n.Text, "does not wait for "+need+",")
	})
}

// ofCopies writes the names of what lies beside a cluster into a rendered object, in the place of those of the hub's copies.
func ofCopies(before *folding.Object, r preview.Rendered, cluster types.NamespacedName) {
	_, set, _ := strings.Cut(r.Set, "/")
	was, _ := before.Unstructured.Object["spec"].(map[string]any)
	_, originals := fluxspec.Documents(before.GetKind(), was)
	spec, _ := r.Manifest.Object["spec"].(map[string]any)
	_, entries := fluxspec.Documents(before.GetKind(), spec)
	for i := range min(len(entries), len(originals)) {
		entry, original := entries[i].(map[string]any), originals[i].(map[string]any)
		kind, _ := original["kind"].(string)
		name, _ := original["name"].(string)
		if entry["name"] == identity.Copy("chandler", cluster, identity.Delivery(set, cluster), kind, name) {
			entry["name"] = name
		}
	}
}

// sharing is the command that is printed for what lies beside a cluster.
var sharing = regexp.MustCompile(`kubectl annotate (\S+) (\S+) -n (\S+) (\S+)=(\S+)$`)

// rendered renders what is printed, with the clusters labelled as is printed too.
func rendered(in folding.Input, out *folding.Result) (*preview.Report, error) {
	var text strings.Builder
	for _, s := range out.Sets {
		one, err := folding.YAML(s)
		if err != nil {
			return nil, err
		}
		text.WriteString("---\n" + one)
	}
	objects, _, err := preview.Parse("printed", []byte(text.String()))
	if err != nil {
		return nil, err
	}
	text.Reset()
	for _, c := range out.Clusters {
		reg := &hubv1.ClusterRegistration{}
		reg.APIVersion, reg.Kind = hubv1.GroupVersion.String(), "ClusterRegistration"
		reg.Namespace, reg.Name, reg.Labels = c.Namespace, c.Name, c.Labels
		ref := c.Kind.Reference(c.Origin)
		reg.Spec.OriginRef = &ref
		raw, err := yaml.Marshal(reg)
		if err != nil {
			return nil, err
		}
		text.WriteString("---\n" + string(raw))
	}
	for _, n := range out.Notes { // whose owners share it, as is printed
		if m := sharing.FindStringSubmatch(n.Text); m != nil {
			fmt.Fprintf(&text, "---\n{apiVersion: v1, kind: %s, metadata: {name: %s, namespace: %s, annotations: {%s: %s}}, data: {values.yaml: ''}}\n", m[1], m[2], m[3], m[4], m[5])
		}
	}
	clusters, _, err := preview.Parse("clusters", []byte(text.String()))
	if err != nil {
		return nil, err
	}
	fleet, err := preview.NewFleet(append(objects, clusters...), in.Hub.Origins)
	if err != nil {
		return nil, err
	}
	return preview.Render(fleet, preview.Options{Shared: in.Hub, Now: in.Now}), nil
}

// TestFold: what comes of the inputs in testdata, and that it holds.
func TestFold(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*/in.yaml")
	if err != nil || len(dirs) == 0 {
		t.Fatal(dirs, err)
	}
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			raw := must.Read(t, file)
			in := input(t, string(raw))
			in.Targets = map[string]folding.Target{ // what --from-cluster would find out; only one of the inputs has such Secrets
				"fleet/b/": {Fingerprint: "b"}, "infra/copy-of-b/admin.conf": {Fingerprint: "b"}, "fleet/moved/": {Fingerprint: "old"},
				"fleet/broken/": {Problem: "has no key \"value\""},
			}
			if filepath.Base(dir) != "odd" {
				in.Targets = nil
			}
			in.Hub.Origins.SecretNamespaces = []string{"flux-system"}
			out := folding.Fold(in)
			in.Hub.Origins.SecretNamespaces = []string{"*"}
			if err := holds(in, out); err != nil {
				t.Error(err)
			}
			in.Hub.Origins.SecretNamespaces = []string{"flux-system"}
			accepted(t, out)
			got := out.Head(in.Hub)
			for _, s := range out.Sets {
				one := must.Get(folding.YAML(s)).Or(t)
				got += "---\n" + one
			}
			golden.Compare(t, filepath.Join(dir, "want.yaml"), got)
		})
	}
}

// accepted holds the sets to what the API server takes.
func accepted(t *testing.T, out *folding.Result) {
	t.Helper()
	s := crdschema.Ours("AddonSet")
	for _, set := range out.Sets {
		one := must.Get(folding.YAML(set)).Or(t)
		if err := s.Refuses([]byte(one)); err != nil {
			t.Errorf("%v\n%s", err, one)
		}
	}
}

func text(out *folding.Result) string {
	var b strings.Builder
	for _, s := range out.Sets {
		one, err := folding.YAML(s)
		if err != nil {
			return err.Error()
		}
		b.WriteString("---\n" + one)
	}
	return b.String()
}

// TestFoldMany: a fleet of a size that people have is folded in seconds.
func TestFoldMany(t *testing.T) {
	var b strings.Builder
	for i := range 500 {
		for _, addon := range []string{"a", "b", "c"} {
			fmt.Fprintf(&b, `---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: edge-%03d-%s, namespace: fleet}
spec:
  interval: 10m
  releaseName: %[2]s
  chart: {spec: {chart: %[2]s, version: "1.%[3]d", sourceRef: {kind: HelmRepository, name: charts}}}
  kubeConfig: {secretRef: {name: edge-%03[1]d}}
  values: {host: edge-%03[1]d.example.org, group: g%[3]d, list: [a, b, c], resources: {limits: {cpu: 1, memory: 2Gi}}}
`, i, addon, i%5)
		}
	}
	in := input(t, b.String())
	start := time.Now()
	out := folding.Fold(in)
	t.Logf("%s in %s", out.Summary(), time.Since(start))
	if len(out.Left) > 0 || len(out.Sets) != 1 {
		t.Fatalf("%s: %v", out.Summary(), out.Left[:min(3, len(out.Left))])
	}
	if n := len(out.Sets[0].Spec.Overlays); n != 4 {
		t.Errorf("there are %d overlays", n)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}
