// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/examples"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// exampleFleet is a fleet that runs the files of examples/ as they are, but for the addresses in them.
type exampleFleet struct {
	*hub
	git       *localfleet.GitServer
	addresses *strings.Replacer
}

// gitHost is where the examples say that the Git repositories are.
const gitHost = "https://git.example.org"

// startExamples starts a management cluster with Flux locked down as for the samples, and serves charts and Git.
func startExamples(t *testing.T, name string) *exampleFleet {
	t.Helper()
	f := &exampleFleet{hub: startHub(t, hubOptions{name: name, flux: &localfleet.FluxOptions{
		NoCrossNamespaceRefs: true, Args: map[string][]string{parts.KustomizeController: {"--no-remote-bases=true"}},
	}})}
	charts, git := serve(t)
	check(t, charts.Publish(examples.FS, "charts/hello"))
	for set, folders := range map[string][]string{parts.KyvernoChart: {"kyverno"}, parts.FlaggerCharts: {"flagger", "podinfo"}} {
		dir, err := parts.Files(set)
		check(t, err)
		for _, chart := range folders {
			check(t, charts.Publish(os.DirFS(dir), chart))
		}
	}
	f.git = git
	f.addresses = strings.NewReplacer(gitHost, strings.TrimSuffix(git.URL(""), "/"), "https://kyverno.github.io/kyverno/", charts.URL(),
		"https://stefanprodan.github.io/podinfo", charts.URL(), "https://flagger.app", charts.URL(), "https://charts.example.org", charts.URL())
	return f
}

// clustersWithNodes starts clusters of this test's own, on which pods seem to run. They end with the test, so that nothing has
// to be uninstalled for the next one.
func clustersWithNodes(t *testing.T, names ...string) map[string]*localfleet.Cluster {
	t.Helper()
	var mu sync.Mutex
	var starts []func() error
	out := map[string]*localfleet.Cluster{}
	test, _, _ := strings.Cut(t.Name(), "/")
	for _, name := range names {
		starts = append(starts, func() error {
			c, err := localfleet.StartCluster(t.Context(), localfleet.ClusterOptions{
				Name: test + "-" + name, Dir: workDir, Scheme: scheme, Nodes: true})
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				out[name] = c
			}
			return err
		})
	}
	err := localfleet.SideBySide(starts...)
	t.Cleanup(func() {
		for _, c := range out {
			if err := c.Stop(); err != nil {
				t.Logf("stop %s: %v", c.Name, err)
			}
		}
	})
	check(t, err)
	return out
}

// text returns a file of examples/ with the addresses of this fleet.
func (f *exampleFleet) text(t *testing.T, file string) string {
	t.Helper()
	raw, err := examples.FS.ReadFile(file)
	check(t, err)
	return f.addresses.Replace(string(raw))
}

// apply applies files of an example.
func (f *exampleFleet) apply(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, file := range files {
		apply(t, f.Client, f.text(t, dir+"/"+file))
	}
}

// push has a branch of a Git repository hold a folder of examples/.
func (f *exampleFleet) push(t *testing.T, dir, repo, branch string) map[string]string {
	t.Helper()
	files, err := examples.Folder(dir)
	check(t, err)
	for p, text := range files {
		files[p] = f.addresses.Replace(text)
	}
	_, err = f.git.CommitTo(repo, branch, files)
	check(t, err)
	return files
}

// connect makes the Secret with the kubeconfig of a cluster that an example's registration names.
func (f *exampleFleet) connect(t *testing.T, name string, c *localfleet.Cluster) {
	t.Helper()
	namespace(t, f.Client, "fleet")
	check(t, f.Client.Create(t.Context(), secret("fleet", name+"-kubeconfig", map[string][]byte{"value": kubeconfigOf(t, c)})))
}

// delivered wants a set to be Ready on clusters.
func (f *exampleFleet) delivered(ctx context.Context, namespace, set string, clusters ...string) error {
	keys := make([]types.NamespacedName, len(clusters))
	for i, name := range clusters {
		keys[i] = types.NamespacedName{Namespace: "fleet", Name: name}
	}
	return expect.Delivered(ctx, f.Client, addonSet(namespace, set), keys...)
}

// pull has Flux look at the Git repositories of a namespace at once, as `flux reconcile source git` does, and waits until
// it has.
func (f *exampleFleet) pull(t *testing.T, namespace string) {
	t.Helper()
	list, now := &sourcev1.GitRepositoryList{}, time.Now().Format(time.RFC3339Nano)
	check(t, f.Client.List(t.Context(), list, client.InNamespace(namespace)))
	for i := range list.Items {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, meta.ReconcileRequestAnnotation, now)
		check(t, f.Client.Patch(t.Context(), &list.Items[i], client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	soon(t, "Flux has looked at every repository", func() error {
		if err := f.Client.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if r := &list.Items[i]; r.Status.LastHandledReconcileAt != now {
				return fmt.Errorf("not at %s", r.Name)
			}
		}
		return nil
	})
}

// drop deletes objects of the management cluster, and waits until they are gone.
func (f *exampleFleet) drop(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		check(t, client.IgnoreNotFound(f.Client.Delete(t.Context(), o)))
	}
	for _, o := range objects {
		soon(t, fmt.Sprintf("%T %s is gone", o, o.GetName()), func() error {
			return errors.Join(approveHeld(t.Context(), f.Client), wantGone(t.Context(), f.Client, o))
		})
	}
}
