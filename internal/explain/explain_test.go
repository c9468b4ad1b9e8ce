// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/explain"
	"github.com/chandler-hub/chandler/internal/golden"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/document"
)

// newest stands in a file for the revision of a set as the file has it, and frozen for that of an older hub.
const newest, frozen = "newest", "frozen"

// load reads the objects of a hub from one file.
func load(t *testing.T, file string) *explain.Input {
	t.Helper()
	raw := must.Read(t, file)
	in := &explain.Input{
		Shared: hubconfig.Shared{
			HubID: "chandler", PlatformNamespaces: []string{"chandler-system"},
			Chart: render.ManifestChart{URL: "http://chandler", Name: "manifests", Digest: "sha256:0"},
		},
		Now: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC),
	}
	documents, revisions := map[string]document.Document{}, map[string]*appsv1.ControllerRevision{}
	in.Revision = func(namespace, name string) (*appsv1.ControllerRevision, error) {
		return revisions[namespace+"/"+name], nil
	}
	in.Document = func(namespace string, ref document.Ref) (document.Document, error) {
		return documents[ref.Kind+" "+namespace+"/"+ref.Name], nil
	}
	for _, text := range strings.Split(string(raw), "\n---\n") {
		var meta metav1.TypeMeta
		decode(t, text, &meta, false)
		switch meta.Kind {
		case "":
		case "ClusterRegistration":
			in.Registration = decode(t, text, &hubv1.ClusterRegistration{}, true)
		case "AddonSet":
			in.Sets = append(in.Sets, *decode(t, text, &hubv1.AddonSet{}, true))
		case "AddonDelivery":
			in.Deliveries = append(in.Deliveries, *decode(t, text, &hubv1.AddonDelivery{}, true))
		case "ControllerRevision":
			r := decode(t, text, &appsv1.ControllerRevision{}, true)
			revisions[r.Namespace+"/"+r.Name] = r
		case "HelmRelease":
			in.Releases = append(in.Releases, *decode(t, text, &helmv2.HelmRelease{}, true))
		case "Kustomization":
			in.Kustomizations = append(in.Kustomizations, *decode(t, text, &kustomizev1.Kustomization{}, true))
		case "ConfigMap":
			m := decode(t, text, &corev1.ConfigMap{}, true)
			documents["ConfigMap "+m.Namespace+"/"+m.Name] = document.ConfigMap(m.Annotations, m.Data)
		default:
			in.Origin = &unstructured.Unstructured{Object: *decode(t, text, &map[string]any{}, false)}
		}
	}
	snapshots(t, in, revisions)
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

// snapshots makes the revisions that deliveries name by newest, or by frozen, and gives deliveries that are named after their set and
// cluster the name that the hub gives.
func snapshots(t *testing.T, in *explain.Input, revisions map[string]*appsv1.ControllerRevision) {
	t.Helper()
	for i := range in.Deliveries {
		d := &in.Deliveries[i]
		if ref := d.Spec.RegistrationRef; d.Name == d.Spec.AddonSetRef.Name+"-"+ref.Name {
			d.Name = identity.Delivery(d.Spec.AddonSetRef.Name, ref.Key())
		}
		epoch, ok := map[string]int{newest: render.Epoch, frozen: render.Epoch - 1}[d.Spec.RevisionName]
		for j := range in.Sets {
			s := &in.Sets[j]
			there := revisions[d.Namespace+"/"+d.Spec.RevisionName]
			if s.Namespace != d.Namespace || s.Name != d.Spec.AddonSetRef.Name || !ok && there == nil {
				continue
			}
			spec := &s.Spec
			if there != nil { // an older one, which the file has
				spec, epoch = decode(t, string(there.Data.Raw), &hubv1.AddonSetSpec{}, true), render.Epoch
			}
			raw, hash, err := compile.Snapshot(spec, nil)
			if err != nil {
				t.Fatal(err)
			}
			was := d.Spec.RevisionName
			d.Spec.RevisionName = identity.Revision(s.Name, hash, epoch)
			for _, name := range []*string{&d.Status.ReadyRevision, &s.Status.Revision} {
				if *name == was {
					*name = d.Spec.RevisionName
				}
			}
			revisions[s.Namespace+"/"+d.Spec.RevisionName] = &appsv1.ControllerRevision{
				ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, hubv1.GroupVersion.WithKind("AddonSet"))}},
				Data:       runtime.RawExtension{Raw: raw},
			}
		}
	}
}

// run explains a cluster, or an add-on of it.
func run(t *testing.T, in *explain.Input, addon string) string {
	t.Helper()
	var out bytes.Buffer
	if addon == "" {
		must.Do(t, explain.Cluster(in).Print(&out))
		return out.String()
	}
	r, err := explain.Addon(in, addon)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	must.Do(t, r.Print(&out))
	return out.String()
}

// TestGolden explains every hub under testdata. Each line of args.txt is one command line, and want.txt what all of them print.
func TestGolden(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("there are no cases", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			args := must.Read(t, filepath.Join(dir, "args.txt"))
			var got strings.Builder
			for _, line := range strings.Split(strings.TrimSpace(string(args)), "\n") {
				_, addon, _ := strings.Cut(line, " ")
				text := run(t, load(t, filepath.Join(dir, "in.yaml")), addon)
				if again := run(t, load(t, filepath.Join(dir, "in.yaml")), addon); again != text {
					t.Errorf("not the same the second time: %s", cmp.Diff(text, again))
				}
				got.WriteString("$ chandler explain " + line + "\n" + text + "\n")
			}
			golden.Compare(t, filepath.Join(dir, "want.txt"), got.String())
		})
	}
}

// TestNothingOfStrangers holds that what other people wrote cannot move the cursor, or hide a line.
func TestNothingOfStrangers(t *testing.T) {
	in := load(t, "testdata/failed/in.yaml")
	evil := "a\x1b[2Jb\nc\u202ed\u2028e\u009bf"
	in.Registration.Status.KubernetesVersion = evil
	in.Registration.Spec.Overrides = append(in.Registration.Spec.Overrides, hubv1.Override{Name: evil, Reason: evil})
	in.Notes = append(in.Notes, evil)
	for i := range in.Deliveries {
		for j := range in.Deliveries[i].Status.Addons {
			in.Deliveries[i].Status.Addons[j].Message = evil
		}
	}
	for _, addon := range []string{"", "cert-manager"} {
		out := run(t, in, addon)
		if strings.ContainsAny(out, "\x1b\u202e\u2028\u009b") {
			t.Errorf("%q", out)
		}
	}
}

// TestAllWithinReach: the set of a team that selects all clusters selects those of the Team, and so it says; one of a namespace without a
// Team those of the namespace.
func TestAllWithinReach(t *testing.T) {
	web := `[{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "shop-apps"}}]`
	for want, namespace := range map[string]string{"its Team": "shop", "its namespace": "tenants"} {
		in := load(t, filepath.Join("testdata", "layers", "in.yaml"))
		in.Teams = []hubv1.Team{{ObjectMeta: metav1.ObjectMeta{Namespace: "chandler-system", Name: "shop"}, Spec: hubv1.TeamSpec{
			ClusterSelector: &metav1.LabelSelector{MatchLabels: in.Registration.Labels}, Namespaces: []hubv1.TeamNamespace{{Name: "shop-apps"}}}}}
		for i := range in.Sets {
			s := &in.Sets[i]
			s.Namespace = namespace
			s.Spec = hubv1.AddonSetSpec{SelectAll: true, Addons: []hubv1.Addon{{Name: "crds"}}}
			decode(t, "objects: "+web, &s.Spec.Addons[0].Manifests, true)
		}
		for i := range in.Deliveries {
			in.Deliveries[i].Namespace = namespace
		}
		r := must.Get(explain.Addon(in, "crds")).Or(t)
		var out strings.Builder
		want = "AddonSet " + namespace + "/base, which selects all clusters of " + want + ", delivers it."
		if err := r.Print(&out); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v\n%s", err, out.String())
		}
	}
}
