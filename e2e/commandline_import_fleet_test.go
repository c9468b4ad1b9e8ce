// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// handFleet are clusters on which hand-written objects run, in one namespace of the management cluster.
type handFleet struct {
	*hub
	namespace string
	clusters  map[string]*localfleet.Cluster
	colors    map[string]string
	// before is what each cluster had before the import, and uids are those of the Flux objects, by name.
	before map[string]deployed
	uids   map[string]types.UID
}

// written is a text for a cluster, with the path of its Kustomization.
func (f *handFleet) written(cluster, path, text string) string {
	return strings.NewReplacer("NAMESPACE", f.namespace, "NAME", cluster, "COLOR", f.colors[cluster], "PATH", path).Replace(text)
}

// objects are the Flux objects of a cluster.
func (f *handFleet) objects(cluster string) []client.Object {
	return []client.Object{&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: cluster + "-settings"}},
		&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: cluster + "-hand"}}}
}

// register makes the namespace, with the kubeconfig of each cluster.
func (f *handFleet) register(t *testing.T) {
	namespace(t, f.Client, f.namespace)
	for name, c := range f.clusters {
		check(t, f.Client.Create(t.Context(), secret(f.namespace, name+"-kubeconfig", map[string][]byte{"kubeconfig": kubeconfigOf(t, c)})))
	}
}

// runs waits until the hand-written objects have delivered, and notes what is there.
func (f *handFleet) runs(t *testing.T) {
	ctx := t.Context()
	f.before, f.uids = map[string]deployed{}, map[string]types.UID{}
	for name, c := range f.clusters {
		soon(t, "the hand-written objects deliver to "+name, func() error {
			found, err := deployedTo(ctx, c)
			f.before[name] = found
			return errors.Join(err, wantData(ctx, c, "imp-apps", "imp-settings", "color", f.colors[name]), wantData(ctx, c, "default", "imp-hand", "cluster", name))
		})
		for _, o := range f.objects(name) {
			check(t, f.Client.Get(ctx, client.ObjectKeyFromObject(o), o))
			f.uids[o.GetName()] = o.GetUID()
		}
	}
}

// imports runs chandler import into a folder, once Flux has applied all of it, which begins again every two seconds: import leaves what is
// not Ready.
func (f *handFleet) imports(t *testing.T, args ...string) (dir, out, errs string, code int) {
	soon(t, "Flux has applied all of it", func() error {
		dir = filepath.Join(t.TempDir(), "out")
		out, errs, code = chandler(t, append([]string{"import", "--output-dir", dir}, args...)...)
		if strings.Contains(errs, "let Flux finish first") {
			return errors.New(errs)
		}
		return nil
	})
	for _, c := range f.clusters {
		if strings.Contains(out+errs, string(kubeconfigOf(t, c))) {
			t.Fatal("it prints a kubeconfig")
		}
	}
	return dir, out, errs, code
}

// takenOver runs the commands that import has printed, applies the set that it has written, and looks whether everything is the very same.
func (f *handFleet) takenOver(t *testing.T, dir, printed string) {
	ctx := t.Context()
	sets, err := os.ReadFile(filepath.Join(dir, f.namespace, "fleet.yaml"))
	check(t, err)
	for line := range strings.SplitSeq(printed, "\n") {
		if strings.Contains(line, "kubectl ") {
			expect.Kubectl(t, f.Client, line)
		}
	}
	soon(t, "all clusters answer", func() error {
		var err error
		for name := range f.clusters {
			err = errors.Join(err, condition(ctx, f.Client, registration(f.namespace, name+"-kubeconfig"), hubv1.ReachableCondition, "True", ""))
		}
		return err
	})
	apply(t, f.Client, string(sets))
	soon(t, "the hub has everything", func() error {
		list := &hubv1.AddonDeliveryList{}
		if err := f.Client.List(ctx, list, client.InNamespace(f.namespace)); err != nil || len(list.Items) != len(f.clusters) {
			return fmt.Errorf("there are %d deliveries (%v)", len(list.Items), err)
		}
		for i := range list.Items {
			if c := conditionOf(&list.Items[i], "Ready"); c.Status != metav1.ConditionTrue {
				return fmt.Errorf("%s: %v", list.Items[i].Name, c)
			}
		}
		return nil
	})
	for name := range f.clusters { // nothing fetches the chart for the old template any more
		check(t, wantGone(ctx, f.Client, &sourcev1.HelmChart{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: f.namespace + "-" + name + "-settings"}}))
	}
	f.unchanged(t)
}

// unchanged asserts that the add-ons go on with the very Flux objects, releases and objects of the clusters.
func (f *handFleet) unchanged(t *testing.T) {
	ctx := t.Context()
	for name, c := range f.clusters {
		for _, o := range f.objects(name) {
			check(t, f.Client.Get(ctx, client.ObjectKeyFromObject(o), o))
			if o.GetUID() != f.uids[o.GetName()] || o.GetLabels()[hubv1.AddonSetLabel] != "fleet" {
				t.Errorf("%s is %s, and was %s; its labels are %v", o.GetName(), o.GetUID(), f.uids[o.GetName()], o.GetLabels())
			}
		}
		after, err := deployedTo(ctx, c)
		check(t, err)
		if after != f.before[name] {
			t.Errorf("%s: the objects or the release are other ones, or have changed: %+v, and were %+v", name, after, f.before[name])
		}
		check(t, wantData(ctx, c, "imp-apps", "imp-settings", "color", f.colors[name]))
		check(t, wantData(ctx, c, "default", "imp-hand", "color", f.colors[name]))
	}
}

// leaves deletes the set, with which everything goes, and then the clusters' registrations.
func (f *handFleet) leaves(t *testing.T) {
	ctx := t.Context()
	set := addonSet(f.namespace, "fleet")
	check(t, f.Client.Delete(ctx, set))
	soon(t, "what was imported goes with its set", func() error { return errors.Join(approveHeld(ctx, f.Client), wantGone(ctx, f.Client, set)) })
	for name, c := range f.clusters {
		check(t, wantNoConfigMap(ctx, c, "imp-apps", "imp-settings"))
		check(t, wantNoConfigMap(ctx, c, "default", "imp-hand"))
		label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"chandler.dev/register":"false"}}}`))
		check(t, f.Client.Patch(ctx, secret(f.namespace, name+"-kubeconfig", nil), label))
	}
	soon(t, "the clusters are unregistered", func() error {
		var err error
		for name := range f.clusters {
			err = errors.Join(err, wantGone(ctx, f.Client, registration(f.namespace, name+"-kubeconfig")))
		}
		return err
	})
}

// deployed is what a cluster has of the imported objects.
type deployed struct {
	// settings and hand are the UID and the content of an object of the release, and of one of the Kustomization.
	settings, hand string
	// revisions is how many the release has had, and first the UID of the record of the first.
	revisions int
	first     types.UID
}

func deployedTo(ctx context.Context, c *localfleet.Cluster) (deployed, error) {
	var out deployed
	for key, to := range map[client.ObjectKey]*string{{Namespace: "imp-apps", Name: "imp-settings"}: &out.settings, {Namespace: "default", Name: "imp-hand"}: &out.hand} {
		cm := &corev1.ConfigMap{}
		if err := c.Client.Get(ctx, key, cm); err != nil {
			return out, err
		}
		// Flux notes in labels which of its objects has it: that alone changes.
		*to = fmt.Sprint(cm.UID, cm.CreationTimestamp, cm.Data)
	}
	records := &corev1.SecretList{}
	if err := c.Client.List(ctx, records, client.InNamespace("imp-apps"), client.MatchingLabels{"owner": "helm", "name": "imp-settings"}); err != nil {
		return out, err
	}
	for i := range records.Items {
		if records.Items[i].Labels["version"] == "1" {
			out.first = records.Items[i].UID
		}
		out.revisions++
	}
	if out.first == "" {
		return out, errors.New("there is no record of the first revision")
	}
	return out, nil
}
