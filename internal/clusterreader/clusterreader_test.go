// SPDX-License-Identifier: Apache-2.0

package clusterreader_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/clusterreader"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/explain"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/must"
	"github.com/chandler-hub/chandler/internal/render"
)

// apiServer answers with objects by their paths, and notes what it was asked.
type apiServer struct {
	mu        sync.Mutex
	kinds     map[string]map[string]string // by group/version, the kinds by resource
	objects   map[string]any               // by path; a list by that of its collection
	forbidden []string                     // paths
	asked     []string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimSuffix(r.URL.Path, "/")
	line := r.Method + " " + path
	if r.URL.Query().Get("labelSelector") != "" {
		line += "?" + r.URL.Query().Get("labelSelector")
	}
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		line += " metadata"
	}
	s.asked = append(s.asked, line)
	w.Header().Set("Content-Type", "application/json")
	if answer := s.discovery(path); answer != nil {
		_ = json.NewEncoder(w).Encode(answer)
		return
	}
	for _, f := range s.forbidden {
		if f == path {
			fail(w, http.StatusForbidden, metav1.StatusReasonForbidden)
			return
		}
	}
	if o, ok := s.objects[path]; ok {
		_ = json.NewEncoder(w).Encode(o)
		return
	}
	last := path[strings.LastIndex(path, "/")+1:]
	for gv, kinds := range s.kinds {
		if kind := kinds[last]; kind != "" {
			_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": gv, "kind": kind + "List", "items": []any{}})
			return
		}
	}
	fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: reason, Code: int32(code), Message: "refused here"}) //nolint:gosec // 403 and 404
}

func (s *apiServer) discovery(path string) any {
	switch path {
	case "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case "/apis":
		groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
		for gv := range s.kinds {
			if group, version, ok := strings.Cut(gv, "/"); ok {
				v := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version}
				groups.Groups = append(groups.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
			}
		}
		return groups
	}
	gv := strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/")
	kinds, ok := s.kinds[gv]
	if !ok {
		return nil
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: gv}
	for resource, kind := range kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource, Kind: kind, Namespaced: true})
	}
	return list
}

const hub = "chandler.dev/v1alpha1"

func newServer() *apiServer {
	return &apiServer{
		kinds: map[string]map[string]string{
			"v1":                             {"configmaps": "ConfigMap", "secrets": "Secret"},
			"apps/v1":                        {"controllerrevisions": "ControllerRevision"},
			hub:                              {"clusterregistrations": "ClusterRegistration", "teams": "Team", "addonsets": "AddonSet", "addondeliveries": "AddonDelivery"},
			"helm.toolkit.fluxcd.io/v2":      {"helmreleases": "HelmRelease"},
			"kamaji.clastix.io/v1alpha9":     {"tenantcontrolplanes": "TenantControlPlane"},
			"kustomize.toolkit.fluxcd.io/v1": {"kustomizations": "Kustomization"},
		},
		objects: map[string]any{},
	}
}

func (s *apiServer) reader(t *testing.T) *live.Reader {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c := must.Get(client.New(&rest.Config{Host: server.URL, QPS: -1}, client.Options{Scheme: hubscheme.New()})).Or(t)
	return &live.Reader{Client: c, Hub: hubconfig.Shared{
		HubID: "chandler", PlatformNamespaces: []string{"chandler-system"}, Chart: render.ManifestChart{URL: "http://chandler", Name: "m", Digest: "sha256:0"},
	}}
}

// put stores an object at its path.
func (s *apiServer) put(t *testing.T, path, text string) {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	s.objects[path] = o
}

// list stores objects at the path of their collection.
func (s *apiServer) list(t *testing.T, path, kind string, texts ...string) {
	t.Helper()
	parts := strings.Split(path, "/") // /apis/group/version/…
	list := map[string]any{"apiVersion": parts[2] + "/" + parts[3], "kind": kind + "List"}
	var items []any
	for _, text := range texts {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		items = append(items, o)
	}
	list["items"] = items
	s.objects[path] = list
}

func registration(name, namespace string) string {
	return `{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, metadata: {name: ` + name + `, namespace: ` + namespace + `}}`
}

const word = "hunter2-the-password"

// fleet is a hub with a cluster from a Secret, and one set that reads a ConfigMap and a Secret.
func fleet(t *testing.T) (*apiServer, *hubv1.ClusterRegistration) {
	t.Helper()
	s := newServer()
	key := identity.ClusterKey("chandler", types.NamespacedName{Namespace: "tenants", Name: "a"})
	spec := &hubv1.AddonSetSpec{}
	if err := yaml.Unmarshal([]byte(`
  variablesFrom: [{configMap: fleet}]
  addons:
  - name: objects
    manifests:
      objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: region}, data: {region: "<< vars.region >>"}}]
      manifestsFrom: [{kind: Secret, name: extra}]`), spec); err != nil {
		t.Fatal(err)
	}
	raw, hash, err := compile.Snapshot(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	revision := identity.Revision("base", hash, render.Epoch)
	s.list(t, "/apis/"+hub+"/addonsets", "AddonSet", `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: base, namespace: chandler-system, uid: base}
spec:
  selectAll: true
  variablesFrom: [{configMap: fleet}]
  addons:
  - name: objects
    manifests:
      objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: region}, data: {region: "<< vars.region >>"}}]
      manifestsFrom: [{kind: Secret, name: extra}]`)
	s.list(t, "/apis/"+hub+"/addondeliveries", "AddonDelivery", `
apiVersion: chandler.dev/v1alpha1
kind: AddonDelivery
metadata: {name: `+identity.Delivery("base", types.NamespacedName{Namespace: "tenants", Name: "a"})+`, namespace: chandler-system, labels: {chandler.dev/cluster-key: `+key+`}}
spec: {registrationRef: {namespace: tenants, name: a}, addonSetRef: {name: base, uid: base}, revisionName: `+revision+`}
status: {addons: [{name: objects, kind: HelmRelease, object: a-objects, state: Ready, appliedGeneration: 1}]}`, `
apiVersion: chandler.dev/v1alpha1
kind: AddonDelivery
metadata: {name: other, namespace: chandler-system, labels: {chandler.dev/cluster-key: another}}
spec: {registrationRef: {namespace: elsewhere, name: a}, addonSetRef: {name: base, uid: base}, revisionName: `+revision+`}`)
	s.put(t, "/apis/apps/v1/namespaces/chandler-system/controllerrevisions/"+revision, `
apiVersion: apps/v1
kind: ControllerRevision
metadata: {name: `+revision+`, namespace: chandler-system, ownerReferences: [{apiVersion: chandler.dev/v1alpha1, kind: AddonSet, name: base, uid: base, controller: true}]}
data: `+string(raw))
	s.put(t, "/api/v1/namespaces/chandler-system/configmaps/fleet", `{apiVersion: v1, kind: ConfigMap, metadata: {name: fleet, namespace: chandler-system}, data: {region: eu-west}}`)
	s.put(t, "/api/v1/namespaces/chandler-system/secrets/extra", `{apiVersion: v1, kind: Secret, metadata: {name: extra, namespace: chandler-system}, data: {objects.yaml: aHVudGVyMi10aGUtcGFzc3dvcmQ=}}`)
	s.put(t, "/api/v1/namespaces/tenants/secrets/a", `{apiVersion: meta.k8s.io/v1, kind: PartialObjectMetadata, metadata: {name: a, namespace: tenants, annotations: {
  kubectl.kubernetes.io/last-applied-configuration: `+word+`}}}`)
	s.list(t, "/apis/helm.toolkit.fluxcd.io/v2/helmreleases", "HelmRelease", `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: a-objects, namespace: chandler-system, labels: {chandler.dev/cluster-key: `+key+`, chandler.dev/addon: objects}}
spec: {interval: 10m}`)
	reg := &hubv1.ClusterRegistration{}
	must.Do(t, yaml.Unmarshal([]byte(registration("a", "tenants")), reg))
	reg.Spec.OriginRef = &hubv1.OriginReference{Kind: "Secret", Name: "a"}
	return s, reg
}

// explained reads a cluster and prints both reports.
func explained(t *testing.T, s *apiServer, reg *hubv1.ClusterRegistration) string {
	t.Helper()
	var out bytes.Buffer
	in := must.Get(clusterreader.Read(t.Context(), s.reader(t), reg, "", time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))).Or(t)
	must.Do(t, explain.Cluster(in).Print(&out))
	r, err := explain.Addon(in, "objects")
	if err != nil {
		return out.String() + err.Error()
	}
	must.Do(t, r.Print(&out))
	return out.String()
}

func holds(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("there is no %q in:\n%s", p, text)
		}
	}
}

func TestRead(t *testing.T) {
	s, reg := fleet(t)
	out := explained(t, s, reg)
	holds(t, out, "Origin:      Secret tenants/a\n", "objects   chandler-system/base   Ready", `"key":"objects.yaml"`, "eu-west", `ConfigMap "fleet"`, "Object:    HelmRelease chandler-system/a-objects\n")
	for _, secret := range []string{word, "hunter2", "aHVudGVy", "Note:"} {
		if strings.Contains(out, secret) {
			t.Errorf("there is %q in:\n%s", secret, out)
		}
	}
	asked := strings.Join(s.asked, "\n")
	holds(t, asked, "GET /api/v1/namespaces/tenants/secrets/a metadata", "GET /apis/"+hub+"/addondeliveries?chandler.dev/cluster=a")
	for _, line := range s.asked {
		if !strings.HasPrefix(line, "GET ") {
			t.Errorf("%s is no read", line)
		}
	}
}

func TestReadAnotherHubs(t *testing.T) {
	s, reg := fleet(t)
	r := s.reader(t)
	r.Hub.HubID = "another"
	in := must.Get(clusterreader.Read(t.Context(), r, reg, "", time.Now())).Or(t)
	holds(t, strings.Join(in.Notes, "\n"), `are those of a hub with another id than "another"`)
}

// TestReadLittle explains as much as the caller may read.
func TestReadLittle(t *testing.T) {
	s, reg := fleet(t)
	reg.Spec.OriginRef = &hubv1.OriginReference{APIGroup: "cluster.x-k8s.io", Kind: "Cluster", Name: "a"}
	sets, deliveries := s.objects["/apis/"+hub+"/addonsets"], s.objects["/apis/"+hub+"/addondeliveries"]
	s.objects["/apis/"+hub+"/namespaces/chandler-system/addonsets"] = sets
	s.objects["/apis/"+hub+"/namespaces/chandler-system/addondeliveries"] = deliveries
	s.forbidden = []string{
		"/apis/" + hub + "/addonsets", "/apis/" + hub + "/addondeliveries", "/apis/" + hub + "/namespaces/tenants/addonsets",
		"/apis/helm.toolkit.fluxcd.io/v2/helmreleases", "/apis/helm.toolkit.fluxcd.io/v2/namespaces/chandler-system/helmreleases",
		"/api/v1/namespaces/chandler-system/secrets/extra",
	}
	delete(s.kinds, "kustomize.toolkit.fluxcd.io/v1")
	out := explained(t, s, reg)
	holds(t, out, "Cluster tenants/a, whose kind is not installed", "objects   chandler-system/base   Ready", "Note: this API server has no Kustomizations",
		"Note: you may not list the AddonSets in namespace tenants, so nothing is said about them", "a-objects, which could not be read",
		"ERRORS\nyou may not read Secret chandler-system/extra, which the set refers to")
}

// TestReadOrigin reads an origin in the version that the API server has.
func TestReadOrigin(t *testing.T) {
	s, reg := fleet(t)
	reg.Spec.OriginRef = &hubv1.OriginReference{APIGroup: "kamaji.clastix.io", Kind: "TenantControlPlane", Name: "a"}
	path := "/apis/kamaji.clastix.io/v1alpha9/namespaces/tenants/tenantcontrolplanes/a"
	holds(t, explained(t, s, reg), "TenantControlPlane tenants/a, which does not exist")
	s.put(t, path, `{apiVersion: kamaji.clastix.io/v1alpha9, kind: TenantControlPlane, metadata: {name: a, namespace: tenants}}`)
	holds(t, explained(t, s, reg), "TenantControlPlane tenants/a\n")
	s.forbidden = []string{path}
	holds(t, explained(t, s, reg), "TenantControlPlane tenants/a, which you may not read")
}

func TestReadFails(t *testing.T) {
	s, reg := fleet(t)
	s.put(t, "/apis/"+hub+"/addonsets", `{apiVersion: v1, kind: Nothing}`)
	if _, err := clusterreader.Read(t.Context(), s.reader(t), reg, "", time.Now()); err == nil || !strings.Contains(err.Error(), "list the AddonSets") {
		t.Error(err)
	}
}
