// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

var chart = filepath.Join("..", "charts", "chandler")

// kustomize builds a folder.
func kustomize(t *testing.T, dir string) string {
	t.Helper()
	return part(t, parts.Kustomize, nil, "build", dir)
}

// helm runs Helm against a cluster, nil for none.
func helm(t *testing.T, c *localfleet.Cluster, args ...string) string {
	t.Helper()
	home := filepath.Join(workDir, "helm")
	env := []string{"HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home, "KUBECONFIG="}
	if c != nil {
		env = append(env, "KUBECONFIG="+c.KubeconfigFile())
	}
	return part(t, parts.Helm, env, args...)
}

// part runs a program to its end, and returns what it printed.
func part(t *testing.T, name string, env []string, args ...string) string {
	t.Helper()
	path, err := parts.Path(name)
	check(t, err)
	cmd := exec.CommandContext(t.Context(), path, args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String()
}

// TestRenderings holds the chart to config/: they make the same objects.
func TestRenderings(t *testing.T) {
	beside(t)
	overlay := filepath.Join(t.TempDir(), "everything")
	check(t, os.Mkdir(overlay, 0o700))
	config, err := filepath.Abs(filepath.Join("..", "config"))
	check(t, err)
	// By a relative path, which is the only one that kustomize takes.
	config, err = filepath.Rel(realpath(t, overlay), realpath(t, config))
	check(t, err)
	text := fmt.Sprintf("resources: [%[1]s/default]\ncomponents: [%[1]s/prometheus]\n", config)
	check(t, os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o600))
	template := []string{"template", "chandler", chart, "--namespace", hubNamespace}
	for name, tc := range map[string]struct{ kustomize, helm string }{
		"default": {
			kustomize: kustomize(t, filepath.Join("..", "config", "default")),
			helm:      helm(t, nil, template...),
		},
		"everything": {
			kustomize: kustomize(t, overlay),
			helm:      helm(t, nil, append(template, "--set", "serviceMonitor.enabled=true")...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := normalized(t, tc.kustomize)
			delete(want, "Namespace "+hubNamespace) // Helm makes it, or the person who installs
			if d := cmp.Diff(want, normalized(t, tc.helm)); d != "" {
				t.Errorf("-kustomize +chart:\n%s", d)
			}
		})
	}
}

func realpath(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	check(t, err)
	return path
}

// normalized returns the objects by kind and name, without what says only who installed them.
func normalized(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, u := range objects(t, text) {
		labels, annotations := u.GetLabels(), u.GetAnnotations()
		for _, l := range []string{"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"} {
			delete(labels, l)
		}
		delete(annotations, "helm.sh/resource-policy")
		u.SetLabels(labels)
		u.SetAnnotations(annotations)
		for field, left := range map[string]int{"labels": len(labels), "annotations": len(annotations)} {
			if left == 0 {
				unstructured.RemoveNestedField(u.Object, "metadata", field)
			}
		}
		out[u.GetKind()+" "+u.GetName()] = u.Object
	}
	return out
}

// objects decodes some YAML.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		raw := runtime.RawExtension{}
		if err := d.Decode(&raw); err != nil {
			if err.Error() == "EOF" {
				return out
			}
			t.Fatal(err)
		}
		if len(raw.Raw) == 0 || string(raw.Raw) == "null" {
			continue
		}
		u := &unstructured.Unstructured{}
		check(t, u.UnmarshalJSON(raw.Raw))
		out = append(out, u)
	}
}

// TestInstallRenderings holds `chandler install --export` to config/ and to the chart.
func TestInstallRenderings(t *testing.T) {
	beside(t)
	for name, tc := range map[string]struct {
		want string
		args []string
	}{
		"config/default": {kustomize(t, filepath.Join("..", "config", "default")), []string{"--image=chandler-hub:v0.1.0"}},
		"the chart": {
			helm(t, nil, "template", "chandler", chart, "--namespace", "platform", "--set",
				"image.repository=example.org/hub,image.tag=v1,replicas=3,fluxNamespace=flux,hubID=eu,platformNamespaces={a,platform},extraArgs={--probe-interval=30s}"),
			[]string{"--image=example.org/hub:v1", "--replicas=3", "--flux-namespace=flux", "--namespace=platform", "--", "--hub-id=eu", "--platform-namespaces=a,platform", "--probe-interval=30s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := chandler(t, append([]string{"install", "--export"}, tc.args...)...)
			if code != 0 {
				t.Fatal(errs)
			}
			want, got := normalized(t, tc.want), normalized(t, out)
			if name != "config/default" {
				delete(got, "Namespace platform") // Helm makes none
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-%s +chandler install:\n%s", name, d)
			}
		})
	}
}

// TestChartValues: what the values say is what the Deployment has, and a wrong one is refused.
func TestChartValues(t *testing.T) {
	beside(t)
	template := []string{"template", "hubs", chart, "--namespace", "platform", "--set"}
	made := normalized(t, helm(t, nil, append(template,
		`name=eu,image.repository=example.org/hub,image.digest=sha256:`+strings.Repeat("0", 64)+`,hubID=eu,platformNamespaces={a,b},secretNamespaces={*},`+
			`registerAll={kamaji,capi},extraArgs={--probe-interval=30s},fluxNamespace=flux,policies.origins=false,podDisruptionBudget.enabled=false,networkPolicy.enabled=false`)...))
	container := first(t, made["Deployment eu"], "spec", "template", "spec", "containers")
	want := []any{
		"--flux-namespace=flux", "--chart-url=http://eu.platform.svc", "--hub-id=eu", "--platform-namespaces=a,b", "--secret-namespaces=*", "--register-all=kamaji,capi", "--probe-interval=30s",
	}
	if d := cmp.Diff(want, container["args"]); d != "" {
		t.Errorf("args: -want +got:\n%s", d)
	}
	if want := "example.org/hub@sha256:" + strings.Repeat("0", 64); container["image"] != want {
		t.Errorf("image %v, want %s", container["image"], want)
	}
	for _, kind := range []string{"PodDisruptionBudget eu", "NetworkPolicy eu"} {
		if made[kind] != nil {
			t.Errorf("%s is there", kind)
		}
	}
	for name, binding := range map[string]string{"ClusterRoleBinding eu-hub": "", "RoleBinding eu-hub": "kube-system"} {
		o := &unstructured.Unstructured{Object: made[name]}
		subject := first(t, o.Object, "subjects")
		if o.GetNamespace() != binding || subject["namespace"] != "platform" || subject["name"] != "eu" {
			t.Errorf("%s in %q binds %v", name, o.GetNamespace(), subject)
		}
		role, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
		if kind := strings.TrimSuffix(name, "Binding eu-hub"); made[kind+" "+role] == nil {
			t.Errorf("%s binds %s, which is not there", name, role)
		}
	}
	policy := fmt.Sprint(made["ValidatingAdmissionPolicy chandler-generated"])
	for _, want := range []string{"['system:serviceaccount:platform:eu']", "['system:serviceaccounts:flux']"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy for generated objects does not say %s", want)
		}
	}
	for name, namespace := range map[string]string{"of-hub": "platform", "of-flux": "flux-system", "a": "a", "b": "b"} {
		binding := &unstructured.Unstructured{Object: made["ValidatingAdmissionPolicyBinding chandler-teams-"+name]}
		if got, _, _ := unstructured.NestedString(binding.Object, "spec", "paramRef", "namespace"); got != namespace {
			t.Errorf("a policy has the Teams of %q, want %q", got, namespace)
		}
	}
	if made["ValidatingAdmissionPolicy chandler-origins"] != nil || made["ValidatingAdmissionPolicyBinding chandler-origins"] != nil {
		t.Error("the policy for origins is there, which was turned off")
	}
	for kind := range normalized(t, helm(t, nil, append(template, "policies.enabled=false")...)) {
		if strings.HasPrefix(kind, "ValidatingAdmission") {
			t.Errorf("%s is there, and all are turned off", kind)
		}
	}
	for value, want := range map[string]string{
		"replicas=two":           "replicas",
		"registerAll={gardener}": "registerAll",
		"platformNamespace=a":    "platformNamespace",
		"extraArgs={probe}":      "extraArgs",
		"image.repository=":      "image",
	} {
		if err := refused(t, append(slices.Clone(template), value)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestChartRules: the chart puts the rules into the file that the hub reads, and another rule is another pod.
func TestChartRules(t *testing.T) {
	beside(t)
	with := func(names string) (deployment, file map[string]any) {
		t.Helper()
		made := normalized(t, helm(t, nil, "template", "chandler", chart, "--namespace", "platform", "--set", "image.repository=example.org/hub,podAnnotations.team=a", "--set-json",
			`registrationRules=[{"name":"vcluster","match":{"kind":"Secret","namespaces":["team-*"],"names":"`+names+`"},"register":{"name":"*","key":"config"}}]`))
		return made["Deployment chandler"], made["ConfigMap chandler-registration-rules"]
	}
	deployment, file := with("vc-*")
	raw, _, _ := unstructured.NestedString(file, "data", "rules.yaml")
	rules, err := origin.ParseRules("rules.yaml", []byte(raw))
	check(t, err)
	want := []origin.Rule{{Name: "vcluster", Match: origin.RuleMatch{Kind: "Secret", Namespaces: []string{"team-*"}, Names: "vc-*"}, Register: origin.RuleRegister{Name: "*", Key: "config"}}}
	if d := cmp.Diff(want, rules); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	container := first(t, deployment, "spec", "template", "spec", "containers")
	mount, volume := first(t, container, "volumeMounts"), first(t, deployment, "spec", "template", "spec", "volumes")
	if args := fmt.Sprint(container["args"]); args != fmt.Sprintf("[--registration-rules=%s/rules.yaml]", mount["mountPath"]) || mount["name"] != volume["name"] {
		t.Errorf("args %s, mount %v, volume %v", args, mount, volume)
	}
	annotations := func(d map[string]any) map[string]string {
		m, _, _ := unstructured.NestedStringMap(d, "spec", "template", "metadata", "annotations")
		return m
	}
	other, _ := with("k3k-*")
	if a, b := annotations(deployment)["checksum/registration-rules"], annotations(other)["checksum/registration-rules"]; a == "" || a == b || annotations(other)["team"] != "a" {
		t.Errorf("the annotations are %v, and with another rule %v", annotations(deployment), annotations(other))
	}
	if without := normalized(t, helm(t, nil, "template", "chandler", chart, "--set", "image.repository=example.org/hub")); without["ConfigMap chandler-registration-rules"] != nil {
		t.Error("there is a ConfigMap without rules")
	}
	if err := refused(t, "template", "chandler", chart, "--set", "image.repository=example.org/hub", "--set-json", `registrationRules=[{"match":{}}]`); err == nil || !strings.Contains(err.Error(), "registrationRules") {
		t.Errorf("without a name: %v", err)
	}
}

func first(t *testing.T, object map[string]any, path ...string) map[string]any {
	t.Helper()
	list, _, err := unstructured.NestedSlice(object, path...)
	if err != nil || len(list) == 0 {
		t.Fatalf("no %s in %v", strings.Join(path, "."), object)
	}
	return list[0].(map[string]any)
}

// refused runs Helm and returns its error.
func refused(t *testing.T, args ...string) error {
	t.Helper()
	path, err := parts.Path(parts.Helm)
	check(t, err)
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	if err == nil {
		return nil
	}
	return errors.New(string(out))
}
