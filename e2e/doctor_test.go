// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/doctor"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// sick is a management cluster on which things go wrong.
type sick struct {
	*hub
	t   *testing.T
	one *localfleet.Cluster
}

// TestDoctor makes one fault after the other on a real API server with a real hub and a real Flux, and wants `chandler doctor` to find it.
// What runs in pods elsewhere are processes here, so Deployments and pods are objects that the test writes, with their status.
func TestDoctor(t *testing.T) {
	beside(t)
	s := &sick{t: t, one: workload(t, "workload-a")}
	s.hub = startHub(t, hubOptions{name: "hub-doctor", flux: &localfleet.FluxOptions{NoCrossNamespaceRefs: true}, noHub: true})
	s.before(t)
	register(t, s.Client, "fleet", "one", s.one, map[string]string{"tier": "prod"})
	apply(t, s.Client, doctorSet("base", "tier: prod", "[{name: doc, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: doc}}]}}]"))

	s.install(t)
	check(t, s.ApplyPolicies(t.Context()))
	t.Run("Healthy", s.isWell)

	for _, tc := range slices.Concat(s.hubFaults(t), s.fluxFaults(t), s.rightFaults(t), s.fleetFaults(t), s.moreFaults(t), s.clockFaults(t)) {
		t.Run(tc.want[0][strings.LastIndex(tc.want[0], " ")+1:], func(t *testing.T) {
			mend := tc.fault(t)
			if tc.with != nil {
				tc.args = tc.with(t)
			}
			s.finds(t, tc.args, tc.want...)
			mend(t)
		})
	}
	t.Run("HubDoesNotLead", s.away)
	t.Run("NotChecked", s.notChecked)
	t.Run("NotReached", func(t *testing.T) {
		config := strings.ReplaceAll(string(s.config(t, "ann")), s.Server(), deadServer(t))
		file := filepath.Join(t.TempDir(), "config")
		check(t, os.WriteFile(file, []byte(config), 0o600))
		if _, errs, code := chandler(t, "doctor", "--kubeconfig", file); code != 2 || !strings.Contains(errs, "no hub at ") {
			t.Errorf("exit code %d, want 2: %s", code, errs)
		}
	})
	t.Run("HealthyAgain", s.isWell)
}

func doctorSet(name, labels, addons string) string {
	return fmt.Sprintf("apiVersion: chandler.dev/v1alpha1\nkind: AddonSet\nmetadata: {name: %s, namespace: flux-system}\nspec: {clusterSelector: {matchLabels: {%s}}, addons: %s}\n", name, labels, addons)
}

// deadServer is an address where nobody listens.
func deadServer(t *testing.T) string {
	port, err := localfleet.FreePort()
	check(t, err)
	return fmt.Sprintf("https://127.0.0.1:%d", port)
}

func (s *sick) config(t *testing.T, user string) []byte {
	raw, err := s.Kubeconfig(user)
	check(t, err)
	return raw
}

// found runs the command, and returns what it has found, each with its severity.
func (s *sick) found(t *testing.T, file string, args []string) (map[string]doctor.Finding, int, error) {
	out, errs, code := chandler(t, append([]string{"doctor", "--kubeconfig", file, "-o", "json"}, args...)...)
	var r doctor.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		return nil, code, fmt.Errorf("exit code %d: %w: %s", code, err, errs)
	}
	all := map[string]doctor.Finding{}
	for _, g := range r.Checks {
		for _, f := range g.Findings {
			all[string(f.Severity)+" "+f.Code] = f
		}
	}
	if want := min(r.Errors, 1); code != want {
		return nil, code, fmt.Errorf("exit code %d, want %d: %s", code, want, errs)
	}
	return all, code, nil
}

func (s *sick) finds(t *testing.T, args []string, want ...string) {
	t.Helper()
	soon(t, "the doctor finds "+strings.Join(want, ", "), func() error {
		all, _, err := s.found(t, s.KubeconfigFile(), args)
		if err != nil {
			return err
		}
		for _, w := range want {
			if _, ok := all[w]; !ok {
				return fmt.Errorf("it has found %+v", all)
			}
		}
		return nil
	})
}

func (s *sick) isWell(t *testing.T) {
	soon(t, "the doctor finds nothing", func() error {
		all, code, err := s.found(t, s.KubeconfigFile(), nil)
		if err == nil && (code != 0 || len(all) > 0) {
			err = fmt.Errorf("exit code %d, and it has found %+v", code, all)
		}
		return err
	})
	soon(t, "it says so", func() error {
		out, _, _ := chandler(t, "doctor", "--kubeconfig", s.KubeconfigFile())
		for _, want := range []string{"OK           Clusters: 1 of 1 cluster is Ready\n", "OK           Rights: ", "Nothing is wrong."} {
			if !strings.Contains(out, want) {
				return fmt.Errorf("it does not say %q:\n%s", want, out)
			}
		}
		return nil
	})
}

// deployment writes a Deployment whose pods seem to run.
func (s *sick) deployment(t *testing.T, d *appsv1.Deployment) *appsv1.Deployment {
	t.Helper()
	check(t, s.Client.Create(t.Context(), d))
	s.ready(t, d, *d.Spec.Replicas)
	return d
}

func (s *sick) ready(t *testing.T, d *appsv1.Deployment, n int32) {
	t.Helper()
	patch := fmt.Sprintf(`{"status":{"replicas":%d,"readyReplicas":%d,"observedGeneration":1}}`, max(n, *d.Spec.Replicas), n)
	check(t, s.Client.Status().Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(patch))))
}

var fluxImages = map[string]string{"source-controller": "v1.9.5", "kustomize-controller": "v1.9.6", "helm-controller": "v1.6.4"}

func fluxDeployment(name, component, version string, args ...string) *appsv1.Deployment {
	labels := map[string]string{"app": name, "app.kubernetes.io/part-of": "flux"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: name, Labels: labels}}
	d.Spec.Replicas, d.Spec.Selector = ptr.To[int32](1), &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Image: "ghcr.io/fluxcd/" + component + ":" + version, Args: append([]string{"--log-level=info"}, args...)}}
	return d
}

// install writes the Deployments that an installation has.
func (s *sick) install(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "config", "manager", "deployment.yaml"))
	check(t, err)
	d := &appsv1.Deployment{}
	check(t, yaml.Unmarshal(raw, d))
	s.deployment(t, d)
	for name, version := range fluxImages {
		s.deployment(t, fluxDeployment(name, name, version, "--no-cross-namespace-refs=true"))
	}
}

// malady is a fault that a test makes and mends.
type malady struct {
	want  []string
	args  []string
	with  func(*testing.T) []string // more arguments, of what is made when it is looked for
	fault func(*testing.T) func(*testing.T)
}

// made makes an object, and deletes it in the end.
func (s *sick) made(objects ...client.Object) func(*testing.T) func(*testing.T) {
	return func(t *testing.T) func(*testing.T) {
		for _, o := range objects {
			if o.GetNamespace() != "" {
				namespace(t, s.Client, o.GetNamespace())
			}
			check(t, s.Client.Create(t.Context(), o))
		}
		return func(t *testing.T) {
			for _, o := range objects {
				check(t, s.Client.Delete(t.Context(), o, client.GracePeriodSeconds(0)))
			}
		}
	}
}

// edited changes an object, and changes it back in the end.
func edited[O client.Object](s *sick, key string, o O, change func(O)) func(*testing.T) func(*testing.T) {
	return func(t *testing.T) func(*testing.T) {
		ns, name, ok := strings.Cut(key, "/")
		if !ok {
			ns, name = "", key
		}
		write := func(t *testing.T, change func(O)) O {
			var before O
			soon(t, key+" is changed", func() error {
				if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, o); err != nil {
					return err
				}
				before = o.DeepCopyObject().(O)
				change(o)
				return s.Client.Update(t.Context(), o)
			})
			return before
		}
		before := write(t, change)
		return func(t *testing.T) {
			write(t, func(o O) {
				version := o.GetResourceVersion()
				raw, err := json.Marshal(before)
				check(t, err)
				check(t, json.Unmarshal(raw, o))
				o.SetResourceVersion(version)
			})
		}
	}
}

func (s *sick) hubFaults(*testing.T) []malady {
	run := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "second", Name: "hub", Labels: map[string]string{"app.kubernetes.io/name": "chandler"}}}
	run.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "second"}}
	run.Spec.Template.Labels = run.Spec.Selector.MatchLabels
	run.Spec.Template.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "hub", Image: "chandler-hub"}}}
	second := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "second", Name: "chandler-hub"}}
	return []malady{
		{want: []string{"WARNING HubTwice"}, fault: s.made(run)},
		{want: []string{"WARNING HubTwiceOnce"}, fault: s.made(second)},
		{want: []string{"ERROR HubNotRunning"}, fault: edited(s, "chandler-system/chandler", &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](0) })},
		{want: []string{"WARNING HubPodsMissing"}, fault: edited(s, "chandler-system/chandler", &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](3) })},
		{want: []string{"WARNING HubRestarts"}, fault: func(t *testing.T) func(*testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "chandler-system", Name: "chandler-a", Labels: map[string]string{"app.kubernetes.io/name": "chandler"}},
				Spec: corev1.PodSpec{AutomountServiceAccountToken: ptr.To(false), ServiceAccountName: "chandler", Containers: []corev1.Container{{Name: "hub", Image: "chandler-hub"}}}}
			mend := s.made(pod)(t)
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "hub", RestartCount: 4, LastTerminationState: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137, FinishedAt: metav1.Now()}}}}
			check(t, s.Client.Status().Update(t.Context(), pod))
			return mend
		}},
		{want: []string{"ERROR CRDOlder"}, fault: edited(s, "teams.chandler.dev", &apiextensionsv1.CustomResourceDefinition{}, func(c *apiextensionsv1.CustomResourceDefinition) {
			spec := c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			delete(spec.Properties, "dependsOn")
			spec.XValidations = nil
			c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
		})},
		{want: []string{"WARNING CRDNewer"}, fault: edited(s, "teams.chandler.dev", &apiextensionsv1.CustomResourceDefinition{}, func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["tomorrow"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		})},
		{want: []string{"WARNING FluxCRDOlder"}, fault: edited(s, "buckets.source.toolkit.fluxcd.io", &apiextensionsv1.CustomResourceDefinition{}, func(c *apiextensionsv1.CustomResourceDefinition) {
			for i := range c.Spec.Versions {
				spec := c.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"]
				delete(spec.Properties, "prefix")
			}
		})},
	}
}

func (s *sick) fluxFaults(*testing.T) []malady {
	helm := func(change func(*corev1.Container)) func(*testing.T) func(*testing.T) {
		return edited(s, "flux-system/helm-controller", &appsv1.Deployment{}, func(d *appsv1.Deployment) { change(&d.Spec.Template.Spec.Containers[0]) })
	}
	arg := func(args ...string) func(*testing.T) func(*testing.T) {
		return helm(func(c *corev1.Container) { c.Args = append(c.Args, args...) })
	}
	busy := []client.Object{}
	for i := range 6 {
		busy = append(busy, &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "busy", Name: fmt.Sprintf("r%d", i)}, Spec: helmv2.HelmReleaseSpec{
			Suspend: true, Interval: metav1.Duration{Duration: time.Second}, ChartRef: &helmv2.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "none"}}})
	}
	more := fluxDeployment("helm-controller", "helm-controller", "v1.6.4", "--no-cross-namespace-refs=true")
	more.Namespace = "second"
	return []malady{
		{want: []string{"ERROR FluxTooOld"}, fault: helm(func(c *corev1.Container) { c.Image = "ghcr.io/fluxcd/helm-controller:v1.3.0" })},
		{want: []string{"WARNING FluxOlder"}, fault: helm(func(c *corev1.Container) { c.Image = "ghcr.io/fluxcd/helm-controller:v1.4.3" })},
		{want: []string{"NOT CHECKED FluxVersionUnknown"}, fault: helm(func(c *corev1.Container) {
			c.Image = "ghcr.io/fluxcd/helm-controller@sha256:" + strings.Repeat("0", 64)
		})},
		{want: []string{"WARNING FluxCrossNamespaceRefs"}, fault: helm(func(c *corev1.Container) { c.Args = nil })},
		{want: []string{"WARNING FluxDefaultServiceAccount"}, fault: arg("--default-service-account=default")},
		{want: []string{"ERROR FluxOneNamespace"}, fault: arg("--watch-all-namespaces=false")},
		{want: []string{"ERROR FluxShardNotServed", "WARNING FluxShardIdle"}, fault: arg("--watch-label-selector=sharding.fluxcd.io/key=shard1")},
		{want: []string{"ERROR FluxTwice"}, fault: func(t *testing.T) func(*testing.T) {
			namespace(t, s.Client, more.Namespace)
			s.deployment(t, more)
			return func(t *testing.T) { check(t, s.Client.Delete(t.Context(), more)) }
		}},
		{want: []string{"ERROR FluxNotRunning"}, fault: edited(s, "flux-system/source-controller", &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](0) })},
		{want: []string{"WARNING FluxTooFewWorkers"}, fault: s.made(busy...)},
		{want: []string{"ERROR SourceFails"}, fault: func(t *testing.T) func(*testing.T) {
			text := fmt.Sprintf("{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: gone, namespace: flux-system}, spec: {interval: 1m, timeout: 5s, url: %s/gone.git}}", deadServer(t))
			apply(t, s.Client, text)
			o := unstructuredList("source.toolkit.fluxcd.io/v1", "GitRepository")
			check(t, s.Client.List(t.Context(), o))
			return func(t *testing.T) { check(t, s.Client.Delete(t.Context(), &o.Items[0])) }
		}},
	}
}

func (s *sick) rightFaults(*testing.T) []malady {
	reads := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "doctor-reads"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}}}}
	bind := func(role, kind, namespace, name string) *rbacv1.ClusterRoleBinding {
		sub := rbacv1.Subject{Kind: kind, Namespace: namespace, Name: name}
		if kind != rbacv1.ServiceAccountKind {
			sub.APIGroup = rbacv1.GroupName
		}
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "doctor-" + strings.ToLower(kind)}, Subjects: []rbacv1.Subject{sub},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
	}
	inOne := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "doctor"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "ann", APIGroup: rbacv1.GroupName}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "doctor-reads"}}
	return []malady{
		{want: []string{"ERROR RightsMissing"}, fault: edited(s, "chandler-hub", &rbacv1.ClusterRole{}, func(r *rbacv1.ClusterRole) { // the hub asks for it when it starts
			r.Rules = slices.DeleteFunc(r.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "servicecidrs") })
		})},
		{want: []string{"WARNING RightsTooMany"}, fault: s.made(bind("cluster-admin", "ServiceAccount", "chandler-system", "chandler"))},
		{want: []string{"ERROR CopiesOpen"}, fault: s.made(reads.DeepCopy(), bind("doctor-reads", "Group", "", "system:authenticated"))},
		{want: []string{"WARNING CopiesReadable"}, fault: s.made(reads.DeepCopy(), inOne)},
		{want: []string{"WARNING PolicyDoesNotDeny"}, fault: edited(s, "chandler-copies", &admissionv1.ValidatingAdmissionPolicyBinding{}, func(b *admissionv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn}
		})},
		{want: []string{"WARNING PolicyDiffers"}, fault: edited(s, "chandler-teams", &admissionv1.ValidatingAdmissionPolicy{}, func(p *admissionv1.ValidatingAdmissionPolicy) {
			p.Spec.Validations = p.Spec.Validations[:1]
			p.Spec.Validations[0].Expression = "true"
		})},
		{want: []string{"ERROR PolicyForAnotherHub"}, fault: edited(s, "chandler-teams", &admissionv1.ValidatingAdmissionPolicy{}, func(p *admissionv1.ValidatingAdmissionPolicy) {
			p.Spec.Variables[0].Expression = "['system:serviceaccount:platform:hub']"
		})},
	}
}

// registered registers a cluster by a kubeconfig, and unregisters it in the end.
func (s *sick) registered(name string, config []byte) func(*testing.T) func(*testing.T) {
	return s.registeredIn("fleet", name, config)
}

func (s *sick) registeredIn(namespace, name string, config []byte) func(*testing.T) func(*testing.T) {
	return func(t *testing.T) func(*testing.T) {
		secret := registerBy(t, s.Client, namespace, name, config, nil)
		return func(t *testing.T) {
			check(t, s.Client.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"chandler.dev/register":"false"}}}`))))
			soon(t, "it is unregistered", func() error { return wantGone(t.Context(), s.Client, registration(namespace, name)) })
			check(t, s.Client.Delete(t.Context(), secret))
		}
	}
}

// applied applies a set, with what else the text has, and deletes the set in the end.
func (s *sick) applied(name, text string) func(*testing.T) func(*testing.T) {
	return func(t *testing.T) func(*testing.T) {
		apply(t, s.Client, text)
		return func(t *testing.T) { check(t, s.Client.Delete(t.Context(), addonSet("flux-system", name))) }
	}
}

func (s *sick) fleetFaults(t *testing.T) []malady {
	good := kubeconfigOf(t, s.one)
	dead := []byte(strings.ReplaceAll(string(good), s.one.Server(), deadServer(t)))
	day, err := s.one.TokenKubeconfig(t.Context(), "doctor")
	check(t, err)
	t.Cleanup(func() { _ = s.one.Revoke(context.WithoutCancel(t.Context()), "doctor") })
	past := func(patch string) func(*testing.T) func(*testing.T) {
		return func(t *testing.T) func(*testing.T) {
			write := func(t *testing.T, text string) {
				check(t, s.Client.Patch(t.Context(), registration("fleet", "one"), client.RawPatch(types.MergePatchType, []byte(text))))
			}
			write(t, patch)
			return func(t *testing.T) { write(t, `{"spec":{"overrides":null,"pause":null}}`) }
		}
	}
	return []malady{
		{want: []string{"ERROR ClusterUnreachable"}, fault: s.registered("dead", dead)},
		{want: []string{"ERROR KubeConfigInvalid"}, fault: s.registered("garbled", []byte("nonsense"))},
		{want: []string{"ERROR KubeConfigInvalid", "WARNING FluxSharedByTenants"}, fault: s.registeredIn("flux-system", "platform", []byte("nonsense"))},
		{want: []string{"WARNING ClusterDuplicate"}, fault: s.registered("again", good)},
		{want: []string{"WARNING CredentialExpires"}, fault: s.registered("day", day)},
		{want: []string{"WARNING FluxObjectsLeft"}, fault: func(t *testing.T) func(*testing.T) {
			left := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "left",
				Labels: map[string]string{hubv1.ClusterKeyLabel: "gone"}, Annotations: map[string]string{hubv1.DeliveryAnnotation: "gone"}}}
			left.Spec = kustomizev1.KustomizationSpec{Suspend: true, Interval: metav1.Duration{Duration: time.Hour},
				SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "gone"}}
			rescue := rest.CopyConfig(s.Config)
			rescue.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{"system:masters", breakGlass}}
			glass, err := client.New(rescue, client.Options{Scheme: scheme})
			check(t, err)
			check(t, glass.Create(t.Context(), left))
			return func(t *testing.T) { check(t, glass.Delete(t.Context(), left)) }
		}},
		{want: []string{"WARNING SetMatchesNothing"}, fault: s.applied("nothing", doctorSet("nothing", "tier: none", "[{name: doc2, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: doc2}}]}}]"))},
		{want: []string{"WARNING ClusterUnderWay"}, fault: s.applied("underway", doctorSet("underway", "tier: prod", s.waits("doc7")))},
		{want: []string{"WARNING SetDeliversNothing"}, fault: s.applied("lost", doctorSet("lost", "tier: prod", "[{name: doc, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: doc8}}]}}]"))},
		{want: []string{"ERROR SetStalled"}, fault: s.applied("stalled", doctorSet("stalled", "tier: prod", "[{name: doc3, helmRelease: {chrat: {}}}]"))},
		{want: []string{"WARNING OverrideOver"}, fault: past(`{"spec":{"overrides":[{"name":"doc","exclude":true,"until":"2020-01-01T00:00:00Z"}]}}`)},
		{want: []string{"WARNING OverrideRefused"}, fault: past(`{"spec":{"overrides":[{"name":"doc","exclude":true}]}}`)},
		{want: []string{"WARNING PauseOver"}, fault: past(`{"spec":{"pause":{"until":"2020-01-01T00:00:00Z"}}}`)},
	}
}

// notChecked: what somebody may not read is not wrong, and not right either.
func (s *sick) notChecked(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "doctor-some"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"chandler.dev"}, Resources: []string{"*"}, Verbs: []string{"list"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "doctor-some"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "ann", APIGroup: rbacv1.GroupName}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "doctor-some"}}
	mend := s.made(role, binding)(t)
	defer mend(t)
	file := filepath.Join(t.TempDir(), "config")
	check(t, os.WriteFile(file, s.config(t, "ann"), 0o600))
	soon(t, "most is not checked", func() error {
		out, errs, code := chandler(t, "doctor", "--kubeconfig", file)
		for _, want := range []string{"NOT CHECKED  Hub", "NOT CHECKED  CRDs", "NOT CHECKED  Policies", "NOT CHECKED  Rights", "NOT CHECKED  Flux", "NOT CHECKED  Sources",
			"NOT CHECKED  Copies", "OK           Clusters: 1 of 1 cluster is Ready"} {
			if code != 0 || !strings.Contains(out, want) {
				return fmt.Errorf("exit code %d, want 0 and %q: %s\n%s", code, want, errs, out)
			}
		}
		return nil
	})
}
