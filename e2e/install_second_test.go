// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// TestSecondHub installs two hubs on one management cluster. The second one waits and does nothing, whatever happens to the first one, until
// that is uninstalled.
func TestSecondHub(t *testing.T) {
	beside(t)
	h := startHub(t, hubOptions{name: "hub-second", flux: &localfleet.FluxOptions{}, bare: true})
	s := &second{installation: &installation{journey: &journey{hub: h}, parent: t, extra: quick}, one: workload(t, "workload-a")}
	s.service = newService(t)
	apply(t, h.Client, kustomize(t, filepath.Join("..", "config", "default")))
	s.run(t)
	s.allowSecrets(t)
	registerBy(t, s.Client, "tenants", "one", kubeconfigOf(t, s.one), map[string]string{"tier": "prod"})
	step(t, "the first hub delivers", func(t *testing.T) { s.delivers(t, "blue") })
	step(t, "a second one is not ready, and says why", s.refused)
	step(t, "it does not step in while the first one restarts", s.restarted)
	step(t, "and has written nothing", s.wroteNothing)
	step(t, "it works when the first is uninstalled", s.succeeds)
}

// delivers changes the set, and reads it back from the cluster.
func (s *second) delivers(t *testing.T, color string) {
	t.Helper()
	apply(t, s.Client, strings.ReplaceAll(installedSet, "blue", color))
	soon(t, "the add-on is "+color, func() error { return wantData(t.Context(), s.one, "default", "installed", "color", color) })
}

// has wants the Lease to be of an installation.
func (s *second) has(ctx context.Context, installation string) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "hub.chandler.dev"}, lease); err != nil {
		return nil, err
	}
	if got := lease.Labels["chandler.dev/installation"]; got != installation {
		return nil, fmt.Errorf("the Lease is of the hub in namespace %s, want %s", got, installation)
	}
	return lease, nil
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
	yaml, errs, code := chandler(t, "install", "--export", "--image", hubImage, "--namespace", "second", "--replicas", "1", "--", "--hub-id=second")
	if code != 0 {
		t.Fatal(errs)
	}
	for _, o := range objects(t, yaml) {
		switch o.GetKind() {
		case "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ClusterRole":
			continue // there, and the first one's
		case "ClusterRoleBinding", "RoleBinding":
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
	s.says(t, "the hub in namespace second does nothing", "in namespace chandler-system", "delete lease hub.chandler.dev")
	if err := s.ready(ctx); err == nil {
		t.Error("it says that it is ready")
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

// restarted: a hub that is down, and has given the Lease back, is still the one.
func (s *second) restarted(t *testing.T) {
	ctx := t.Context()
	before, err := s.has(ctx, hubNamespace)
	check(t, err)
	s.stop()
	looks, err := s.looks(localfleet.SecondHubUser)
	check(t, err)
	soon(t, "the second hub has looked three times while the first is down", func() error {
		now, err := s.looks(localfleet.SecondHubUser)
		if err == nil && now < looks+3 {
			err = fmt.Errorf("%d looks, and %d before", now, looks)
		}
		return err
	})
	_, err = s.has(ctx, hubNamespace)
	check(t, err)
	s.run(t)
	s.delivers(t, "green")
	after, err := s.has(ctx, hubNamespace)
	check(t, err)
	if after.UID != before.UID {
		t.Error("the Lease was made anew")
	}
}

// looks counts how often a hub has read the Lease.
func (s *second) looks(user string) (n int, err error) {
	requests, err := s.RequestsOf(user)
	for i := range requests {
		if requests[i].ObjectRef.Resource == "leases" && requests[i].Verb == "get" {
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
		if r := &requests[i]; !slices.Contains([]string{"get", "list", "watch"}, r.Verb) {
			t.Errorf("%s %s", r.Verb, r.RequestURI)
		}
	}
}

// succeeds: who uninstalls a hub by hand deletes its Lease, or the second one waits for an hour.
func (s *second) succeeds(t *testing.T) {
	ctx := t.Context()
	s.stop()
	check(t, s.Client.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: "chandler"}}))
	lease, err := s.has(ctx, hubNamespace)
	check(t, err)
	check(t, s.Client.Delete(ctx, lease))
	soon(t, "the second is ready, and leads", func() error {
		lease, err := s.has(ctx, "second")
		if err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
			err = errors.New("it has given the Lease back")
		}
		return errors.Join(err, s.ready(ctx))
	})
}
