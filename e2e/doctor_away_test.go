// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// before is what there is to find before a hub is installed, and of one that went away.
func (s *sick) before(t *testing.T) {
	s.finds(t, nil, "ERROR HubMissing", "ERROR FluxMissing", "WARNING PolicyMissing")
	s.start(t)
	soon(t, "the hub leads", func() error {
		_, err := configMap(t.Context(), s.Cluster, hubNamespace, "chandler-hub")
		return err
	})
	s.stop()
	check(t, s.Client.Delete(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "hub.chandler.dev"}}))
	s.finds(t, nil, "WARNING HubNotSeen")
	s.start(t)
}

// away is what there is to find while the hub is down: its CRDs and Flux's may go meanwhile, and nobody looks at what is new.
func (s *sick) away(t *testing.T) {
	s.stop()
	s.finds(t, nil, "ERROR HubDoesNotLead")
	lease := &coordinationv1.Lease{}
	check(t, s.Client.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "hub.chandler.dev"}, lease))
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = ptr.To("fast"), &metav1.MicroTime{Time: time.Now().Add(time.Hour)}
	check(t, s.Client.Update(t.Context(), lease))
	s.finds(t, nil, "WARNING ClockOfHub")
	check(t, s.Client.Delete(t.Context(), lease))
	for _, tc := range []struct{ want, name string }{{"ERROR CRDMissing", "teams.chandler.dev"}, {"ERROR FluxCRDMissing", "buckets.source.toolkit.fluxcd.io"}} {
		mend := removed(s, tc.name, &apiextensionsv1.CustomResourceDefinition{})(t)
		s.finds(t, nil, tc.want)
		mend(t)
	}
	text := doctorSet("unseen", "tier: none", "[{name: doc4, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: doc4}}]}}]")
	apply(t, s.Client, text+"---\napiVersion: chandler.dev/v1alpha1\nkind: ClusterRegistration\nmetadata: {name: unseen, namespace: fleet}\nspec: {kubeConfig: {secretRef: {name: none}}}\n")
	s.finds(t, s.later(t, 11*time.Minute), "ERROR SetNotSeen", "ERROR ClusterNotSeen")
	check(t, s.Client.Delete(t.Context(), addonSet("flux-system", "unseen")))
	check(t, s.Client.Delete(t.Context(), registration("fleet", "unseen")))
	s.start(t)
}

// removed deletes an object, and makes it again in the end.
func removed[O client.Object](s *sick, name string, o O) func(*testing.T) func(*testing.T) {
	return func(t *testing.T) func(*testing.T) {
		check(t, s.Client.Get(t.Context(), client.ObjectKey{Name: name}, o))
		again := o.DeepCopyObject().(O)
		again.SetResourceVersion("")
		again.SetUID("")
		check(t, s.Client.Delete(t.Context(), o))
		soon(t, name+" is gone", func() error { return wantGone(t.Context(), s.Client, o) })
		return func(t *testing.T) { check(t, s.Client.Create(t.Context(), again)) }
	}
}

// later returns the arguments by which the command reaches an API server that is ahead of this machine: a proxy before the real one
// writes another time into its answers.
func (s *sick) later(t *testing.T, by time.Duration) []string {
	t.Helper()
	target, err := url.Parse(s.Server())
	check(t, err)
	transport, err := rest.TransportFor(s.Config)
	check(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	proxy.ModifyResponse = func(r *http.Response) error {
		now, err := http.ParseTime(r.Header.Get("Date"))
		r.Header.Set("Date", now.Add(by).UTC().Format(http.TimeFormat))
		return err
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub"}
	config.CurrentContext = "hub"
	file := filepath.Join(t.TempDir(), "config")
	check(t, clientcmd.WriteToFile(*config, file))
	return []string{"--kubeconfig", file}
}

// clockFaults are those that an API server with another time shows.
func (s *sick) clockFaults(*testing.T) []malady {
	ahead := func(want []string, by time.Duration, fault func(*testing.T) func(*testing.T)) malady {
		return malady{want: want, fault: fault, with: func(t *testing.T) []string { return s.later(t, by) }}
	}
	none := func(*testing.T) func(*testing.T) { return func(*testing.T) {} }
	waits := s.waits("doc6")
	day, err := s.one.TokenKubeconfig(s.t.Context(), "doctor-later")
	check(s.t, err)
	s.t.Cleanup(func() { _ = s.one.Revoke(context.WithoutCancel(s.t.Context()), "doctor-later") })
	return []malady{
		ahead([]string{"ERROR CredentialExpired"}, 48*time.Hour, s.registered("over", day)),
		ahead([]string{"WARNING ClockOfCaller"}, time.Hour, none),
		ahead([]string{"WARNING ClockOfCaller"}, -time.Hour, none),
		ahead([]string{"WARNING ClusterSlow"}, 11*time.Minute, s.applied("slow", doctorSet("slow", "tier: prod", waits))),
	}
}

// waits are the add-ons of a set that wait for a source: Flux tries to read it, and after half a minute they have failed.
func (s *sick) waits(addon string) string {
	return fmt.Sprintf("[{name: %[1]s, kustomization: {path: ./, sourceRef: {name: nowhere}}}], "+
		"sources: [{name: nowhere, kind: GitRepository, spec: {interval: 1m, timeout: 5s, url: %[2]s/a.git}}]", addon, deadServer(s.t))
}

// fails is a rollout of a good revision, and then of one that the cluster's API server refuses.
func (s *sick) fails(t *testing.T) func(*testing.T) {
	set := func(data string) string {
		return doctorSet("fails", "tier: prod", "[{name: doc5, manifests: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: doc5}, "+data+"}]}}], "+
			"rollout: {waves: [{name: all, size: 100%}]}")
	}
	mend := s.applied("fails", set("data: {a: b}"))(t)
	soon(t, "the first revision is there", func() error {
		return condition(t.Context(), s.Client, addonSet("flux-system", "fails"), hubv1.ReadyCondition, metav1.ConditionTrue, "")
	})
	apply(t, s.Client, set("data: {a: [not, a, text]}"))
	return mend
}

// moreFaults are those that the other tables have no place for.
func (s *sick) moreFaults(*testing.T) []malady {
	deleted := func(o client.Object, text string) func(*testing.T) func(*testing.T) {
		return func(t *testing.T) func(*testing.T) {
			apply(t, s.Client, text)
			return func(t *testing.T) {
				check(t, s.Client.Delete(t.Context(), o))
				soon(t, "it is gone", func() error { return wantGone(t.Context(), s.Client, o) })
			}
		}
	}
	team := &hubv1.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "doctors"}}
	return []malady{
		{want: []string{"WARNING PolicyUnbound"}, fault: removed(s, "chandler-copies", &admissionv1.ValidatingAdmissionPolicyBinding{})},
		{want: []string{"WARNING FluxRemoteBases"}, fault: deleted(team, "{apiVersion: chandler.dev/v1alpha1, kind: Team, metadata: {name: doctors, namespace: flux-system}, "+
			"spec: {clusterSelector: {matchLabels: {tier: none}}, namespaces: [{name: doctors}]}}")},
		{want: []string{"ERROR FluxIdentityGate"}, fault: deleted(registration("flux-system", "eks"), "{apiVersion: chandler.dev/v1alpha1, kind: ClusterRegistration, "+
			"metadata: {name: eks, namespace: flux-system}, spec: {kubeConfig: {workloadIdentity: {provider: aws, serviceAccountName: a, cluster: 'arn:aws:eks:eu-central-1:123456789012:cluster/prod'}}}}")},
		{want: []string{"ERROR RolloutFailed", "ERROR ClusterNotReady"}, fault: s.fails},
	}
}

// doctorFinds wants the doctor to find something on a management cluster of another test, which has the fault by its own story.
func doctorFinds(t *testing.T, kubeconfig string, want ...string) {
	t.Helper()
	soon(t, "the doctor finds "+strings.Join(want, ", "), func() error {
		out, errs, _ := chandler(t, "doctor", "--kubeconfig", kubeconfig)
		for _, w := range want {
			if !strings.Contains(out, "  "+w+": ") {
				return fmt.Errorf("it does not find %s: %s\n%s", w, errs, out)
			}
		}
		return nil
	})
}
