// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// follows is a set that names a chart without a version, a branch and a ConfigMap.
const follows = `
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: follows, namespace: flux-system}
spec:
  selectAll: true
  sources:
    - {name: charts, kind: HelmRepository, spec: {url: %s, interval: 3s}}
    - {name: apps, kind: GitRepository, spec: {url: %s, interval: 3s, ref: {branch: main}}}
  variablesFrom: [{configMap: flavors}]
  rollout:
    deadline: 5m
    waves: [{name: canary, clusterSelector: {matchLabels: {ring: canary}}, approval: Manual}]
  addons:
    - name: chart
      helmRelease:
        targetNamespace: up-<< cluster.name >>
        install: {createNamespace: true}
        chart: {spec: {chart: worker, version: "%s", sourceRef: {name: charts}}}
        values: {color: << vars.flavor >>}
    - name: commit
      dependsOn: [{name: chart}]
      kustomization: {sourceRef: {name: apps}, targetNamespace: up-<< cluster.name >>, prune: true}
`

// upstream is what the set follows, and what its clusters have of it.
type upstream struct {
	*rolling
	git *localfleet.GitServer
}

// news takes upstream news through the waves: a new version of a chart, a new commit, other content of a ConfigMap.
func (r *rolling) news(t *testing.T) {
	ctx := t.Context()
	u := &upstream{rolling: r, git: r.git}
	u.commit(t, "one")
	check(t, r.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "flavors"}, Data: map[string]string{"flavor": "sweet"}}))
	u.apply(t, "1.x")
	soon(t, "the canary waits for an approval", func() error { return u.phase(ctx, hubv1.RolloutWaitingForApproval) })
	u.approve(t)
	soon(t, "all have what there is", func() error { return u.want(ctx, "1.0.0 sweet one", r.names...) })
	soon(t, "the rollout is complete", func() error { return u.phase(ctx, hubv1.RolloutDone) })

	u.publish(t, "1.1.0")
	soon(t, "the canary has the new chart", func() error { return u.want(ctx, "1.1.0 sweet one", r.names[0]) })
	soon(t, "it waits for an approval", func() error { return u.phase(ctx, hubv1.RolloutWaitingForApproval) })
	check(t, u.want(ctx, "1.0.0 sweet one", r.names[1:]...))

	u.commit(t, "two")
	soon(t, "the commit waits for the chart", func() error {
		set := addonSet("flux-system", "follows")
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if says := conditionOf(set, hubv1.RolloutEnforcedCondition).Message; !strings.HasSuffix(says, "waits for the end of this rollout: branch main of GitRepository apps") {
			return errors.New(says)
		}
		return nil
	})
	u.approve(t)
	soon(t, "the chart is everywhere, and the canary has the commit", func() error {
		return errors.Join(u.want(ctx, "1.1.0 sweet two", r.names[0]), u.want(ctx, "1.1.0 sweet one", r.names[1:]...))
	})
	soon(t, "it waits for an approval", func() error { return u.phase(ctx, hubv1.RolloutWaitingForApproval) })
	u.approve(t)
	soon(t, "the commit is everywhere", func() error { return u.want(ctx, "1.1.0 sweet two", r.names...) })
	soon(t, "the rollout is complete", func() error { return u.phase(ctx, hubv1.RolloutDone) })

	check(t, r.Client.Update(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "flavors"}, Data: map[string]string{"flavor": "sour"}}))
	soon(t, "the canary has the variable", func() error { return u.want(ctx, "1.1.0 sour two", r.names[0]) })
	check(t, u.want(ctx, "1.1.0 sweet two", r.names[1:]...))
	soon(t, "copies that no cluster uses are gone", func() error { return u.copies(ctx) })

	u.apply(t, "9.x")
	soon(t, "a chart that does not exist reaches nobody", func() error {
		set := addonSet("flux-system", "follows")
		if err := condition(ctx, r.Client, set, hubv1.ReadyCondition, metav1.ConditionFalse, hubv1.SourcesNotReadyReason); err != nil {
			return err
		}
		if says := conditionOf(set, hubv1.ReadyCondition).Message; !strings.Contains(says, "chart worker 9.x of HelmRepository ") {
			return errors.New(says)
		}
		return nil
	})
	check(t, u.want(ctx, "1.1.0 sour two", r.names[0]))
	doctorFinds(t, r.KubeconfigFile(), "SetSourcesNotReady")
	check(t, r.Client.Delete(ctx, addonSet("flux-system", "follows")))
}

func (u *upstream) apply(t *testing.T, version string) {
	t.Helper()
	apply(t, u.Client, fmt.Sprintf(follows, u.charts.URL(), u.git.URL("apps"), version))
}

func (u *upstream) commit(t *testing.T, text string) {
	t.Helper()
	_, err := u.git.Commit("apps", map[string]string{
		"text.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: text}, data: {text: " + text + "}}\n",
	})
	check(t, err)
}

// publish publishes the chart of the fleet's other set in another version.
func (u *upstream) publish(t *testing.T, version string) {
	t.Helper()
	files := fstest.MapFS{}
	for _, name := range []string{"Chart.yaml", "values.yaml", "templates/all.yaml"} {
		raw, err := os.ReadFile("testdata/charts/worker/" + name)
		check(t, err)
		files["worker/"+name] = &fstest.MapFile{Data: []byte(strings.Replace(string(raw), "version: 1.0.0", "version: "+version, 1))}
	}
	check(t, u.charts.Publish(files, "worker"))
}

// want returns an error unless clusters have a version of the chart, a variable, and the text of a commit.
func (u *upstream) want(ctx context.Context, want string, names ...string) error {
	var errs []error
	for _, name := range names {
		chart, err := configMap(ctx, u.target, "up-"+name, "chart")
		if err != nil {
			return err
		}
		commit, err := configMap(ctx, u.target, "up-"+name, "text")
		if err != nil {
			return err
		}
		if got := fmt.Sprint(chart["version"], " ", chart["color"], " ", commit["text"]); got != want {
			errs = append(errs, fmt.Errorf("%s has %s, want %s", name, got, want))
		}
	}
	return errors.Join(errs...)
}

func (u *upstream) phase(ctx context.Context, phase hubv1.RolloutPhase) error {
	set := addonSet("flux-system", "follows")
	if err := u.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		return err
	}
	if is := set.Status.Rollout; is == nil || is.Phase != phase {
		return fmt.Errorf("the rollout is %+v; Ready: %+v", is, conditionOf(set, hubv1.ReadyCondition))
	}
	return nil
}

func (u *upstream) approve(t *testing.T) {
	t.Helper()
	set := addonSet("flux-system", "follows")
	check(t, u.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	u.order(t, "wave rest begins", "approve", "follows", "--revision", set.Status.Rollout.Revision)
}

// copies returns an error unless there is one copy of the branch for the commit in use, and what follows it.
func (u *upstream) copies(ctx context.Context) error {
	list := &sourcev1.GitRepositoryList{}
	if err := u.Client.List(ctx, list, client.HasLabels{hubv1.SourceLabel}); err != nil {
		return err
	}
	var text []string
	for i := range list.Items {
		text = append(text, fmt.Sprintf("%+v", *list.Items[i].Spec.Reference))
	}
	if len(text) != 2 {
		return fmt.Errorf("there are %d: %s", len(text), strings.Join(text, ", "))
	}
	return nil
}
