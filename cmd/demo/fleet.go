// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/examples"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// namespace is the namespace of the origins on the management cluster.
const namespace = "fleet"

// serve serves the example chart and the example Git repository on loopback.
func (f *fleet) serve() (err error) {
	if f.charts, err = localfleet.NewChartServer(); err != nil {
		return err
	}
	if err := f.charts.Publish(examples.FS, "charts/podinfo"); err != nil {
		return err
	}
	if f.git, err = localfleet.NewGitServer(); err != nil {
		return err
	}
	files, err := examples.GitFiles()
	if err != nil {
		return err
	}
	_, err = f.git.Commit("fleet", files)
	return err
}

// register creates the origins of the three clusters, labels them, and applies examples/quickstart.
func (f *fleet) register(ctx context.Context) error {
	labels := map[string]string{hubv1.RegisterLabel: "true", "tier": "prod"}
	for i, w := range f.workloads {
		kubeconfig, err := w.Kubeconfig("kubernetes-admin", "system:masters")
		if err != nil {
			return err
		}
		switch i {
		case 0:
			err = f.labelTenant(ctx, w.name, labels)
		case 1:
			err = localfleet.CAPICluster(ctx, f.hub.Client, namespace, w.name, labels, kubeconfig)
		default:
			err = f.hub.Client.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.name, Labels: labels}, Data: map[string][]byte{"kubeconfig": kubeconfig},
			})
		}
		if err != nil {
			return fmt.Errorf("register %s: %w", w.name, err)
		}
		f.out.linef("labelled %s %q: %s=true, tier=prod", w.origin, w.name, hubv1.RegisterLabel)
	}
	local := map[string]string{examples.Podinfo: f.charts.URL(), examples.Repository: f.git.URL("fleet")}
	for _, file := range []string{"quickstart/sources.yaml", "quickstart/addonset.yaml"} {
		text, err := examples.Read(file, local)
		if err != nil {
			return err
		}
		if err := f.apply(ctx, text); err != nil {
			return fmt.Errorf("apply examples/%s: %w", file, err)
		}
		f.out.linef("applied examples/%s", file)
	}
	return nil
}

// labelTenant labels the tenant that Kamaji has made, as a platform team would.
func (f *fleet) labelTenant(ctx context.Context, name string, labels map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("kamaji.clastix.io/v1alpha1")
	u.SetKind("TenantControlPlane")
	u.SetNamespace(namespace)
	u.SetName(name)
	return f.hub.Client.Patch(ctx, u, client.RawPatch(types.MergePatchType, patch))
}

func (f *fleet) apply(ctx context.Context, text string) error {
	for part := range strings.SplitSeq(text, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(part), &u.Object); err != nil {
			return err
		}
		if err := f.hub.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl")); err != nil {
			return err
		}
	}
	return nil
}

// readBack reads the add-ons' objects from each workload cluster.
func (f *fleet) readBack(ctx context.Context) error {
	f.out.line("")
	f.out.line("Read back from the workload clusters' own APIs:")
	for _, w := range f.workloads {
		d := &appsv1.Deployment{}
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "podinfo", Name: "podinfo"}, d); err != nil {
			return fmt.Errorf("read back from %s: %w", w.name, err)
		}
		p := &networkingv1.NetworkPolicy{}
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "apps", Name: "deny-all"}, p); err != nil {
			return fmt.Errorf("read back from %s: %w", w.name, err)
		}
		if d.Status.AvailableReplicas != 2 {
			return fmt.Errorf("%s: Deployment podinfo/podinfo has %d of 2 replicas", w.name, d.Status.AvailableReplicas)
		}
		f.out.linef("  %-8s Deployment podinfo/podinfo %d/%d, NetworkPolicy apps/deny-all", w.name, d.Status.AvailableReplicas, *d.Spec.Replicas)
	}
	f.out.line("")
	return nil
}

// explain prints commands for looking around.
func (f *fleet) explain(ctx context.Context) {
	write := func(c *localfleet.Cluster) string {
		path := filepath.Join(f.dir, c.Name+".kubeconfig")
		raw, err := c.Kubeconfig("you", "system:masters")
		if err == nil {
			err = os.WriteFile(path, raw, 0o600)
		}
		if err != nil {
			return err.Error()
		}
		return path
	}
	f.out.line("")
	f.out.line("Look around while it runs:")
	if address, err := f.page(ctx); err == nil {
		f.out.linef("  %s    # the fleet in a browser, as chandler ui shows it", address)
	} else {
		f.out.linef("  the page is not there: %s", err)
	}
	f.out.linef("  export KUBECONFIG=%s    # the management cluster", write(f.hub))
	f.out.line("  kubectl get chandler -A")
	f.out.line("  kubectl get helmreleases,kustomizations -n flux-system")
	for _, w := range f.workloads {
		f.out.linef("  kubectl --kubeconfig %s get deployments -A    # %s", write(w.Cluster), w.origin)
	}
	f.out.line("  bin/chandler explain tenant1 podinfo    # why it has what it has, and who set each value")
	f.out.line("Things to try:")
	for _, line := range tries() {
		f.out.line("  " + line)
	}
	f.out.linef("The hub's log is %s", f.process.Log)
	f.out.line("Ctrl-C stops everything and leaves nothing behind.")
}

// tries are commands that show what happens then. What stands beside one holds with --teams and --rollout too.
func tries() []string {
	return []string{
		"kubectl label tenantcontrolplane tenant1 -n " + namespace + " " + hubv1.RegisterLabel + "=false --overwrite    # its add-ons leave",
		"kubectl delete secret tenant1-admin-kubeconfig -n " + namespace + "    # Kamaji issues another, and the add-ons go on",
		"kubectl delete tenantcontrolplane tenant1 -n " + namespace + "    # the hub orphans it at once",
		"kubectl label cluster.cluster.x-k8s.io capi1 -n " + namespace + " tier=dev --overwrite    # set base does not select it any more",
		"bin/chandler removals list base    # one of three clusters loses add-ons in an hour; the next waits for you",
	}
}

// poll is how often the table is read.
const poll = 300 * time.Millisecond
