// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// commanded is a hub that `chandler install` installs.
type commanded struct {
	*installation
	one *localfleet.Cluster
}

const hubImage = "registry.example.org/chandler-hub:v0.1.0"

// TestInstallCommand installs a hub by the command line and uninstalls it in each of the ways of docs/uninstall.md, with an add-on that
// stays, is orphaned, and goes.
func TestInstallCommand(t *testing.T) {
	beside(t)
	h := startHub(t, hubOptions{name: "hub-command", flux: &localfleet.FluxOptions{}, bare: true})
	c := &commanded{installation: &installation{journey: &journey{hub: h}, parent: t}, one: workload(t, "workload-a")}
	c.service = newService(t) // outlives the steps
	step(t, "a dry run changes nothing", c.dryRun)
	step(t, "the hub is installed", c.install)
	c.allowSecrets(t)
	registerBy(t, c.Client, "tenants", "one", kubeconfigOf(t, c.one), map[string]string{"tier": "prod"})
	step(t, "an add-on arrives", c.arrives)
	step(t, "a second time changes nothing", c.again)
	step(t, "what would break something is refused", c.refusals)
	step(t, "the hub goes, and the add-on stays", c.keeps)
	step(t, "the hub comes back", c.install)
	step(t, "the hub goes, and orphans the add-on", c.orphans)
	step(t, "the hub is installed anew", c.install)
	c.label(t, "chandler.dev/register", "true", "one")
	step(t, "the add-on is taken over", c.arrives)
	step(t, "everything goes", c.removes)
}

// does runs the command, and returns what it prints.
func (c *commanded) does(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := chandler(t, append([]string{args[0], "--kubeconfig", c.KubeconfigFile(), "--timeout", expect.Patience.String()}, args[1:]...)...)
	if code != 0 {
		t.Fatalf("chandler %s: %s\n%s", strings.Join(args, " "), errs, out)
	}
	t.Logf("chandler %s\n%s", strings.Join(args, " "), out)
	return out
}

// fails runs the command, and wants it to refuse.
func (c *commanded) fails(t *testing.T, want string, args ...string) {
	t.Helper()
	out, errs, code := chandler(t, append([]string{args[0], "--kubeconfig", c.KubeconfigFile()}, args[1:]...)...)
	if code != 1 || !strings.Contains(errs, want) {
		t.Errorf("chandler %s: exit code %d: %s\n%s\nwant %s", strings.Join(args, " "), code, errs, out, want)
	}
}

func (c *commanded) crds(t *testing.T) (names []string) {
	t.Helper()
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	check(t, c.Client.List(t.Context(), list))
	for i := range list.Items {
		if list.Items[i].Spec.Group == "chandler.dev" {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}

func (c *commanded) dryRun(t *testing.T) {
	out := c.does(t, "install", "--image", hubImage, "--dry-run=server")
	if !strings.Contains(out, "deployment.apps/chandler created (server dry run)") || !strings.Contains(out, "Nothing was changed") {
		t.Errorf("it says\n%s", out)
	}
	if names := c.crds(t); len(names) > 0 {
		t.Errorf("there are %v", names)
	}
	check(t, wantGone(t.Context(), c.Client, c.deployment()))
}

func (c *commanded) install(t *testing.T) {
	out := c.does(t, "install", "--image", hubImage, "--", "--deselection-delay=1s", "--removal-delay=1s", "--chart-retention=1s", "--probe-interval=5s")
	for _, want := range []string{"customresourcedefinition.apiextensions.k8s.io/addonsets.chandler.dev ", "deployment.apps/chandler created", "The hub runs in namespace chandler-system"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	at := -1
	for _, line := range []string{"customresourcedefinition", "clusterrole.rbac.authorization.k8s.io/chandler-hub ", "validatingadmissionpolicy.", "deployment.apps/chandler "} {
		if at >= strings.LastIndex(out, line) {
			t.Errorf("%s is not in its place in\n%s", line, out)
		}
		at = strings.LastIndex(out, line)
	}
	c.run(t)
}

func (c *commanded) arrives(t *testing.T) {
	apply(t, c.Client, installedSet)
	soon(t, "the add-on is there", func() error { return wantData(t.Context(), c.one, "default", "installed", "color", "blue") })
	soon(t, "the set is Ready", func() error {
		return condition(t.Context(), c.Client, addonSet("flux-system", "plain"), "Ready", metav1.ConditionTrue, "")
	})
}

func (c *commanded) again(t *testing.T) {
	out := c.does(t, "install", "--image", hubImage)
	if strings.Contains(out, " created\n") || strings.Contains(out, " configured\n") || !strings.Contains(out, "deployment.apps/chandler unchanged\n") ||
		!strings.Contains(out, "The hub keeps its flags: --deselection-delay=1s") {
		t.Errorf("it says\n%s", out)
	}
}

func (c *commanded) refusals(t *testing.T) {
	c.fails(t, "-- --hub-id=chandler", "install", "--image", hubImage, "--", "--hub-id=other")
	c.fails(t, "already, in namespace chandler-system", "install", "--image", hubImage, "--namespace", "second")
	c.fails(t, "v0.1.0 is installed", "install", "--image", "registry.example.org/chandler-hub:v0.0.9")
	c.fails(t, "nothing is changed: there are 1 AddonSet, 1 ClusterRegistration and 1 AddonDelivery", "uninstall", "--yes")
	c.fails(t, "leave out --delete-crds", "uninstall", "--yes", "--addons=keep", "--delete-crds")
	c.fails(t, "--yes does it without asking", "uninstall", "--addons=keep")
	// Somebody else's field, and somebody else's Deployment.
	edit := func(patch string) {
		check(t, c.Client.Patch(t.Context(), c.deployment(), client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.FieldOwner("helm")))
	}
	edit(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm"}}}`)
	c.fails(t, "was installed by Helm", "install", "--image", hubImage)
	c.fails(t, "was installed by Helm", "uninstall", "--addons=keep", "--yes")
	edit(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}},"spec":{"template":{"spec":{"containers":[{"name":"hub","image":"registry.example.org/chandler-hub:v0.1.1"}]}}}}`)
	c.fails(t, "v0.1.1 is installed", "install", "--image", hubImage)
	c.fails(t, "--force-conflicts", "install", "--image", hubImage, "--allow-skew")
	out := c.does(t, "install", "--image", hubImage, "--allow-skew", "--force-conflicts")
	if !strings.Contains(out, "deployment.apps/chandler configured\n") {
		t.Errorf("it says\n%s", out)
	}
	c.stop()
	c.run(t) // the pods are others
}

// uninstalls runs the command while the hub's processes run, as its pods would.
func (c *commanded) uninstalls(t *testing.T, args ...string) string {
	t.Helper()
	from := time.Now()
	out := c.does(t, append([]string{"uninstall", "--yes"}, args...)...)
	c.stop()
	c.withoutRights = append(c.withoutRights, span{from, time.Now()})
	for _, gone := range []client.Object{
		c.deployment(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "chandler-hub"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: "chandler"}},
	} {
		check(t, wantGone(t.Context(), c.Client, gone))
	}
	if !strings.Contains(out, "These stay:\n") || !strings.Contains(out, "  namespace/chandler-system: ") {
		t.Errorf("it says\n%s", out)
	}
	return out
}

func (c *commanded) keeps(t *testing.T) {
	out := c.uninstalls(t, "--addons=keep")
	if !strings.Contains(out, "  configmap/chandler-hub: ") || !strings.Contains(out, "  1 AddonSet, ") {
		t.Errorf("it does not say what stays:\n%s", out)
	}
	check(t, wantData(t.Context(), c.one, "default", "installed", "color", "blue"))
	if names := c.crds(t); len(names) != 4 {
		t.Errorf("the CRDs are %v", names)
	}
}

// leads waits until a hub that runs now has renewed the Lease. The one before could not release it, since uninstall had taken its rights.
func (c *commanded) leads(t *testing.T) {
	t.Helper()
	began := time.Now()
	soon(t, "a hub leads", func() error {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "hub.chandler.dev"}}
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil {
			return err
		}
		if lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Time.Before(began) {
			return fmt.Errorf("Lease %s was renewed last at %s", lease.Name, lease.Spec.RenewTime)
		}
		return nil
	})
}

func (c *commanded) orphans(t *testing.T) {
	c.leads(t)
	out := c.uninstalls(t, "--addons=orphan")
	for _, want := range []string{"AddonSet flux-system/plain: deletionPolicy: Orphan", "1 AddonSet deleted", "Cluster tenants/one is unregistered"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	check(t, wantNothingOfOurs(t.Context(), c.Client))
	check(t, wantData(t.Context(), c.one, "default", "installed", "color", "blue"))
}

func (c *commanded) removes(t *testing.T) {
	c.uninstalls(t, "--addons=remove", "--delete-crds")
	check(t, wantNoConfigMap(t.Context(), c.one, "default", "installed"))
	if names := c.crds(t); len(names) > 0 {
		t.Errorf("the CRDs are %v", names)
	}
	check(t, wantGone(t.Context(), c.Client, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "hub.chandler.dev"}}))
	c.fails(t, fmt.Sprintf("there is nothing of a hub in namespace %s", hubNamespace), "uninstall", "--yes")
}
