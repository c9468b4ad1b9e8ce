// SPDX-License-Identifier: Apache-2.0

package uitest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/guard"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/ui/view"
)

// Platform is the namespace of a company's sets.
const Platform = "flux-system"

// chart is an add-on of a company, with the version before the present one.
type chart struct{ name, version, before string }

// product is one of its sets.
type product struct {
	name     string
	charts   []chart
	selector map[string]string
}

var products = []product{
	{"networking", []chart{{"cilium", "1.18.2", "1.17.6"}, {"coredns", "1.43.3", "1.43.0"}}, nil},
	{"ingress", []chart{{"cert-manager", "v1.19.1", "v1.18.2"}, {"external-dns", "1.19.0", "1.18.0"}, {"ingress-nginx", "4.13.3", "4.13.0"}},
		map[string]string{"site": "cloud"}},
	{"observability", []chart{{"alloy", "1.3.1", "1.2.0"}, {"kube-prometheus-stack", "78.3.2", "77.14.0"}, {"loki", "6.43.0", "6.41.1"}}, nil},
	{"security", []chart{{"kyverno", "3.5.2", "3.4.4"}, {"trivy-operator", "0.31.0", "0.30.1"}}, nil},
	{"backup", []chart{{"velero", "11.1.1", "10.1.3"}}, map[string]string{"env": "prod"}},
	{"store-apps", []chart{{"label-printer", "1.8.3", "1.8.3"}, {"pos-gateway", "2.15.0", "2.14.2"}}, map[string]string{"site": "store"}},
}

// Company makes the fleet of a company with 400 clusters: seven teams in four regions, and a cluster in each of its stores. Not all is
// well. The pictures in the documentation are of it.
func Company() *view.Fleet {
	f := &view.Fleet{}
	teams := []string{"checkout", "data", "identity", "logistics", "media", "payments", "search"}
	for i := range 400 {
		reg := registration(0)
		reg.Labels = map[string]string{}
		if i < 168 {
			env, region := []string{"prod", "staging", "dev"}[i/28%3], []string{"eu-central-1", "eu-west-1", "us-east-1", "ap-southeast-1"}[i/7%4]
			reg.Namespace, reg.Name = teams[i%7], fmt.Sprintf("%s-%s-%s", env, region, string(rune('a'+i/84)))
			reg.Labels["env"], reg.Labels["region"], reg.Labels["site"], reg.Labels["team"] = env, region, "cloud", reg.Namespace
			reg.Status.Provider, reg.Status.Nodes = []string{"ClusterAPI", "Kamaji"}[i%2], new(int32(6+i%9)) //nolint:gosec // a few
		} else {
			country := []string{"at", "de", "fr", "nl", "pl"}[i%5]
			reg.Namespace, reg.Name = "stores", fmt.Sprintf("%s-%04d", country, 101+7*(i-168))
			reg.Labels["env"], reg.Labels["country"], reg.Labels["site"] = "prod", country, "store"
			reg.Status.Provider, reg.Status.Nodes = "Secret", new(int32(1))
		}
		reg.Labels[hubv1.NameLabel] = reg.Name
		reg.Status.Credential = &hubv1.CredentialStatus{SecretName: reg.Name + "-kubeconfig", Key: "value",
			ExpirationTime: new(at(-211 * 24 * time.Hour))}
		reg.UID, reg.CreationTimestamp = types.UID(reg.Namespace+"/"+reg.Name), at(time.Duration(40+i)*26*time.Hour)
		reg.Status.KubernetesVersion = []string{"v1.34.2", "v1.34.1", "v1.33.6"}[min(i%7, 2)]
		ails(reg, i)
		f.Registrations = append(f.Registrations, reg)
	}
	for i := range products {
		f.Sets = append(f.Sets, products[i].set())
	}
	for i, reg := range f.Registrations {
		for j := range products {
			if p := &products[j]; labels.SelectorFromSet(p.selector).Matches(labels.Set(reg.Labels)) {
				f.Deliveries = append(f.Deliveries, p.delivery(f.Sets[j], reg, i))
			}
		}
	}
	for i := range f.Sets {
		products[i].finish(f, f.Sets[i])
	}
	for _, d := range f.Deliveries {
		for j := range d.Status.Addons {
			reg := f.Registrations[slices.IndexFunc(f.Registrations, func(r *hubv1.ClusterRegistration) bool {
				return r.Namespace == d.Spec.RegistrationRef.Namespace && r.Name == d.Spec.RegistrationRef.Name
			})]
			if a := &d.Status.Addons[j]; a.State == hubv1.AddonFailed {
				status.Set(reg, hubv1.ReadyCondition, metav1.ConditionFalse, hubv1.AddonsFailedReason, a.Name+" failed", a.Since.Time)
			}
		}
	}
	return f
}

// values are those of a chart in its set.
var values = map[string]string{
	"kyverno": `{"admissionController":{"replicas":3,"serviceMonitor":{"enabled":true}},"config":{"webhooks":` +
		`{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["kube-system"]}]}}}}`,
	"velero": `{"snapshotsEnabled":false,"schedules":{"nightly":{"schedule":"0 2 * * *"}}}`,
}

func by(env string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"env": env}}
}

// Revision returns the name of a revision of a company's set: the present one, or one before it.
func Revision(set string, before int) string {
	name, _ := content(set, before)
	return name
}

// content returns the name and the content of a revision.
func content(set string, before int) (name string, raw []byte) {
	at := slices.IndexFunc(products, func(p product) bool { return p.name == set })
	spec := products[at].spec(before)
	raw, hash, err := compile.Snapshot(&spec, nil)
	if err != nil {
		panic(err) // it is written here
	}
	return identity.Revision(set, hash, render.Epoch), raw
}

// Revisions are those of a set, as the hub keeps them.
func Revisions(s *hubv1.AddonSet) (out []*appsv1.ControllerRevision) {
	for before := range 3 {
		name, raw := content(s.Name, before)
		r := &appsv1.ControllerRevision{Revision: int64(12 - before), Data: runtime.RawExtension{Raw: raw}}
		r.Namespace, r.Name, r.Labels = s.Namespace, name, map[string]string{hubv1.AddonSetLabel: identity.LabelValue(s.Name)}
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s, hubv1.GroupVersion.WithKind("AddonSet"))}
		r.CreationTimestamp = at(time.Duration(before*20*24) * time.Hour)
		if started := s.Status.Rollout.Started; before == 0 {
			r.CreationTimestamp = *started
		}
		out = append(out, r)
	}
	return out
}

// away and paused are clusters by their number.
var away, paused = []int{171, 233, 302, 347, 388}, []int{30, 64, 250}

// ails has some clusters not answer, and some paused.
func ails(reg *hubv1.ClusterRegistration, i int) {
	since := Now.Add(-time.Duration(1+i%11*2) * time.Hour)
	switch {
	case slices.Contains(away, i):
		status.Set(reg, hubv1.ReachableCondition, metav1.ConditionFalse, "Timeout",
			"no answer within 10s: dial tcp 10.91."+fmt.Sprint(i%256)+".12:6443: i/o timeout", since)
	case slices.Contains(paused, i):
		status.Set(reg, hubv1.SuspendedCondition, metav1.ConditionTrue, hubv1.PausedReason, "spec.pause: database migration, see OPS-4127", since)
	}
}

// spec is what a set asked for, now or before.
func (p *product) spec(before int) hubv1.AddonSetSpec {
	s := hubv1.AddonSetSpec{SelectAll: p.selector == nil}
	if !s.SelectAll {
		s.ClusterSelector = &metav1.LabelSelector{MatchLabels: p.selector}
	}
	for _, c := range p.charts {
		body := fmt.Sprintf(`{"chart":{"spec":{"chart":%q,"version":%q,"sourceRef":{"kind":"HelmRepository","name":"mirror%s"}}},"values":%s}`,
			c.name, []string{c.version, c.before, c.before}[before], []string{"", "", "-old"}[before], cmp.Or(values[c.name], "{}"))
		s.Addons = append(s.Addons, hubv1.Addon{Name: c.name, AddonBody: hubv1.AddonBody{HelmRelease: &apiextensionsv1.JSON{Raw: []byte(body)}}})
	}
	if p.name == "security" {
		small := hubv1.AddonBody{HelmRelease: &apiextensionsv1.JSON{Raw: []byte(`{"values":{"admissionController":{"replicas":1}}}`)}}
		s.Overlays = []hubv1.Overlay{{Name: "small", ClusterSelector: by("dev"),
			Addons: []hubv1.AddonOverlay{{Name: "kyverno", AddonBody: small}}}}
	}
	return s
}

func (p *product) set() *hubv1.AddonSet {
	s := &hubv1.AddonSet{Spec: p.spec(0)}
	s.Namespace, s.Name, s.UID, s.Generation = Platform, p.name, types.UID(p.name), 1
	done := at(19 * 24 * time.Hour)
	s.Status.ObservedGeneration, s.Status.Revision = 1, Revision(p.name, 0)
	s.Status.Rollout = &hubv1.RolloutStatus{Phase: hubv1.RolloutDone, Revision: s.Status.Revision, CompletedRevision: s.Status.Revision,
		Started: new(at(20 * 24 * time.Hour)), CompletedTime: &done,
		Waves: []hubv1.WaveStatus{{Name: "first", Passed: true}, {Name: "quarter", Passed: true}, {Name: "rest", Passed: true}}}
	return s
}

// wave is the wave of a cluster: dev, staging or the rest.
func wave(reg *hubv1.ClusterRegistration) int {
	return max(0, slices.Index([]string{"dev", "staging", "prod"}, reg.Labels["env"]))
}

// delivery says how a set stands on a cluster.
func (p *product) delivery(s *hubv1.AddonSet, reg *hubv1.ClusterRegistration, i int) *hubv1.AddonDelivery {
	d := delivery(reg, s, 0, 0)
	ready := at(20 * 24 * time.Hour)
	d.Status.Addons = nil
	old := p.name == "security" && wave(reg) > 0 || p.name == "observability" && wave(reg) > 1 || p.name == "store-apps" && i > 290
	switch p.name {
	case "ingress":
		ready = at(time.Duration(150+i*2) * time.Minute)
	case "observability":
		ready = at(time.Duration(60+i*4-i*3*wave(reg)/2) * time.Minute)
	case "security":
		ready = at(time.Duration(200+i) * time.Minute)
	case "store-apps":
		ready = at(time.Duration(5+(292-i)/2) * time.Minute)
	}
	if old {
		ready, d.Spec.RevisionName = at(30*24*time.Hour), Revision(p.name, 1)
	}
	for _, c := range p.charts {
		a := hubv1.AddonStatus{Name: c.name, Kind: "HelmRelease", State: hubv1.AddonReady, Since: &ready, Version: c.version}
		if old {
			a.Version = c.before
		}
		a.Object = identity.FluxObject("chandler", types.NamespacedName{Namespace: reg.Namespace, Name: reg.Name}, c.name)
		p.trouble(&a, c, i, old)
		d.Status.Addons = append(d.Status.Addons, a)
	}
	if !old {
		d.Spec.Start = &hubv1.DeliveryStart{Time: metav1.NewTime(ready.Add(-4 * time.Minute))}
	}
	d.Status.ReadyRevision, d.Status.ReadyTime = "", nil
	if !slices.ContainsFunc(d.Status.Addons, func(a hubv1.AddonStatus) bool { return a.State != hubv1.AddonReady }) {
		d.Status.ReadyRevision, d.Status.ReadyTime = d.Spec.RevisionName, &ready
	} else {
		meta := d.Status.Conditions
		d.Status.Conditions = slices.DeleteFunc(meta, func(c metav1.Condition) bool { return c.Type == hubv1.ReadyCondition })
	}
	return d
}

// failures are what fails: an add-on on clusters, by their numbers.
var failures = map[string]struct {
	on  []int
	ago time.Duration
	why string
}{
	"kyverno": {[]int{58, 61, 145}, 172 * time.Minute,
		"UpgradeFailed: Helm upgrade failed for release kyverno/kyverno with chart kyverno@3.5.2: " +
			"timed out waiting for the condition: Deployment kyverno/kyverno-admission-controller: 1 of 3 replicas updated"},
	"loki": {[]int{33, 120}, 9 * time.Hour,
		"UpgradeFailed: Helm upgrade failed for release loki/loki with chart loki@6.43.0: cannot patch \"loki-write\" " +
			"with kind StatefulSet: StatefulSet.apps \"loki-write\" is invalid: spec: Forbidden: updates to statefulset spec are forbidden"},
	"cert-manager": {[]int{102}, 26 * time.Minute,
		"InstallFailed: Helm install failed for release cert-manager/cert-manager with chart cert-manager@v1.19.1: " +
			"failed to pull image quay.io/jetstack/cert-manager-controller:v1.19.1: 429 Too Many Requests"},
	"pos-gateway": {[]int{182, 209, 246, 261}, 18 * time.Minute,
		"UpgradeFailed: Helm upgrade failed for release pos/pos-gateway with chart pos-gateway@2.15.0: " +
			"context deadline exceeded: Deployment pos/pos-gateway: readiness probe failed: HTTP 503"},
}

// trouble has an add-on be something else than Ready on some clusters.
func (p *product) trouble(a *hubv1.AddonStatus, c chart, i int, old bool) {
	fails, known := failures[c.name]
	switch {
	case slices.Contains(away, i):
		since := at(time.Duration(1+i%11*2) * time.Hour)
		a.State, a.Before, a.Since, a.Message = hubv1.AddonUnreachable, hubv1.AddonReady, &since, "the cluster does not answer"
	case slices.Contains(paused, i):
		a.State, a.Before, a.Message = hubv1.AddonPaused, hubv1.AddonReady, "spec.pause: database migration, see OPS-4127"
	case known && slices.Contains(fails.on, i):
		since := at(fails.ago + time.Duration(i%5*13)*time.Minute)
		a.State, a.Version, a.Since, a.Message = hubv1.AddonFailed, c.before, &since, fails.why
		a.Reason, _, _ = strings.Cut(fails.why, ":")
	case c.name == "pos-gateway" && !old && i > 279:
		since := at(3 * time.Minute)
		a.State, a.Version, a.Since, a.Message = hubv1.AddonProgressing, c.before, &since, "Running 'upgrade' action with timeout of 5m0s"
	case c.name == "label-printer" && i%40 == 12:
		a.State, a.Version, a.Message = hubv1.AddonExcluded, "", "overlay no-printers excludes it"
	}
}

// finish says how the rollout of a set stands.
func (p *product) finish(f *view.Fleet, s *hubv1.AddonSet) {
	matched := int32(0)
	for _, d := range f.Deliveries {
		if d.Spec.AddonSetRef.Name == s.Name {
			matched++
		}
	}
	s.Status.Clusters = &hubv1.ClusterCounts{Matched: matched}
	under := func(phase hubv1.RolloutPhase, wave, waits string, started time.Duration) {
		quarter, tenth := new(intstr.FromString("25%")), new(intstr.FromString("10%"))
		s.Spec.Rollout = &hubv1.Rollout{Waves: []hubv1.Wave{
			{Name: "dev", ClusterSelector: by("dev"), MaxConcurrency: quarter, MaxFailures: tenth,
				Soak: &metav1.Duration{Duration: time.Hour}, Approval: "Manual"},
			{Name: "staging", ClusterSelector: by("staging"), MaxConcurrency: quarter,
				Soak: &metav1.Duration{Duration: 4 * time.Hour}, Approval: "Manual"}}}
		r := s.Status.Rollout
		r.Phase, r.Wave, r.WaitingFor, r.CompletedRevision, r.Started = phase, wave, waits, Revision(p.name, 1), new(at(started))
		r.Waves = []hubv1.WaveStatus{{Name: "dev", Passed: wave != "dev"}, {Name: "staging"}, {Name: "rest"}}
		r.CompletedTime = new(at(30 * 24 * time.Hour))
	}
	switch p.name {
	case "ingress":
		s.Status.Rollout.Started, s.Status.Rollout.CompletedTime = new(at(9*time.Hour)), new(at(140*time.Minute))
	case "security":
		under(hubv1.RolloutWaitingForApproval, "dev", "approval of wave dev", 6*time.Hour)
	case "observability":
		under(hubv1.RolloutSoaking, "staging", "the soak of wave staging, until 14:20", 13*time.Hour)
	case "store-apps":
		under(hubv1.RolloutProgressing, "rest", "clusters of wave rest: 12 running, 109 pending", 75*time.Minute)
		s.Spec.Rollout.Waves, s.Status.Rollout.Waves = nil, []hubv1.WaveStatus{{Name: "rest"}}
	case "backup":
		hold(f, s)
	}
}

// hold has an edit of a set's selector leave out all stores. The guard lets a tenth of the clusters go, and holds the rest.
func hold(f *view.Fleet, s *hubv1.AddonSet) {
	s.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod", "site": "cloud"}}
	var wanted []guard.Removal
	clusters := 0
	for _, d := range f.Deliveries {
		key := d.Spec.RegistrationRef.Key()
		if d.Spec.AddonSetRef.Name != s.Name {
			continue
		}
		if clusters++; key.Namespace == "stores" {
			wanted = append(wanted, guard.Removal{Cluster: key.String(), Digest: guard.Withdrawal(string(d.UID)), Addons: []string{"velero"}})
		}
	}
	v := guard.Decide(guard.Input{Wanted: wanted, Clusters: clusters, Window: time.Hour, Now: Now.Add(-35 * time.Minute)})
	s.Status.HeldRemovals, s.Status.Removals = v.Held, v.Removals
	s.Status.Clusters.Matched = int32(clusters - len(wanted)) //nolint:gosec // a count of clusters
}
