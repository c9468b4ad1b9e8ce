// SPDX-License-Identifier: Apache-2.0

package fluxstate_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/fluxstate"
)

func TestAddon(t *testing.T) {
	cond := func(s metav1.ConditionStatus, generation int64, reason, message string) metav1.Condition {
		return metav1.Condition{Type: "Ready", Status: s, ObservedGeneration: generation, Reason: reason, Message: message}
	}
	const applied = 3
	ready := hubv1.AddonStatus{State: hubv1.AddonReady, AppliedGeneration: applied}
	cases := map[string]struct {
		before     hubv1.AddonStatus
		ready      metav1.Condition
		generation int64
		observed   int64 // by Flux; that of the condition if it is 0
		suspended  bool
		deleting   bool
		want       hubv1.AddonState
		says       string
	}{
		"Ready":       {ready: cond("True", 3, "Succeeded", "done"), generation: 3, want: hubv1.AddonReady},
		"ReadyBefore": {ready: cond("True", 2, "Succeeded", "done"), generation: 3, want: hubv1.AddonProgressing},
		// What Flux did with the spec before, said of the one that was written meanwhile.
		"ReadyTooSoon":     {before: ready, ready: cond("True", 3, "Succeeded", "done"), generation: 3, observed: 2, want: hubv1.AddonProgressing},
		"EditedByOthers":   {before: ready, ready: cond("True", 4, "Succeeded", "done"), generation: 4, want: hubv1.AddonProgressing},
		"RoutineReconcile": {before: ready, ready: cond("Unknown", 3, "Progressing", "building"), generation: 3, want: hubv1.AddonReady},
		"FirstReconcile":   {ready: cond("Unknown", 3, "Progressing", "building"), generation: 3, want: hubv1.AddonProgressing},
		"AfterOurChange":   {before: hubv1.AddonStatus{State: hubv1.AddonReady, AppliedGeneration: 2}, ready: cond("Unknown", 3, "Progressing", ""), generation: 3, want: hubv1.AddonProgressing},
		"Failed":           {before: ready, ready: cond("False", 3, "InstallFailed", "no\n such   thing"), generation: 3, want: hubv1.AddonFailed, says: `InstallFailed: Flux says, perhaps in the cluster's words: "no such thing"`},
		"FailedBefore":     {ready: cond("False", 2, "InstallFailed", "old"), generation: 3, want: hubv1.AddonProgressing},
		"Dependency":       {ready: cond("False", 3, "DependencyNotReady", "x"), generation: 3, want: hubv1.AddonWaitingForDependency, says: "DependencyNotReady: x"},
		"SourceOfRelease":  {ready: cond("False", 3, "SourceNotReady", "x"), generation: 3, want: hubv1.AddonProgressing, says: "SourceNotReady: x"},
		"PathOfKustomize": {
			ready:      cond("False", 3, "ArtifactFailed", "kustomization path not found: stat /tmp/kustomization-1/nets: no such file or directory"),
			generation: 3, want: hubv1.AddonFailed, says: "ArtifactFailed: kustomization path not found: stat nets: no such file or directory",
		},
		"SourceOfKustomize":     {ready: cond("False", 3, "ArtifactFailed", "x"), generation: 3, want: hubv1.AddonProgressing, says: "ArtifactFailed: x"},
		"Suspended":             {before: ready, ready: cond("True", 3, "Succeeded", ""), generation: 3, suspended: true, want: hubv1.AddonSuspended, says: "flux resume"},
		"DeletedBySomebodyElse": {before: ready, ready: cond("True", 3, "Succeeded", ""), generation: 3, deleting: true, want: hubv1.AddonProgressing, says: "made again"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Generation: tc.generation}
			if tc.deleting {
				meta.DeletionTimestamp = &metav1.Time{}
				*meta.DeletionTimestamp = metav1.Now()
			}
			states := map[string]fluxstate.State{
				"HelmRelease":   fluxstate.Of(&helmv2.HelmRelease{ObjectMeta: meta, Spec: helmv2.HelmReleaseSpec{Suspend: tc.suspended}, Status: helmv2.HelmReleaseStatus{Conditions: []metav1.Condition{tc.ready}, ObservedGeneration: cmp.Or(tc.observed, tc.ready.ObservedGeneration)}}),
				"Kustomization": fluxstate.Of(&kustomizev1.Kustomization{ObjectMeta: meta, Spec: kustomizev1.KustomizationSpec{Suspend: tc.suspended}, Status: kustomizev1.KustomizationStatus{Conditions: []metav1.Condition{tc.ready}, ObservedGeneration: cmp.Or(tc.observed, tc.ready.ObservedGeneration)}}),
			}
			for kind, s := range states {
				got, says := fluxstate.Addon(tc.before, s, applied)
				if got != tc.want || !strings.Contains(says, tc.says) || tc.says == "" && says != "" {
					t.Errorf("%s: %s (%q), want %s (%q)", kind, got, says, tc.want, tc.says)
				}
			}
		})
	}
}

// TestNoiseIsNoNews: what Flux writes at the start of every reconcile makes no other state, so that no event of it wakes a controller.
func TestNoiseIsNoNews(t *testing.T) {
	of := func(reason, message string) fluxstate.State {
		return fluxstate.Of(&kustomizev1.Kustomization{Status: kustomizev1.KustomizationStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: "Unknown", Reason: reason, Message: message}}}})
	}
	if of("Progressing", "building manifests") != of("Progressing", "running health checks") {
		t.Error("two steps of one reconcile are two states")
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	s := fluxstate.State{Generation: 1, Ready: metav1.ConditionFalse, ReadyGeneration: 1, Reason: "Failed", Message: strings.Repeat("ä ", 1000)}
	if _, says := fluxstate.Addon(hubv1.AddonStatus{}, s, 1); len([]rune(says)) > 300 || !strings.HasSuffix(says, `…"`) {
		t.Errorf("%d characters: %q", len([]rune(says)), says)
	}
}

// TestRetriesSayTheSame: kustomize-controller names the folder of each try in its error; a failing add-on must not cost a status
// write for each retry.
func TestRetriesSayTheSame(t *testing.T) {
	of := func(folder string) fluxstate.State {
		return fluxstate.Of(&kustomizev1.Kustomization{Status: kustomizev1.KustomizationStatus{Conditions: []metav1.Condition{{
			Type: "Ready", Status: "False", Reason: "BuildFailed", Message: "failed to decode Kubernetes YAML from /var/run/" + folder + "/base/configmap.yaml: bad",
		}}}})
	}
	if a, b := of("kustomization-123"), of("kustomization-456"); a != b || a.Message != "failed to decode Kubernetes YAML from base/configmap.yaml: bad" {
		t.Errorf("%q and %q", a.Message, b.Message)
	}
}

// TestDefaultServiceAccount: whoever sets Flux's --default-service-account learns what it does to other clusters.
func TestDefaultServiceAccount(t *testing.T) {
	const (
		lacks    = `ConfigMap/apps/x dry-run failed (Forbidden): configmaps "x" is forbidden: User "system:serviceaccount:flux-system:default" cannot patch resource "configmaps" in API group "" in the namespace "apps"`
		noWay    = `serviceaccounts "robot" is forbidden: User "system:serviceaccount:chandler-shop:shop" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "flux-system"`
		since136 = `failed to query with labels: secrets is forbidden: User "system:serviceaccount:chandler-shop:shop" cannot impersonate-on:serviceaccount:list resource "secrets" in API group "" in the namespace "shop-apps"`
	)
	for _, tc := range []struct{ message, named, namespace, want string }{
		{lacks, "", "flux-system", "ServiceAccount flux-system/default"},
		{lacks, "default", "flux-system", ""},
		{lacks, "", "other", ""},
		{strings.ReplaceAll(lacks, ":default", ":flux-remote"), "", "flux-system", ""}, // the kubeconfig's
		{noWay, "", "flux-system", "ServiceAccount flux-system/robot"},
		{since136, "", "flux-system", "a ServiceAccount of namespace flux-system"},
		{since136, "robot", "flux-system", ""},
		{noWay, "robot", "flux-system", ""},
		{noWay, "", "other", ""},
	} {
		meta, ready := metav1.ObjectMeta{Namespace: tc.namespace, Name: "x"}, []metav1.Condition{{Type: "Ready", Status: "False", Reason: "ReconciliationFailed", Message: tc.message}}
		for _, o := range []client.Object{
			&kustomizev1.Kustomization{ObjectMeta: meta, Spec: kustomizev1.KustomizationSpec{ServiceAccountName: tc.named}, Status: kustomizev1.KustomizationStatus{Conditions: ready}},
			&helmv2.HelmRelease{ObjectMeta: meta, Spec: helmv2.HelmReleaseSpec{ServiceAccountName: tc.named}, Status: helmv2.HelmReleaseStatus{Conditions: ready}},
		} {
			s := fluxstate.Of(o)
			reason, remedy := fluxstate.Reason(s)
			if s.DefaultAccount != tc.want || (reason == hubv1.DefaultServiceAccountReason) != (tc.want != "") || !strings.Contains(remedy, tc.want) {
				t.Errorf("%T, %s: %q, %s, %q", o, tc.message, s.DefaultAccount, reason, remedy)
			}
		}
	}
}

func TestReason(t *testing.T) {
	for message, want := range map[string]string{
		`HelmRelease/default/x dry-run failed: no matches for kind "HelmRelease" in version "helm.toolkit.fluxcd.io/v2"`:       hubv1.FluxObjectsInFolderReason,
		`GitRepository/default/x dry-run failed: no matches for kind "GitRepository" in version "source.toolkit.fluxcd.io/v1"`: hubv1.FluxObjectsInFolderReason,
		`Certificate/default/x dry-run failed: no matches for kind "Certificate" in version "cert-manager.io/v1"`:              "",
		`Kustomization.kustomize.config.k8s.io is no Flux object`:                                                              "",
	} {
		reason, remedy := fluxstate.Reason(fluxstate.State{Message: message})
		if reason != want || (want == "") != (remedy == "") {
			t.Errorf("%s: %q, %q", message, reason, remedy)
		}
		if reason == hubv1.FluxObjectsInFolderReason && !strings.Contains(remedy, "examples/hub-spoke") {
			t.Errorf("%s: %q does not say how a cluster gets a Flux of its own", message, remedy)
		}
	}
}

// TestNotFound: of a source that does not exist, Flux's message says which. Of one that is there it says other things.
func TestNotFound(t *testing.T) {
	for _, tc := range []struct{ reason, message, want string }{
		{"ArtifactFailed", `could not get Source object: HelmChart.source.toolkit.fluxcd.io "chandler-web-1" not found`, `HelmChart "chandler-web-1"`},
		{"SourceNotReady", `HelmChart 'a/b' is not ready: failed to get source: HelmRepository.source.toolkit.fluxcd.io "charts" not found`,
			`HelmRepository "charts"`},
		{"ArtifactFailed", `unable to get source 'a/b': GitRepository.source.toolkit.fluxcd.io "b" not found`, `GitRepository "b"`},
		{"ArtifactFailed", "Source artifact not found, retrying in 30s", ""},
		{"SourceNotReady", `HelmChart 'a/b' is not ready: no 'web' chart with version matching '1.x' found`, ""},
		{"InstallFailed", `GitRepository.source.toolkit.fluxcd.io "b" not found`, ""}, // on the cluster
	} {
		s := fluxstate.State{Ready: metav1.ConditionFalse, Reason: tc.reason, Message: tc.message}
		if got := fluxstate.NotFound(s); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.message, got, tc.want)
		}
	}
}

func TestWaitsForNodes(t *testing.T) {
	for _, tc := range []struct {
		state   hubv1.AddonState
		message string
		since   time.Duration
		want    bool
	}{
		{hubv1.AddonProgressing, "", fluxstate.NodesGrace - time.Second, false},
		{hubv1.AddonProgressing, "", fluxstate.NodesGrace, true},
		{hubv1.AddonFailed, "InstallFailed: Helm install failed: context deadline exceeded", 0, true},
		{hubv1.AddonFailed, "HealthCheckFailed: timeout waiting for: [Deployment/default/x status: 'InProgress']", 0, true},
		{hubv1.AddonFailed, "InstallFailed: resource not ready, name: x, kind: Deployment", 0, true},
		{hubv1.AddonFailed, "InstallFailed: values don't meet the specifications of the schema", 0, false},
		{hubv1.AddonReady, "", 0, false},
		{hubv1.AddonWaitingForDependency, "", 0, false},
	} {
		if got := fluxstate.WaitsForNodes(tc.state, fluxstate.State{Message: tc.message, Begun: true}, tc.since); got != tc.want {
			t.Errorf("%s (%s): %v", tc.state, tc.message, got)
		}
		if fluxstate.WaitsForNodes(tc.state, fluxstate.State{Message: tc.message}, tc.since) {
			t.Errorf("%s (%s), and Flux has not begun", tc.state, tc.message)
		}
	}
}
