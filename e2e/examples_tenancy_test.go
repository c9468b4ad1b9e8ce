// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// tenancy is the fleet of the examples about teams: two clusters whose pods seem to run.
type tenancy struct {
	*exampleFleet
	clusters map[string]*localfleet.Cluster
}

// TestTenancyExamples runs examples/hub-spoke, examples/multi-tenancy and examples/team-isolation, one after the other on the same
// clusters.
func TestTenancyExamples(t *testing.T) {
	expect.AtNight(t, "TestFolders and TestTeams of examples; TestTeams, TestTrust and TestPolicies here")
	beside(t)
	f := &tenancy{clusters: clustersWithNodes(t, "staging", "production"), exampleFleet: startExamples(t, "hub-tenancy")}
	for name, c := range f.clusters {
		f.connect(t, name, c)
	}
	step(t, "hub-spoke", f.hubSpoke)
	step(t, "multi-tenancy", f.multiTenancy)
	step(t, "team-isolation", f.teamIsolation)
}

// each runs something for both clusters.
func (f *tenancy) each(do func(env string, c *localfleet.Cluster) error) error {
	var errs []error
	for env, c := range f.clusters {
		if err := do(env, c); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", env, err))
		}
	}
	return errors.Join(errs...)
}

// as returns a client with the credential that a team finds in its namespace on the hub for a cluster.
func (f *tenancy) as(t *testing.T, team, cluster string) client.Client {
	t.Helper()
	list := &corev1.SecretList{}
	check(t, f.Client.List(t.Context(), list, client.InNamespace(team), client.HasLabels{hubv1.CopyLabel}, client.MatchingLabels{hubv1.ClusterLabel: cluster}))
	if len(list.Items) != 1 {
		t.Fatalf("team %s has %d kubeconfigs for %s", team, len(list.Items), cluster)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(list.Items[0].Data["value"])
	check(t, err)
	c, err := client.New(config, client.Options{Scheme: scheme})
	check(t, err)
	return c
}

// runs wants a Deployment to have replicas that are available, as far as kwok says.
func runs(ctx context.Context, c *localfleet.Cluster, namespace, name string, replicas int32) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	if err := c.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, d); err != nil {
		return nil, err
	}
	if *d.Spec.Replicas != replicas || d.Status.AvailableReplicas != replicas {
		return nil, fmt.Errorf("%d of %d replicas of %s are available, and %d are to be", d.Status.AvailableReplicas, *d.Spec.Replicas, name, replicas)
	}
	return d, nil
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// hubSpoke runs the first half of examples/hub-spoke. The other half, a cluster with its own Flux, is in TestFleetExamples.
func (f *tenancy) hubSpoke(t *testing.T) {
	ctx := t.Context()
	f.push(t, "hub-spoke/git/fleet", "platform/fleet", "main")
	f.apply(t, "hub-spoke/hub", "clusters.yaml", "apps.yaml")
	soon(t, "controllers, their resources and the application are Ready", func() error {
		return f.delivered(ctx, "flux-system", "apps", "staging", "production")
	})
	template := object("flagger.app/v1beta1", "MetricTemplate", "flagger", "success")
	check(t, f.each(func(env string, c *localfleet.Cluster) error {
		_, flagger := runs(ctx, c, "flagger", "flagger", 1)
		d, err := runs(ctx, c, "podinfo", "podinfo", 1)
		if err != nil {
			return errors.Join(err, flagger)
		}
		level := map[string]string{"staging": "--level=info", "production": "--level=warn"}[env]
		if one := d.Spec.Template.Spec.Containers[0]; !slices.Contains(one.Command, level) || !slices.Contains(one.Env, corev1.EnvVar{Name: "PODINFO_UI_MESSAGE", Value: env}) {
			err = fmt.Errorf("podinfo runs as %v with %v", one.Command, one.Env)
		}
		return errors.Join(err, flagger, c.Client.Get(ctx, client.ObjectKeyFromObject(template), template.DeepCopy()))
	}))
	f.drop(t, addonSet("flux-system", "apps"))
	check(t, f.each(func(_ string, c *localfleet.Cluster) error {
		return errors.Join(wantGone(ctx, c.Client, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "podinfo", Name: "podinfo"}}),
			wantGone(ctx, c.Client, template.DeepCopy()), wantGone(ctx, c.Client, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "flagger", Name: "flagger"}}))
	}))
}

func (f *tenancy) multiTenancy(t *testing.T) {
	ctx := t.Context()
	f.push(t, "multi-tenancy/git/fleet", "platform/fleet", "main")
	f.push(t, "multi-tenancy/git/apps", "dev-team/apps", "main")
	f.git.Protect("dev-team/apps", "flux", "of the team")
	f.apply(t, "multi-tenancy/hub", "clusters.yaml", "infrastructure.yaml", "teams.yaml")
	check(t, f.Client.Create(ctx, secret("dev-team", "dev-team-git", map[string][]byte{"username": []byte("flux"), "password": []byte("of the team")})))
	f.apply(t, "multi-tenancy/dev-team", "apps.yaml")

	soon(t, "the team comes to both clusters, after the policies", func() error {
		return f.each(func(_ string, c *localfleet.Cluster) error {
			if err := c.Client.Get(ctx, types.NamespacedName{Name: "apps"}, &corev1.Namespace{}); err != nil {
				return err
			}
			if err := c.Client.Get(ctx, types.NamespacedName{Name: "image-tags"}, object("kyverno.io/v1", "ClusterPolicy", "", "")); err != nil {
				t.Errorf("the team is there, and the policy is not: %v", err)
			}
			return nil
		})
	})
	soon(t, "all that the platform and the team write is Ready", func() error {
		return errors.Join(f.delivered(ctx, "flux-system", "infrastructure", "staging", "production"),
			f.delivered(ctx, "flux-system", "team-dev-team", "staging", "production"), f.delivered(ctx, "dev-team", "apps", "staging", "production"))
	})
	check(t, f.each(func(env string, c *localfleet.Cluster) error { return f.tenancyHas(ctx, env, c) }))
	f.tenancyRefuses(t)

	f.drop(t, addonSet("dev-team", "apps"), &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "dev-team"}})
	check(t, f.each(func(_ string, c *localfleet.Cluster) error {
		return errors.Join(wantNoNamespace(ctx, c, "chandler-dev-team"), wantNoConfigMap(ctx, c, "apps", "settings"),
			wantGone(ctx, c.Client, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "podinfo"}}))
	}))
}

// tenancyHas wants on a cluster what its environment is to have.
func (f *tenancy) tenancyHas(ctx context.Context, env string, c *localfleet.Cluster) error {
	want := map[string]struct {
		kyverno int32
		action  string
		level   string
	}{"staging": {1, "Audit", "debug"}, "production": {3, "Enforce", "info"}}[env]
	if _, err := runs(ctx, c, "kyverno", "kyverno-admission-controller", want.kyverno); err != nil {
		return err
	}
	policy := object("kyverno.io/v1", "ClusterPolicy", "", "image-tags")
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
		return err
	}
	rules, _, _ := unstructured.NestedSlice(policy.Object, "spec", "rules")
	if len(rules) != 1 {
		return fmt.Errorf("the policy has rules %v", rules)
	}
	if got, _, _ := unstructured.NestedString(rules[0].(map[string]any), "validate", "failureAction"); got != want.action {
		return fmt.Errorf("the policy's action is %q", got)
	}
	d, err := runs(ctx, c, "apps", "podinfo", 1)
	if err != nil {
		return err
	}
	if args := d.Spec.Template.Spec.Containers[0].Command; !slices.Contains(args, "--level="+want.level) {
		return fmt.Errorf("podinfo runs as %v", args)
	}
	return wantData(ctx, c, "apps", "settings", "greeting", "hello from "+env)
}

// tenancyRefuses wants the policies of the platform to hold for the team, and its rights to end where they should.
func (f *tenancy) tenancyRefuses(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	for env, allowed := range map[string]bool{"staging": true, "production": false} {
		member := f.as(t, "dev-team", env)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "by-hand"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "docker.io/library/nginx:1"}}}}
		err := member.Create(ctx, pod, client.DryRunAll)
		if allowed && err != nil || !allowed && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may have images of ghcr.io/ only")) {
			t.Errorf("%s: an image of Docker Hub: %v", env, err)
		}
		if err := member.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "more"}}); !apierrors.IsForbidden(err) {
			t.Errorf("%s: the team makes a namespace: %v", env, err)
		}
	}
}

// teamIsolation runs examples/team-isolation. Its set takes Kyverno over from that of examples/multi-tenancy, which leaves.
func (f *tenancy) teamIsolation(t *testing.T) {
	ctx := t.Context()
	f.push(t, "team-isolation/git/payments", "payments/apps", "main")
	before := f.kyverno(t)
	f.apply(t, "team-isolation/hub", "guardrails.yaml", "team.yaml")
	f.apply(t, "team-isolation", "payments/apps.yaml")
	f.drop(t, addonSet("flux-system", "infrastructure"))
	soon(t, "all that the platform and the team write is Ready", func() error {
		return errors.Join(f.delivered(ctx, "flux-system", "guardrails", "staging", "production"),
			f.delivered(ctx, "flux-system", "team-payments", "staging", "production"), f.delivered(ctx, "payments", "payments", "staging", "production"))
	})
	check(t, f.each(func(env string, c *localfleet.Cluster) error {
		replicas := map[string]int32{"staging": 1, "production": 3}[env]
		_, kyverno := runs(ctx, c, "kyverno", "kyverno-admission-controller", replicas)
		_, flagger := runs(ctx, c, "flagger", "flagger", 1)
		_, checkout := runs(ctx, c, "payments", "checkout", replicas)
		return errors.Join(kyverno, flagger, checkout,
			c.Client.Get(ctx, types.NamespacedName{Namespace: "payments", Name: "checkout"}, object("flagger.app/v1beta1", "Canary", "", "")),
			c.Client.Get(ctx, types.NamespacedName{Name: "team-owner"}, object("kyverno.io/v1", "ClusterPolicy", "", "")),
			isolated(ctx, c, "payments"), isolated(ctx, c, "payments-jobs"))
	}))
	if after := f.kyverno(t); !maps.Equal(before, after) {
		t.Errorf("Kyverno was installed anew: its Deployments were %v, and are %v", before, after)
	}
	strict := client.NewDryRunClient(client.WithFieldValidation(f.clusters["staging"].Client, metav1.FieldValidationStrict))
	check(t, applyAll(ctx, strict, f.text(t, "team-isolation/management/kyverno-policies.yaml")))
	for env := range f.clusters {
		t.Run("confined in "+env, func(t *testing.T) { confined(t, f.as(t, "payments", env)) })
	}
	t.Run("sources", f.sources)
}

// kyverno returns the UID of Kyverno's Deployment on each cluster.
func (f *tenancy) kyverno(t *testing.T) map[string]types.UID {
	t.Helper()
	uids := map[string]types.UID{}
	check(t, f.each(func(env string, c *localfleet.Cluster) error {
		d := &appsv1.Deployment{}
		err := c.Client.Get(t.Context(), types.NamespacedName{Namespace: "kyverno", Name: "kyverno-admission-controller"}, d)
		uids[env] = d.UID
		return err
	}))
	return uids
}

// isolated wants a namespace to have a policy that lets Pods talk to the team's two namespaces, and to DNS. Nothing enforces it here,
// where no network is.
func isolated(ctx context.Context, c *localfleet.Cluster, namespace string) error {
	list := &networkingv1.NetworkPolicyList{}
	if err := c.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	if len(list.Items) != 1 || len(list.Items[0].Spec.Ingress) != 1 || len(list.Items[0].Spec.Egress) != 2 || len(list.Items[0].Spec.PolicyTypes) != 2 {
		return fmt.Errorf("namespace %s has network policies %v", namespace, list.Items)
	}
	from := list.Items[0].Spec.Ingress[0].From
	if len(from) != 1 || !slices.Equal(from[0].NamespaceSelector.MatchExpressions[0].Values, []string{"payments", "payments-jobs"}) {
		return fmt.Errorf("namespace %s lets in %v", namespace, from)
	}
	return nil
}

// fit is a Pod that the team may run.
func fit() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: "by-hand"}, Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "a", Image: "ghcr.io/stefanprodan/podinfo:6.1.3", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}},
	}}
}

// confined wants the cluster to refuse the team what the Team and the policies say, each with the reason.
func confined(t *testing.T, member client.Client) {
	ctx := t.Context()
	pod := fit()
	check(t, member.Create(ctx, pod, client.DryRunAll))
	if limits := pod.Spec.Containers[0].Resources.Limits; limits.Cpu().String() != "500m" || limits.Memory().String() != "256Mi" {
		t.Errorf("the default limits are %v", limits)
	}
	ask := func(resources ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			one := p.Spec.Containers[0]
			p.Spec.Containers = nil
			for i, cpu := range resources {
				one.Name = fmt.Sprintf("c%d", i)
				one.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
				one.Resources.Limits = one.Resources.Requests
				p.Spec.Containers = append(p.Spec.Containers, one)
			}
		}
	}
	for says, change := range map[string]func(*corev1.Pod){
		`violates PodSecurity "restricted:latest": privileged`: func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext.Privileged, p.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = new(true), nil
		},
		"maximum cpu usage per Container is 1": ask("1500m"),
		"exceeded quota":                       ask("1", "1", "1"),
	} {
		pod := fit()
		change(pod)
		if err := member.Create(ctx, pod, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q, got %v", says, err)
		}
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: "by-hand"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}}}
	if err := member.Create(ctx, service, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "Services of teams are of type ClusterIP") {
		t.Errorf("a Service of type NodePort: %v", err)
	}
	for _, own := range []client.Object{&corev1.ResourceQuota{}, &corev1.LimitRange{}} {
		if err := member.DeleteAllOf(ctx, own, client.InNamespace("payments")); !apierrors.IsForbidden(err) {
			t.Errorf("the team deletes its %T: %v", own, err)
		}
	}
}

// sources wants the policy of the management cluster to hold for a source that the hub makes for the team, and the team to see why.
func (f *tenancy) sources(t *testing.T) {
	ctx := t.Context()
	f.apply(t, "team-isolation/management", "sources-policy.yaml")
	soon(t, "the policy is in force", func() error {
		err := f.Client.Create(ctx, &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: "by-hand"},
			Spec: sourcev1.GitRepositorySpec{URL: "https://elsewhere.example.org/x", Interval: metav1.Duration{Duration: time.Minute}}}, client.DryRunAll)
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("a source from elsewhere: %v", err)
		}
		return nil
	})
	set := strings.NewReplacer("name: payments\n", "name: elsewhere\n", "name: checkout", "name: elsewhere", "/payments/apps", "/others/apps").
		Replace(f.text(t, "team-isolation/payments/apps.yaml"))
	apply(t, f.Client, set)
	soon(t, "the team sees why its source is refused", func() error {
		list := &hubv1.AddonDeliveryList{}
		if err := f.Client.List(ctx, list, client.InNamespace("payments"), client.MatchingLabels{hubv1.AddonSetLabel: "elsewhere"}); err != nil || len(list.Items) == 0 {
			return fmt.Errorf("%d deliveries: %w", len(list.Items), err)
		}
		ready := conditionOf(&list.Items[0], hubv1.ReadyCondition)
		if !strings.Contains(ready.Message, "teams may fetch from") {
			return fmt.Errorf("it says %s: %s, and its add-ons %v", ready.Reason, ready.Message, list.Items[0].Status.Addons)
		}
		return nil
	})
	f.drop(t, addonSet("payments", "elsewhere"))
	check(t, f.delivered(ctx, "payments", "payments", "staging", "production"))
}
