// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/test/localfleet"
)

// second is a hub that somebody installs beside another one.
type second struct {
	*installation
	one     *localfleet.Cluster
	process *localfleet.Process
	health  string
}

// TestSecondHub installs two hubs on one management cluster. The second one does nothing, whatever happens to the first one, until that is
// uninstalled.
func TestSecondHub(t *testing.T) {
	beside(t)
	h := startHub(t, hubOptions{name: "hub-second", flux: &localfleet.FluxOptions{}, bare: true})
	s := &second{installation: &installation{journey: &journey{hub: h}, parent: t, extra: quick}, one: workload(t, "workload-a")}
	s.service = newService(t)
	apply(t, h.Client, kustomize(t, filepath.Join("..", "config", "default")))
	s.forge(t)
	s.run(t)
	s.allowSecrets(t)
	registerBy(t, s.Client, "tenants", "one", kubeconfigOf(t, s.one), map[string]string{"tier": "prod"})
	step(t, "the first hub delivers", func(t *testing.T) { s.delivers(t, "blue") })
	step(t, "a second one is not ready, and says why", s.refused)
	step(t, "one without --leader-elect ends, and says why", s.alone)
	step(t, "the first one goes on after a restart, whatever others write", s.restarted)
	step(t, "the second one has written nothing", s.wroteNothing)
	step(t, "the second one works when the first is uninstalled", s.succeeds)
}

// delivers changes the set, and reads it back from the cluster.
func (s *second) delivers(t *testing.T, color string) {
	t.Helper()
	apply(t, s.Client, strings.ReplaceAll(installedSet, "blue", color))
	soon(t, "the add-on is "+color, func() error { return wantData(t.Context(), s.one, "default", "installed", "color", color) })
}

func (s *second) lease(namespace string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hub.chandler.dev"}}
}

// ready asks the second hub whether it is ready.
func (s *second) ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.health+"/readyz", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz says %s", res.Status)
	}
	return nil
}

func (s *second) refused(t *testing.T) {
	ctx := t.Context()
	yaml, errs, code := chandler(t, "install", "--export", "--image", hubImage, "--namespace", "second", "--replicas", "1", "--", "--leader-elect", "--hub-id=second")
	if code != 0 {
		t.Fatal(errs)
	}
	for _, o := range objects(t, yaml) {
		switch o.GetKind() {
		case "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ClusterRole":
			continue // there, and the first one's
		case "ClusterRoleBinding":
			o.SetName("chandler-second")
		}
		check(t, s.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"), client.ForceOwnership))
	}
	pods := &corev1.PodList{}
	soon(t, "its pod is there", func() error {
		if err := s.Client.List(ctx, pods, client.InNamespace("second")); err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].Status.Phase != corev1.PodRunning {
			return fmt.Errorf("%d pods", len(pods.Items))
		}
		return nil
	})
	kubeconfig, err := s.PodKubeconfig(ctx, &pods.Items[0])
	check(t, err)
	file := filepath.Join(t.TempDir(), "config")
	check(t, os.WriteFile(file, kubeconfig, 0o600))
	s.health = address(t)
	args := slices.Concat(pods.Items[0].Spec.Containers[0].Args, quick, []string{"--allow-target-cidrs=127.0.0.0/8", "--metrics-bind-address=0",
		"--chart-bind-address=" + address(t), "--chart-url=http://" + s.service.address(), "--health-probe-bind-address=" + s.health})
	s.process, err = s.RunHub(ctx, localfleet.HubOptions{Binary: hubBinary, Kubeconfig: file, Env: []string{"POD_NAMESPACE=second"}, Args: args, Health: s.health})
	check(t, err)
	s.parent.Cleanup(s.process.Stop)
	s.says(t, "the hub in namespace second does nothing", "in namespace chandler-system", "was there first")
	if err := s.ready(ctx); err == nil {
		t.Error("it says that it is ready")
	}
	if err := wantGone(ctx, s.Client, s.lease("second")); err != nil {
		t.Errorf("it has a Lease: %v", err)
	}
}

func (s *second) says(t *testing.T, want ...string) {
	t.Helper()
	soon(t, "the second hub says why it does nothing", func() error {
		log, err := os.ReadFile(s.process.Log)
		for _, w := range want {
			if err == nil && !strings.Contains(string(log), w) {
				err = fmt.Errorf("its log does not say %q:\n%s", w, log)
			}
		}
		return err
	})
}

func (s *second) alone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, hubBinary, "--metrics-bind-address=0", "--health-probe-bind-address=0", "--chart-bind-address=0")
	cmd.Env = append(os.Environ(), "POD_NAMESPACE=third", "KUBECONFIG="+s.KubeconfigFile())
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "hub: the hub in namespace third does nothing: another one is installed") {
		t.Errorf("%v: %s", err, out)
	}
}

// forge is what a tenant of the management cluster may do before there is a hub: a Lease, owned by an account of his, that sleeps.
func (s *second) forge(t *testing.T) {
	ctx := t.Context()
	namespace(t, s.Client, "forger")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "forger", Name: "chandler"}}
	check(t, s.Client.Create(ctx, account))
	forged := s.lease("forger")
	forged.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: account.Name, UID: account.UID}}
	check(t, s.Client.Create(ctx, forged))
}

// restarted: what a tenant has written before there was a hub gains him nothing when he wakes it; and a hub that is down is still the first.
func (s *second) restarted(t *testing.T) {
	ctx := t.Context()
	forged := s.lease("forger")
	check(t, s.Client.Get(ctx, client.ObjectKeyFromObject(forged), forged))
	forged.Spec = coordinationv1.LeaseSpec{HolderIdentity: ptr.To("forged"), LeaseDurationSeconds: ptr.To[int32](1 << 30),
		AcquireTime: &metav1.MicroTime{Time: time.Unix(1, 0)}, RenewTime: &metav1.MicroTime{Time: time.Now().Add(1000 * time.Hour)}}
	check(t, s.Client.Update(ctx, forged))
	looks, err := s.looks(localfleet.HubUser)
	check(t, err)
	soon(t, "the first hub has looked twice, and works", func() error {
		now, err := s.looks(localfleet.HubUser)
		if err == nil && now < looks+2 {
			err = fmt.Errorf("%d looks, and %d before", now, looks)
		}
		return err
	})
	s.delivers(t, "red")
	lease := s.lease(hubNamespace)
	check(t, s.Client.Get(ctx, client.ObjectKeyFromObject(lease), lease))
	if !forged.CreationTimestamp.Before(&lease.CreationTimestamp) {
		t.Errorf("what is forged is from %s, and the hub from %s", forged.CreationTimestamp, lease.CreationTimestamp)
	}
	before := lease.UID
	s.stop()
	// For longer than a Lease is good without being renewed, and the second one looks again meanwhile.
	looks, err = s.looks(localfleet.SecondHubUser)
	check(t, err)
	soon(t, "the second hub has looked twice while the first is down", func() error {
		now, err := s.looks(localfleet.SecondHubUser)
		if err == nil && now < looks+2 {
			err = fmt.Errorf("%d looks, and %d before", now, looks)
		}
		return errors.Join(err, wantGone(ctx, s.Client, s.lease("second")))
	})
	s.run(t)
	s.delivers(t, "green")
	check(t, s.Client.Get(ctx, client.ObjectKeyFromObject(lease), lease))
	if lease.UID != before {
		t.Error("the Lease was made anew")
	}
	if o := lease.OwnerReferences; len(o) != 1 || o[0].Kind != "ServiceAccount" || o[0].Name != "chandler" {
		t.Errorf("the owners of the Lease are %v", o)
	}
}

// looks counts how often a hub has listed the Leases.
func (s *second) looks(user string) (n int, err error) {
	requests, err := s.RequestsOf(user)
	for i := range requests {
		if requests[i].ObjectRef.Resource == "leases" && requests[i].Verb == "list" {
			n++
		}
	}
	return n, err
}

func (s *second) wroteNothing(t *testing.T) {
	requests, err := s.RequestsOf(localfleet.SecondHubUser)
	check(t, err)
	if len(requests) == 0 {
		t.Fatal("the audit log knows nothing of it")
	}
	for i := range requests {
		if r := &requests[i]; !slices.Contains([]string{"get", "list", "watch"}, r.Verb) && r.ObjectRef.Resource != "subjectaccessreviews" {
			t.Errorf("%s %s", r.Verb, r.RequestURI)
		}
	}
}

// succeeds: the Lease of the first one goes with its ServiceAccount. What somebody has forged was there before the second one, and does not
// count.
func (s *second) succeeds(t *testing.T) {
	ctx := t.Context()
	s.stop()
	check(t, s.Client.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: "chandler"}}))
	check(t, s.Client.Delete(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: "chandler"}}))
	soon(t, "the Lease of the first is gone", func() error { return wantGone(ctx, s.Client, s.lease(hubNamespace)) })
	soon(t, "the second is ready", func() error { return s.ready(ctx) })
	soon(t, "the second leads", func() error {
		lease := s.lease("second")
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
			return err
		}
		if ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
			return errors.New("nobody holds its Lease")
		}
		return nil
	})
}
