// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/export"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	rules "github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/must"
)

// storedHub is an API server that lists what it has, and notes what it was asked.
type storedHub struct {
	objects map[string]string // in YAML, by path; of a list, its items
	asked   []string
}

var stored = map[string]map[string]string{
	"chandler.dev/v1alpha1":    {"addonsets": "AddonSet", "teams": "Team", "clusterregistrations": "ClusterRegistration"},
	"apps/v1":                  {"controllerrevisions": "ControllerRevision"},
	"v1":                       {"configmaps": "ConfigMap", "secrets": "Secret", "namespaces": "Namespace"},
	"cluster.x-k8s.io/v1beta2": {"clusters": "Cluster"},
}

func (h *storedHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked = append(h.asked, r.Method+" "+r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	path := strings.Trim(r.URL.Path, "/")
	switch parts := strings.Split(path, "/"); {
	case path == "api":
		_ = json.NewEncoder(w).Encode(metav1.APIVersions{Versions: []string{"v1"}})
	case path == "apis":
		var groups metav1.APIGroupList
		for gv := range stored {
			if group, version, ok := strings.Cut(gv, "/"); ok {
				v := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version}
				groups.Groups = append(groups.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
			}
		}
		_ = json.NewEncoder(w).Encode(groups)
	case len(stored[strings.Join(parts[1:], "/")]) > 0:
		list := metav1.APIResourceList{GroupVersion: strings.Join(parts[1:], "/")}
		for name, kind := range stored[list.GroupVersion] {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: kind, Namespaced: kind != "Namespace", Verbs: []string{"list", "get"}})
		}
		_ = json.NewEncoder(w).Encode(list)
	default:
		h.object(w, path, parts)
	}
}

func (h *storedHub) object(w http.ResponseWriter, path string, parts []string) {
	if text, ok := h.objects[path]; ok && !strings.HasPrefix(strings.TrimSpace(text), "- ") {
		raw, _ := yaml.YAMLToJSON([]byte(text))
		_, _ = w.Write(raw)
		return
	}
	for gv, kinds := range stored {
		if kind := kinds[parts[len(parts)-1]]; kind != "" && strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(path, "apis/"), "api/"), gv) {
			items := []any{}
			_ = yaml.Unmarshal([]byte(h.objects[path]), &items)
			_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": gv, "kind": kind + "List", "items": items})
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: 404})
}

const (
	liveSet = `
metadata: {name: base, namespace: flux-system, uid: base}
spec:
  selectAll: true
  variablesFrom: [{configMap: sizes}]
  addons:
    - name: web
      helmRelease: {chartRef: {kind: OCIRepository, name: web}, values: {replicas: "<< vars.replicas >>", version: "<< cluster.version.minor >>", pods: "<< cluster.podCIDRs[0] >>"}}
    - name: objects
      manifests: {manifestsFrom: [{kind: Secret, name: token}]}`
	keptSet = "{metadata: {name: kept, namespace: flux-system}, spec: {selectAll: true, addons: [{name: kept, helmRelease: {chartRef: {kind: OCIRepository, name: kept}}}]}}"
)

func newStoredHub(t *testing.T) (h *storedHub, server string) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	revision := func(name, value string) string {
		var set hubv1.AddonSet
		must.Do(t, yaml.Unmarshal([]byte(strings.Replace(liveSet, "<< vars.replicas >>", value, 1)), &set))
		raw, _, err := compile.Snapshot(&set.Spec, &compile.Pins{ConfigMaps: map[string]map[string]string{"sizes": {"replicas": value}}})
		if err != nil {
			t.Fatal(err)
		}
		return "- {metadata: {name: " + name + ", namespace: flux-system, labels: {chandler.dev/addonset: base}, ownerReferences: [{apiVersion: chandler.dev/v1alpha1, kind: AddonSet, name: base, uid: base, controller: true}]}, data: " + string(raw) + ", revision: 1}\n"
	}
	indented := "- " + strings.ReplaceAll(strings.TrimSpace(liveSet), "\n", "\n  ")
	h = &storedHub{objects: map[string]string{
		"apis/chandler.dev/v1alpha1/addonsets": indented + "\n- " + keptSet + "\n",
		"apis/chandler.dev/v1alpha1/clusterregistrations": `
- {metadata: {name: a, namespace: fleet, labels: {region: eu}, annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter2}}, spec: {kubeConfig: {secretRef: {name: a}}, originRef: {apiGroup: cluster.x-k8s.io, kind: Cluster, name: a}}, status: {clusterUID: u1, kubernetesVersion: v1.33.2, provider: ClusterAPI}}
- {metadata: {name: b, namespace: fleet}, spec: {kubeConfig: {secretRef: {name: hunter2}}, originRef: {apiGroup: cluster.x-k8s.io, kind: Cluster, name: b}}, status: {clusterUID: u2, kubernetesVersion: v1.34.1}}`,
		"apis/cluster.x-k8s.io/v1beta2/clusters": `
- {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: a, namespace: fleet, labels: {chandler.dev/register: "true"}}, spec: {clusterNetwork: {pods: {cidrBlocks: [10.1.0.0/16]}}}}
- {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: b, namespace: fleet, labels: {chandler.dev/register: "true"}}, spec: {clusterNetwork: {pods: {cidrBlocks: [10.2.0.0/16]}}}}`,
		"apis/apps/v1/controllerrevisions":                          revision("base-1", "1") + revision("base-2", "2"),
		"api/v1/namespaces/flux-system/configmaps/sizes":            `{apiVersion: v1, kind: ConfigMap, metadata: {name: sizes, namespace: flux-system}, data: {replicas: "1"}}`,
		"api/v1/namespaces/flux-system/secrets/token":               `{apiVersion: v1, kind: Secret, metadata: {name: token, namespace: flux-system}, data: {all.yaml: aHVudGVyMg==}}`,
		"api/v1/namespaces/chandler-system/configmaps/chandler-hub": `{apiVersion: v1, kind: ConfigMap, metadata: {name: chandler-hub, namespace: chandler-system}, data: {hub-id: chandler, platform-namespaces: "flux-system"}}`,
	}}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return h, s.URL
}

// TestDiffAgainstHub: what the files do not have stays as it is, unless --prune; nothing is written, and no Secret's content is read
// into what comes out.
func TestDiffAgainstHub(t *testing.T) {
	h, server := newStoredHub(t)
	file := filepath.Join(t.TempDir(), "set.yaml")
	set := "apiVersion: chandler.dev/v1alpha1\nkind: AddonSet" + liveSet
	set = strings.Replace(set, ", uid: base", "", 1)
	check := func(name, text string, code int, want []string, never []string, args ...string) {
		t.Helper()
		clitest.Write(t, file, text)
		out, errs, got := diffed(t, append([]string{"--server", server, "-f", file}, args...)...)
		for _, w := range want {
			if !strings.Contains(out+errs, w) {
				t.Errorf("%s: %q is missing", name, w)
			}
		}
		for _, n := range append(never, "hunter2", "aHVudGVyMg") {
			if strings.Contains(out+errs, n) {
				t.Errorf("%s: %q is there", name, n)
			}
		}
		if strings.Count(strings.ToLower(out+errs), "no changes on") > 1 {
			t.Errorf("%s: it says twice that nothing changes", name)
		}
		if got != code || t.Failed() {
			t.Errorf("%s: ends with %d, want %d:\n%s\n%s", name, got, code, out, errs)
		}
	}
	stay := "1 of the hub's AddonSets and Teams, which the files do not have, stay"
	check("equal", set, 0, []string{"No changes on 2 clusters", stay}, nil)
	check("changed", strings.Replace(set, "<< vars.replicas >>", "3", 1), 1, []string{"all 2 clusters", "values.replicas: \"1\" → \"3\"", stay}, []string{"REMOVED"})
	check("pruned", set, 1, []string{"REMOVED kept"}, []string{stay}, "--prune")
	for _, a := range h.asked {
		if !strings.HasPrefix(a, "GET ") {
			t.Errorf("the command asked %s", a)
		}
	}
	out, errs, code := diffed(t, "--server", server, "--revision", "base-1", "--revision", "base-2")
	if code != 1 || !strings.Contains(out, "revision base-1 → revision base-2") || !strings.Contains(out, "→ \"2\"") && !strings.Contains(out, "→ 2") {
		t.Errorf("two revisions end with %d:\n%s\n%s", code, out, errs)
	}
	if _, errs, code = diffed(t, "--server", server, "--revision", "base-1", "--revision", "base-9"); code != 2 || !strings.Contains(errs, "there is no revision \"base-9\"") {
		t.Errorf("a revision that is not there ends with %d: %s", code, errs)
	}
}

// TestExportFleet: an export of the hub stands for the hub, its age is told, and it has no credentials.
func TestExportFleet(t *testing.T) {
	h, server := newStoredHub(t)
	root := clitest.Root(export.New(clitest.At(time.Time{}), nil))
	var out, errs strings.Builder
	root.SetArgs([]string{"export", "fleet", "--server", server})
	root.SetOut(&out)
	root.SetErr(&errs)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err, errs.String())
	}
	for _, secret := range []string{"hunter2", "aHVudGVyMg", "secretRef", "managedFields"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("the export has %q:\n%s", secret, out.String())
		}
	}
	h.objects = nil // nobody asks the hub from now on
	n := len(h.asked)
	dir := t.TempDir()
	clitest.Write(t, filepath.Join(dir, "fleet.yaml"), out.String())
	set := "apiVersion: chandler.dev/v1alpha1\nkind: AddonSet" + strings.Replace(liveSet, ", uid: base", "", 1)
	clitest.Write(t, filepath.Join(dir, "old", "set.yaml"), set)
	clitest.Write(t, filepath.Join(dir, "new", "set.yaml"), strings.Replace(set, "<< vars.replicas >>", "<< vars.replicas >><< cluster.version.minor >>", 1))
	args := []string{"-f", filepath.Join(dir, "new"), "--against", filepath.Join(dir, "old"), "--fleet", filepath.Join(dir, "fleet.yaml")}
	got, said, code := diffed(t, args...)
	for _, want := range []string{"The fleet was exported at ", "2 of 2 clusters change", `→ "133"`, "2 clusters"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if code != 1 || t.Failed() {
		t.Errorf("ends with %d:\n%s\n%s\nwith the export\n%s", code, got, said, out.String())
	}
	if len(h.asked) != n {
		t.Errorf("the hub was asked %v", h.asked[n:])
	}
	// A folder may have the export too.
	clitest.Write(t, filepath.Join(dir, "new", "fleet.yaml"), out.String())
	if _, said, code := diffed(t, args...); code != 1 || !strings.Contains(said, "is an export of a fleet (left out)") {
		t.Errorf("with the export among the files it ends with %d: %s", code, said)
	}
	must.Do(t, os.Remove(filepath.Join(dir, "fleet.yaml")))
	if _, said, code := diffed(t, args...); code != 2 || !strings.Contains(said, "no such file") {
		t.Errorf("without the export it ends with %d: %s", code, said)
	}
}

// TestDiffLiveRules: a kubeconfig that the hub would refuse is not used, by the rules that the hub publishes; if it publishes none, by those of
// a hub without flags.
func TestDiffLiveRules(t *testing.T) {
	h, server := newStoredHub(t)
	const one = "{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: a, namespace: fleet}, spec: {kubeConfig: {secretRef: {name: a}}}, " +
		"status: {clusterUID: u1, kubernetesVersion: v1.33.2, credential: {secretName: a, key: value}}}"
	kubeconfig := `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
  "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "users": [{"name": "c", "user": {"token": "hunter2"}}]}`
	h.objects["apis/chandler.dev/v1alpha1/clusterregistrations"] = "- " + one
	h.objects["apis/chandler.dev/v1alpha1/namespaces/fleet/clusterregistrations/a"] = one
	h.objects["api/v1/namespaces/fleet/secrets/a"] = "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: fleet}, data: {value: " +
		base64.StdEncoding.EncodeToString([]byte(kubeconfig)) + "}}"
	file := filepath.Join(t.TempDir(), "set.yaml")
	clitest.Write(t, file, "{apiVersion: chandler.dev/v1alpha1, kind: AddonSet, metadata: {name: added, namespace: flux-system}, spec: {selectAll: true, addons: "+
		"[{name: added, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}]}}")
	const at = "api/v1/namespaces/chandler-system/configmaps/chandler-hub"
	older, loopback := h.objects[at], []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	unknown := "by which rules the hub checks kubeconfigs is not known"
	for _, tc := range []struct {
		name        string
		rules       *rules.Rules
		want, never string
	}{
		{"Older", nil, unknown, "connection refused"},
		{"Strict", &rules.Rules{}, "(the hub's flag --allow-target-cidrs lifts this)", unknown},
		{"OneIsLifted", &rules.Rules{AllowedCIDRs: loopback}, "(the hub's flag --allow-missing-ca lifts this)", unknown},
		{"Lifted", &rules.Rules{AllowMissingCA: true, AllowedCIDRs: loopback},
			"the cluster is not asked: ", "lifts this"},
	} {
		h.objects[at] = older
		if tc.rules != nil {
			config := &hubconfig.Config{Shared: hubconfig.Shared{HubID: "chandler", PlatformNamespaces: []string{"flux-system"}}, Rules: *tc.rules}
			data := must.Get(json.Marshal(config.Published())).Or(t)
			h.objects[at] = "{apiVersion: v1, kind: ConfigMap, metadata: {name: chandler-hub, namespace: chandler-system}, data: " + string(data) + "}"
		}
		out, errs, code := diffed(t, "--server", server, "-f", file, "--live")
		if said := out + errs; code != 2 || !strings.Contains(said, tc.want) || strings.Contains(said, tc.never) || strings.Contains(said, "hunter2") {
			t.Errorf("%s: ends with %d, want 2, %q, and not %q:\n%s\n%s", tc.name, code, tc.want, tc.never, out, errs)
		}
	}
}
