// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/doctor"
	"github.com/chandler-hub/chandler/internal/golden"
	"github.com/chandler-hub/chandler/internal/must"
)

var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func crd(name string, fields ...string) apiextensionsv1.CustomResourceDefinition {
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for _, f := range fields {
		spec.Properties[f] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	out := apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	out.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}}}}
	return out
}

func policy(hub, expression string) admissionv1.ValidatingAdmissionPolicy {
	out := admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "chandler-copies"}}
	out.Spec.Variables = []admissionv1.Variable{{Name: "hubs", Expression: "['" + hub + "']"}}
	out.Spec.Validations = []admissionv1.Validation{{Expression: expression}}
	return out
}

const account = "system:serviceaccount:chandler-system:chandler"

func controller(name, version string, args ...string) doctor.Workload {
	return doctor.Workload{Namespace: "flux-system", Name: name, Component: name, Version: version, Args: args, Replicas: 1, Ready: 1}
}

// healthy are the facts of a hub that lacks nothing.
func healthy() *doctor.Facts {
	lockdown := "--no-cross-namespace-refs=true"
	set, delivery, reg := set(), &hubv1.AddonDelivery{}, registration()
	delivery.Name, delivery.Namespace, delivery.Spec.AddonSetRef.Name, delivery.Spec.RevisionName = "base-one", "flux-system", "base", set.Status.Revision
	ours, fluxs := crd("addonsets.chandler.dev", "addons"), crd("helmreleases.helm.toolkit.fluxcd.io", "chart")
	wanted := policy(account, "true")
	binding := admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "chandler-copies"}}
	binding.Spec.PolicyName, binding.Spec.ValidationActions = "chandler-copies", []admissionv1.ValidationAction{admissionv1.Deny}
	f := &doctor.Facts{Now: now, HubNamespace: "chandler-system", PlatformNamespaces: []string{"chandler-system", "flux-system"},
		FluxNamespace: "flux-system", Epoch: 3,
		Hub: doctor.Hub{Read: true, Published: []string{"chandler-system"},
			Lease: &doctor.Lease{Installation: "chandler-system", Holder: "chandler-a", Renewed: now.Add(-time.Second), Lasts: 15 * time.Second},
			Workloads: []doctor.Workload{{Namespace: "chandler-system", Name: "chandler", Component: "hub", Version: "v0.1.0",
				Replicas: 2, Ready: 2, Pods: []doctor.Pod{{Name: "chandler-a"}, {Name: "chandler-b"}}}}},
		Clock: doctor.Clock{Server: now, Caller: now.Add(time.Second)},
		CRDs: doctor.CRDs{Read: true, Wanted: []apiextensionsv1.CustomResourceDefinition{ours}, FluxWanted: []apiextensionsv1.CustomResourceDefinition{fluxs},
			Installed: map[string]*apiextensionsv1.CustomResourceDefinition{ours.Name: &ours, fluxs.Name: &fluxs}},
		Policy: doctor.Policies{Read: true, Wanted: []admissionv1.ValidatingAdmissionPolicy{wanted},
			WantedBindings: []admissionv1.ValidatingAdmissionPolicyBinding{binding}, Installed: []admissionv1.ValidatingAdmissionPolicy{wanted},
			InstalledBounds: []admissionv1.ValidatingAdmissionPolicyBinding{binding}},
		Rights: doctor.Rights{Read: true, Account: account, Asked: 90},
		Flux: doctor.Flux{Read: true, Workloads: []doctor.Workload{controller("helm-controller", "v1.6.4", lockdown),
			controller("kustomize-controller", "v1.9.5", lockdown), controller("source-controller", "v1.9.5")},
			Kinds: []doctor.Kind{{Kind: "HelmRelease", Component: "helm-controller", Count: 100, Interval: 10 * time.Minute}}},
		Access: doctor.Access{Read: true}, SourcesRead: 2,
	}
	f.Fleet.Registration(reg, now)
	f.Fleet.Set(set, 3, now)
	f.Fleet.Delivery(delivery)
	return f
}

func conditions(list ...string) (out []metav1.Condition) {
	for _, text := range list {
		p := strings.Split(text, " ")
		out = append(out, metav1.Condition{Type: p[0], Status: metav1.ConditionStatus(p[1]), Reason: p[2], LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))})
	}
	return out
}

func registration(status ...string) *hubv1.ClusterRegistration {
	r := &hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "one", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
	if r.Status.Conditions = conditions(status...); len(status) == 0 {
		r.Status.Conditions = conditions("Ready True Succeeded", "Reachable True ProbeSucceeded")
	}
	return r
}

func set(status ...string) *hubv1.AddonSet {
	s := &hubv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "base", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
	s.Status.Revision = "base-4f24bf35d8-e3"
	if s.Status.Conditions = conditions(status...); len(status) == 0 {
		s.Status.Conditions = conditions("Ready True Succeeded")
	}
	return s
}

// rolling returns a set whose rollout is in a phase.
func rolling(phase hubv1.RolloutPhase) *hubv1.AddonSet {
	s := set()
	s.Status.Rollout = &hubv1.RolloutStatus{Phase: phase}
	return s
}

func reader(kind, namespace, name string) doctor.Reader {
	return doctor.Reader{Subject: rbacv1.Subject{Kind: kind, Namespace: namespace, Name: name}, Namespace: "flux-system", Binding: "RoleBinding flux-system/x"}
}

// cases are what goes wrong, and what is found then, with its severity.
var cases = map[string]struct {
	spoil func(*doctor.Facts)
	want  string
}{
	"Healthy":    {func(*doctor.Facts) {}, ""},
	"NoHub":      {func(f *doctor.Facts) { f.Hub = doctor.Hub{Read: true} }, "ERROR HubMissing"},
	"HubOutside": {func(f *doctor.Facts) { f.Hub.Lease, f.Hub.Workloads = nil, nil }, "WARNING HubNotSeen"},
	"HubUnread":  {func(f *doctor.Facts) { f.Hub = doctor.Hub{}; f.Skip(doctor.CheckHub, "Leases", "ask") }, "NOT CHECKED NotChecked"},
	"TwoDeployments": {func(f *doctor.Facts) {
		w := f.Hub.Workloads[0]
		w.Namespace = "other"
		f.Hub.Workloads = append(f.Hub.Workloads, w)
	}, "WARNING HubTwice"},
	"TwoConfigMaps": {func(f *doctor.Facts) { f.Hub.Published = append(f.Hub.Published, "other") }, "WARNING HubTwiceOnce"},
	"ScaledDown":    {func(f *doctor.Facts) { f.Hub.Workloads[0].Replicas, f.Hub.Workloads[0].Ready = 0, 0 }, "ERROR HubNotRunning"},
	"NoPod": {func(f *doctor.Facts) {
		f.Hub.Workloads[0].Ready = 0
		f.Hub.Workloads[0].Pods[0].Waiting = "CrashLoopBackOff"
	}, "ERROR HubNotRunning"},
	"OnePod": {func(f *doctor.Facts) { f.Hub.Workloads[0].Ready = 1 }, "WARNING HubPodsMissing"},
	"Restarts": {func(f *doctor.Facts) {
		f.Hub.Workloads[0].Pods[0] = doctor.Pod{Name: "a", Restarts: 3, Ended: "OOMKilled", EndedAt: now.Add(-time.Hour)}
	}, "WARNING HubRestarts"},
	"RestartedLongAgo": {func(f *doctor.Facts) {
		f.Hub.Workloads[0].Pods[0] = doctor.Pod{Name: "a", Restarts: 3, Ended: "Error", EndedAt: now.Add(-48 * time.Hour)}
	}, ""},
	"NoHolder":     {func(f *doctor.Facts) { f.Hub.Lease.Holder = "" }, "ERROR HubDoesNotLead"},
	"SilentHolder": {func(f *doctor.Facts) { f.Hub.Lease.Renewed = now.Add(-10 * time.Minute) }, "ERROR HubDoesNotLead"},
	"CallersClock": {func(f *doctor.Facts) { f.Clock.Caller = now.Add(-time.Minute) }, "WARNING ClockOfCaller"},
	"HubsClock":    {func(f *doctor.Facts) { f.Hub.Lease.Renewed = now.Add(time.Minute) }, "WARNING ClockOfHub"},
	"SlowAnswer":   {func(f *doctor.Facts) { f.Clock.Caller, f.Clock.Trip = now.Add(8*time.Second), 5*time.Second }, ""},
	"NoCRD":        {func(f *doctor.Facts) { delete(f.CRDs.Installed, "addonsets.chandler.dev") }, "ERROR CRDMissing"},
	"OldCRD":       {func(f *doctor.Facts) { f.CRDs.Wanted[0] = crd("addonsets.chandler.dev", "addons", "rollout") }, "ERROR CRDOlder"},
	"NewCRD":       {func(f *doctor.Facts) { f.CRDs.Wanted[0] = crd("addonsets.chandler.dev") }, "WARNING CRDNewer"},
	"NoFluxCRD":    {func(f *doctor.Facts) { delete(f.CRDs.Installed, "helmreleases.helm.toolkit.fluxcd.io") }, "ERROR FluxCRDMissing"},
	"OldFluxCRD": {func(f *doctor.Facts) {
		f.CRDs.FluxWanted[0] = crd("helmreleases.helm.toolkit.fluxcd.io", "chart", "ignore")
	}, "WARNING FluxCRDOlder"},
	"FluxCRDNotServed": {func(f *doctor.Facts) {
		f.CRDs.Installed["helmreleases.helm.toolkit.fluxcd.io"].Spec.Versions[0].Served = false
		f.CRDs.FluxWanted[0] = crd("helmreleases.helm.toolkit.fluxcd.io")
	}, "ERROR FluxCRDOlder"},
	"NoPolicy":  {func(f *doctor.Facts) { f.Policy.Installed = nil }, "WARNING PolicyMissing"},
	"NoBinding": {func(f *doctor.Facts) { f.Policy.InstalledBounds = nil }, "WARNING PolicyUnbound"},
	"PolicyWarns": {func(f *doctor.Facts) {
		f.Policy.InstalledBounds = []admissionv1.ValidatingAdmissionPolicyBinding{{ObjectMeta: metav1.ObjectMeta{Name: "chandler-copies"}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{ValidationActions: []admissionv1.ValidationAction{admissionv1.Warn}}}}
	}, "WARNING PolicyDoesNotDeny"},
	"OtherPolicy": {func(f *doctor.Facts) {
		f.Policy.Installed = []admissionv1.ValidatingAdmissionPolicy{policy(account, "false")}
	}, "WARNING PolicyDiffers"},
	"PolicyOfOther": {func(f *doctor.Facts) {
		f.Policy.Installed = []admissionv1.ValidatingAdmissionPolicy{policy("system:serviceaccount:x:hub", "true")}
	}, "ERROR PolicyForAnotherHub"},
	"NoRight": {func(f *doctor.Facts) {
		f.Rights.Lacks = []doctor.Right{{Verb: "patch", Group: "apps", Resource: "controllerrevisions"}}
	}, "ERROR RightsMissing"},
	"AllRights": {func(f *doctor.Facts) { f.Rights.Everything = true }, "WARNING RightsTooMany"},
	"NoFlux":    {func(f *doctor.Facts) { f.Flux.Workloads = f.Flux.Workloads[1:] }, "ERROR FluxMissing"},
	"FluxOutside": {func(f *doctor.Facts) {
		f.Flux.Workloads, f.SourcesReady = nil, 1
		f.Flux.Kinds = append(f.Flux.Kinds, doctor.Kind{Kind: "Kustomization", Component: "kustomize-controller", Count: 1, Observed: 1})
		f.Flux.Kinds[0].Observed = 50
	}, ""},
	"FluxUnread":   {func(f *doctor.Facts) { f.Flux = doctor.Flux{} }, ""},
	"FluxDown":     {func(f *doctor.Facts) { f.Flux.Workloads[0].Ready = 0 }, "ERROR FluxNotRunning"},
	"OldFlux":      {func(f *doctor.Facts) { f.Flux.Workloads[0].Version = "v1.3.0" }, "ERROR FluxTooOld"},
	"OlderFlux":    {func(f *doctor.Facts) { f.Flux.Workloads[0].Version = "v1.4.3" }, "WARNING FluxOlder"},
	"NewFlux":      {func(f *doctor.Facts) { f.Flux.Workloads[1].Version = "v1.10.0-rc.1" }, ""},
	"FluxByDigest": {func(f *doctor.Facts) { f.Flux.Workloads[0].Version = "" }, "NOT CHECKED FluxVersionUnknown"},
	"TwoFlux": {func(f *doctor.Facts) {
		w := f.Flux.Workloads[0]
		w.Namespace = "other"
		f.Flux.Workloads = append(f.Flux.Workloads, w)
	}, "ERROR FluxTwice"},
	"CrossNamespace": {func(f *doctor.Facts) { f.Flux.Workloads[0].Args = []string{"--no-cross-namespace-refs=false"} }, "WARNING FluxCrossNamespaceRefs"},
	"RemoteBases":    {func(f *doctor.Facts) { f.Fleet.Teams = 1 }, "WARNING FluxRemoteBases"},
	"DefaultAccount": {func(f *doctor.Facts) {
		f.Flux.Workloads[0].Args = append(f.Flux.Workloads[0].Args, "--default-service-account=default")
	}, "WARNING FluxDefaultServiceAccount"},
	"DefaultAccountHurts": {func(f *doctor.Facts) {
		f.Flux.Workloads[0].Args = append(f.Flux.Workloads[0].Args, "--default-service-account=default")
		cluster("Ready False DefaultServiceAccount", "Reachable True ProbeSucceeded")(f)
	}, "ERROR FluxDefaultServiceAccount, ERROR ClusterNotReady"},
	"IdentityGate":   {func(f *doctor.Facts) { f.Fleet.WorkloadIdentity = 2 }, "ERROR FluxIdentityGate"},
	"OneNamespace":   {func(f *doctor.Facts) { f.Flux.Workloads[2].Args = []string{"--watch-all-namespaces=false"} }, "ERROR FluxOneNamespace"},
	"ShardNotServed": {func(f *doctor.Facts) { shards(f, "a"); f.Shards = []string{"a", "b"} }, "ERROR FluxShardNotServed"},
	"ShardIdle":      {func(f *doctor.Facts) { shards(f, "a", "b"); f.Shards = []string{"a"} }, "WARNING FluxShardIdle"},
	"TenantsShare":   {func(f *doctor.Facts) { f.Fleet.In = map[string]int{"flux-system": 2, "tenants": 3} }, "WARNING FluxSharedByTenants"},
	"TenantsApart": {func(f *doctor.Facts) {
		f.Fleet.In, f.TenantShards = map[string]int{"flux-system": 2, "tenants": 3}, true
	}, ""},
	"OnlyTenants":     {func(f *doctor.Facts) { f.Fleet.In = map[string]int{"tenants": 3, "others": 1} }, ""},
	"ShardsAsTheyAre": {func(f *doctor.Facts) { shards(f, "a", "b"); f.Shards = []string{"a", "b"} }, ""},
	"HubKnowsNoShard": {func(f *doctor.Facts) {
		shards(f, "a")
		f.Flux.Workloads = slices.DeleteFunc(f.Flux.Workloads, func(w doctor.Workload) bool {
			return strings.HasSuffix(w.Name, "-controller") && w.Component != "source-controller"
		})
	}, "ERROR FluxShardNotServed, WARNING FluxShardIdle"},
	"AllAndAShard": {func(f *doctor.Facts) {
		w := f.Flux.Workloads[0]
		w.Name, w.Args = "helm-controller-a", append(w.Args, "--watch-label-selector=sharding.fluxcd.io/key=a")
		f.Flux.Workloads = append(f.Flux.Workloads, w)
		f.Shards = []string{"a"}
	}, "ERROR FluxTwice"},
	"TooFewWorkers": {func(f *doctor.Facts) { f.Flux.Kinds[0].Count = 5000 }, "WARNING FluxTooFewWorkers"},
	"MoreWorkers": {func(f *doctor.Facts) {
		f.Flux.Kinds[0].Count = 5000
		f.Flux.Workloads[0].Args = append(f.Flux.Workloads[0].Args, "--concurrent=60")
	}, ""},
	"SourceFails": {func(f *doctor.Facts) {
		f.Sources = []doctor.Source{{Name: "GitRepository flux-system/fleet", Reason: "GitOperationFailed", Message: "no such host"}}
	}, "ERROR SourceFails"},
	"NoKubeConfig": {cluster("Ready False SecretNotFound", "KubeConfigValid False SecretNotFound"), "ERROR KubeConfigInvalid"},
	"Unreachable":  {cluster("Ready False ConnectionRefused", "Reachable False ConnectionRefused"), "ERROR ClusterUnreachable"},
	"AddonsFailed": {cluster("Ready False AddonsFailed", "Reachable True ProbeSucceeded"), "ERROR ClusterNotReady"},
	"Slow":         {cluster("Ready False Progressing", "Reachable True ProbeSucceeded"), "WARNING ClusterSlow"},
	"UnderWay": {func(f *doctor.Facts) {
		f.Fleet.Registration(registration("Ready False Progressing", "Reachable True ProbeSucceeded"), now.AddDate(-10, 0, 0))
	}, "WARNING ClusterUnderWay"},
	"Sleeping":        {cluster("Ready False ClusterSleeping", "Suspended True ClusterSleeping", "Reachable False ConnectionRefused"), ""},
	"Maintenance":     {cluster("Ready False ClusterUpgrading", "Maintenance True ClusterUpgrading", "Reachable False ConnectionRefused"), ""},
	"Suspended":       {cluster("Ready False ConnectionRefused", "Suspended True ClusterUnreachable", "Reachable False ConnectionRefused"), "ERROR ClusterUnreachable"},
	"Duplicate":       {cluster("Ready False Duplicate", "Duplicate True SameCluster"), "WARNING ClusterDuplicate"},
	"NotSeen":         {func(f *doctor.Facts) { r := registration(); r.Generation = 2; f.Fleet.Registration(r, now) }, "ERROR ClusterNotSeen"},
	"Expires":         {credential(3*24*time.Hour, false, ""), "WARNING CredentialExpires"},
	"Expired":         {credential(-time.Hour, true, ""), "ERROR CredentialExpired"},
	"RenewedByTheHub": {credential(3*24*time.Hour, true, ""), ""},
	"RenewedByKamaji": {credential(20*time.Hour, false, "TenantControlPlane"), ""},
	"NotRenewed":      {credential(2*time.Hour, false, "TenantControlPlane"), "WARNING CredentialExpires"},
	"Authenticated":   {func(f *doctor.Facts) { f.Access.Readers = []doctor.Reader{reader("Group", "", "system:authenticated")} }, "ERROR CopiesOpen"},
	"AllOfANamespace": {func(f *doctor.Facts) {
		f.Access.Readers = []doctor.Reader{reader("Group", "", "system:serviceaccounts:shop")}
	}, "ERROR CopiesOpen"},
	"SomebodyReads": {func(f *doctor.Facts) {
		f.Access.Readers = []doctor.Reader{reader("User", "", "ann"), reader("ServiceAccount", "cert-manager", "cert-manager")}
	}, "WARNING CopiesReadable"},
	"FluxReads": {func(f *doctor.Facts) {
		f.Access.Readers = []doctor.Reader{reader("ServiceAccount", "flux-system", "helm-controller"), reader("User", "", "system:kube-controller-manager")}
	}, ""},
	"NoCluster":       {func(f *doctor.Facts) { f.Fleet.Set(set("Ready True NoClusterMatches"), 3, now) }, "WARNING SetMatchesNothing"},
	"DeliversNothing": {func(f *doctor.Facts) { f.Fleet.Set(set("Ready False AddonsLost"), 3, now) }, "WARNING SetDeliversNothing"},
	"Stalled":         {func(f *doctor.Facts) { f.Fleet.Set(set("Ready False InvalidSpec", "Stalled True InvalidSpec"), 3, now) }, "ERROR SetStalled"},
	"SetSources":      {func(f *doctor.Facts) { f.Fleet.Set(set("Ready False SourcesNotReady"), 3, now) }, "ERROR SetSourcesNotReady"},
	"Held": {func(f *doctor.Facts) {
		f.Fleet.Set(set("Ready True Succeeded", "RemovalsHeld True TooManyRemovals"), 3, now)
	}, "WARNING RemovalsHeld"},
	"RolloutFailed": {func(f *doctor.Facts) {
		f.Fleet.Set(rolling(hubv1.RolloutFailed), 3, now)
	}, "ERROR RolloutFailed"},
	"RolloutWaits": {func(f *doctor.Facts) {
		f.Fleet.Set(rolling(hubv1.RolloutWaitingForApproval), 3, now)
	}, ""},
	"SetNotSeen": {func(f *doctor.Facts) { s := set(); s.Generation = 2; f.Fleet.Set(s, 3, now) }, "ERROR SetNotSeen"},
	"OtherEpoch": {func(f *doctor.Facts) { f.Fleet.Set(set(), 4, now) }, "WARNING EpochOfHub"},
	"FluxObjectsLeft": {func(f *doctor.Facts) {
		f.Fleet.FluxObject("HelmRelease", &metav1.ObjectMeta{Namespace: "flux-system", Name: "two-web", Annotations: map[string]string{hubv1.DeliveryAnnotation: "gone"}})
	}, "WARNING FluxObjectsLeft"},
	"FluxObjectDelivered": {func(f *doctor.Facts) {
		f.Fleet.Delivery(&hubv1.AddonDelivery{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "there"}})
		f.Fleet.FluxObject("HelmRelease", &metav1.ObjectMeta{Namespace: "flux-system", Name: "two-web", Annotations: map[string]string{hubv1.DeliveryAnnotation: "there"}})
	}, ""},
	"OverrideOver": {func(f *doctor.Facts) {
		r := registration()
		r.Spec.Overrides = []hubv1.Override{{Name: "web", Until: &metav1.Time{Time: now.Add(-time.Hour)}}, {Name: "db"}}
		f.Fleet.Registration(r, now)
	}, "WARNING OverrideOver"},
	"OverrideRefused": {cluster("Ready True Succeeded", "Reachable True ProbeSucceeded", "OverridesRefused True OverrideRefused"), "WARNING OverrideRefused"},
	"PauseOver": {func(f *doctor.Facts) {
		r := registration()
		r.Spec.Pause = &hubv1.Pause{Until: &metav1.Time{Time: now.Add(-time.Hour)}}
		f.Fleet.Registration(r, now)
	}, "WARNING PauseOver"},
}

func cluster(status ...string) func(*doctor.Facts) {
	return func(f *doctor.Facts) { f.Fleet.Registration(registration(status...), now) }
}

func credential(left time.Duration, renewed bool, origin string) func(*doctor.Facts) {
	return func(f *doctor.Facts) {
		r := registration()
		r.Status.Credential = &hubv1.CredentialStatus{ExpirationTime: &metav1.Time{Time: now.Add(left)}, Renewed: renewed}
		if origin != "" {
			r.Spec.OriginRef = &hubv1.OriginReference{Kind: origin, Name: r.Name}
		}
		f.Fleet.Registration(r, now)
	}
}

// shards gives Flux a helm- and a kustomize-controller for each shard, beside those for the rest.
func shards(f *doctor.Facts, names ...string) {
	for i := range f.Flux.Workloads[:2] {
		w := &f.Flux.Workloads[i]
		for _, s := range names {
			more := *w
			more.Name += "-" + s
			more.Args = append(slices.Clone(w.Args), "--watch-label-selector=sharding.fluxcd.io/key="+s)
			f.Flux.Workloads = append(f.Flux.Workloads, more)
		}
	}
	for i := range f.Flux.Workloads[:2] {
		w := &f.Flux.Workloads[i]
		w.Args = append(slices.Clone(w.Args), "--watch-label-selector=!sharding.fluxcd.io/key")
	}
}

func TestExamine(t *testing.T) {
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := healthy()
			tc.spoil(f)
			var got []string
			for _, g := range doctor.Examine(f).Checks {
				for _, one := range g.Findings {
					got = append(got, string(one.Severity)+" "+one.Code)
					if one.What == "" || one.Remedy == "" {
						t.Errorf("%s says too little: %+v", one.Code, one)
					}
				}
			}
			if text := strings.Join(got, ", "); text != tc.want {
				t.Errorf("found %q, want %q", text, tc.want)
			}
		})
	}
}

// TestPage is the text of reports.
func TestPage(t *testing.T) {
	for name, breaks := range map[string][]string{
		"healthy": nil,
		"sick": {"TwoConfigMaps", "Restarts", "CallersClock", "OldCRD", "NoPolicy", "NoRight", "OldFlux", "DefaultAccount", "TooFewWorkers", "SourceFails",
			"Unreachable", "AddonsFailed", "Expires", "SomebodyReads", "NoCluster", "OverrideOver"},
		"unread": {"HubUnread"},
	} {
		f := healthy()
		for _, b := range breaks {
			cases[b].spoil(f)
		}
		if name == "sick" {
			for range 7 {
				cases["Unreachable"].spoil(f)
			}
		}
		var b strings.Builder
		must.Do(t, doctor.Examine(f).Page(false).Flush(&b))
		golden.Compare(t, filepath.Join("testdata", name+".txt"), b.String())
	}
}

// TestChartFails: of a chart that Flux cannot read it says whose it is, and that its name may be wrong.
func TestChartFails(t *testing.T) {
	f := &doctor.Facts{Sources: []doctor.Source{{Name: "HelmChart flux-system/chandler-web-1", Reason: "InvalidChartReference",
		Message: "invalid chart reference: no such chart", Users: []string{"add-on web of set flux-system/base"}}}}
	const want = "HelmChart flux-system/chandler-web-1 (add-on web of set flux-system/base): InvalidChartReference: " +
		"invalid chart reference: no such chart"
	for _, g := range doctor.Examine(f).Checks {
		if g.Check != doctor.CheckSources {
			continue
		}
		if one := g.Findings[0]; one.Objects[0] != want || !strings.Contains(one.Remedy, "the chart's name or version") {
			t.Errorf("it says %q, and %q", one.Objects, one.Remedy)
		}
	}
}

// TestWordsAreWhole: what is told of a condition is not cut within a word.
func TestWordsAreWhole(t *testing.T) {
	held := set("Ready True Succeeded", "RemovalsHeld True TooManyRemovals")
	for i := range held.Status.Conditions {
		held.Status.Conditions[i].Message = strings.Repeat("intended ", 40)
	}
	f := &doctor.Facts{}
	f.Fleet.Set(held, 3, now)
	for _, g := range doctor.Examine(f).Checks {
		for _, one := range g.Findings {
			if one.Code == "RemovalsHeld" && !strings.Contains(one.Objects[0], "intended… (and ") {
				t.Errorf("it says %q", one.Objects)
			}
		}
	}
}

// TestSetAside: whoever counts the clusters finds those that are wanted not to be served.
func TestSetAside(t *testing.T) {
	f := &doctor.Facts{}
	cluster("Ready True Succeeded", "Reachable True ProbeSucceeded")(f)
	cluster("Ready True Paused", "Suspended True Paused", "Reachable True ProbeSucceeded")(f)
	cases["Sleeping"].spoil(f)
	cases["Maintenance"].spoil(f)
	cases["Maintenance"].spoil(f)
	going := registration("Ready True Succeeded")
	going.DeletionTimestamp = &metav1.Time{Time: now}
	f.Fleet.Registration(going, now)
	const want = "1 of 6 clusters are Ready, 1 is paused, 1 is suspended by the origin, 2 are in maintenance, 1 is being deleted"
	for _, g := range doctor.Examine(f).Checks {
		if g.Check == doctor.CheckClusters && g.Summary != want {
			t.Errorf("it says %q", g.Summary)
		}
	}
}

// TestColour: colours say nothing that the words do not.
func TestColour(t *testing.T) {
	var plain, coloured strings.Builder
	r := doctor.Examine(healthy())
	_ = r.Page(false).Flush(&plain)
	_ = r.Page(true).Flush(&coloured)
	text := strings.NewReplacer("\x1b[32m", "", "\x1b[0m", "").Replace(coloured.String())
	if coloured.String() == plain.String() || text != plain.String() {
		t.Errorf("%q", coloured.String())
	}
}
