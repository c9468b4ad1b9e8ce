// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
)

// readsBeside is an add-on with values from beside the cluster.
func readsBeside(name string, refs ...map[string]any) map[string]any {
	from := make([]any, len(refs))
	for i := range refs {
		from[i] = refs[i]
	}
	return map[string]any{"name": name, "helmRelease": map[string]any{
		"chart":      map[string]any{"spec": map[string]any{"chart": name, "sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"}}},
		"valuesFrom": from,
	}}
}

// besideFixture is a controller with an add-on that reads two keys of Secret "values" beside the cluster.
func besideFixture(t *testing.T) *fixture {
	m := newServedFixture(t, append(addonsOf(testSet, "1", readsBeside("web",
		map[string]any{"kind": "Secret", "name": "values", "from": "Cluster"},
		map[string]any{"kind": "Secret", "name": "values", "valuesKey": "password", "targetPath": "password", "from": "Cluster"})),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: "values",
			Annotations: map[string]string{hubv1.ShareAnnotation: "flux-system"}},
			Data: map[string][]byte{"values.yaml": []byte("a: 1"), "password": []byte("one"), "unused": []byte("secret")}})...)
	m.settle()
	return m
}

// copies returns the copies of what lies beside clusters, each as name=value of its keys.
func (m *fixture) copies() map[string]string {
	list := &corev1.SecretList{}
	m.must(m.api.List(m.t.Context(), list, client.MatchingLabels{hubv1.CopyLabel: identity.ValuesCopy}))
	out := map[string]string{}
	for i := range list.Items {
		s := &list.Items[i]
		var text []string
		for _, k := range slices.Sorted(maps.Keys(s.Data)) {
			text = append(text, k+"="+string(s.Data[k]))
		}
		out[s.Namespace+"/"+s.Name] = strings.Join(text, " ")
	}
	return out
}

func (m *fixture) wantsCopy(want string) {
	m.t.Helper()
	as := "flux-system/" + identity.Copy("hub", testCluster, identity.Delivery(testSet, testCluster), "Secret", "values")
	got := m.copies()
	if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[as] != want) {
		m.t.Errorf("copies %v, want %q as %s", got, want, as)
	}
}

func (m *fixture) changesBeside(do func(*corev1.Secret)) {
	m.quietly(func() { edit(m, testCluster.Namespace, "values", &corev1.Secret{}, do) })
	m.settle()
}

// TestCopiesBesideTheSet: the copy has the keys that are used, and follows its original: what is rotated comes, and nothing of what is no
// longer used stays.
func TestCopiesBesideTheSet(t *testing.T) {
	m := besideFixture(t)
	m.wantsCopy("password=one values.yaml=a: 1")
	release := m.object(testCluster, "web").(*helmv2.HelmRelease)
	if len(release.Spec.ValuesFrom) != 2 || release.Spec.ValuesFrom[0].Name != identity.Copy("hub", testCluster, identity.Delivery(testSet, testCluster), "Secret", "values") {
		t.Errorf("valuesFrom %+v", release.Spec.ValuesFrom)
	}
	m.changesBeside(func(s *corev1.Secret) { s.Data["password"] = []byte("two") })
	m.wantsCopy("password=two values.yaml=a: 1")
	writes := m.writes
	m.settle()
	if m.writes != writes {
		t.Error("a copy that is as it should be is written again")
	}
	woken := m.r.documents.ReadersOf("Secret")(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: "values"}})
	if len(woken) != 1 || woken[0].NamespacedName != testCluster {
		t.Errorf("a change of the original wakes %v", woken)
	}
	for _, rev := range addonsOf(testSet, "2", readsBeside("web", map[string]any{"kind": "Secret", "name": "values", "from": "Cluster"}))[1:] {
		m.must(m.api.Create(t.Context(), rev))
	}
	edit(m, "flux-system", m.delivery(testCluster, testSet).Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf(testSet, "2") })
	m.settle()
	m.wantsCopy("values.yaml=a: 1")
	for _, rev := range addonsOf(testSet, "3", readsBeside("web"))[1:] {
		m.must(m.api.Create(t.Context(), rev))
	}
	edit(m, "flux-system", m.delivery(testCluster, testSet).Name, &hubv1.AddonDelivery{}, func(d *hubv1.AddonDelivery) { d.Spec.RevisionName = revisionOf(testSet, "3") })
	m.settle()
	m.wantsCopy("")
}

// TestCopyOfWhatIsNotShared: what its owner does not share is not copied, and a copy goes when it is shared no longer; what is delivered
// stays. If the original is deleted, the copy stays as well: a tool that replaces it may delete it first.
func TestCopyOfWhatIsNotShared(t *testing.T) {
	m := besideFixture(t)
	m.changesBeside(func(s *corev1.Secret) { s.Annotations[hubv1.ShareAnnotation] = "another" })
	m.wantsCopy("")
	says := func(want string) {
		t.Helper()
		d := m.delivery(testCluster, testSet)
		if len(d.Status.Addons) != 1 || !strings.Contains(d.Status.Addons[0].Message, want) {
			t.Errorf("status %+v, want %q", d.Status.Addons, want)
		}
		if m.object(testCluster, "web") == nil {
			t.Error("what was delivered is gone")
		}
	}
	says(`no Secret "values" in namespace "fleet", where the cluster is registered, is shared with namespace "flux-system"`)
	m.changesBeside(func(s *corev1.Secret) { s.Annotations[hubv1.ShareAnnotation] = "another,flux-system" })
	m.wantsCopy("password=one values.yaml=a: 1")
	m.quietly(func() {
		m.must(m.api.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: "values"}}))
	})
	m.settle()
	m.wantsCopy("password=one values.yaml=a: 1")
	says("is shared with namespace")
	if len(m.uninstalled) > 0 {
		t.Errorf("uninstalled %v", m.uninstalled)
	}
}

// TestCopyGoesWithItsDelivery: the copy goes when the last object that reads it has gone, and not before.
func TestCopyGoesWithItsDelivery(t *testing.T) {
	m := besideFixture(t)
	m.busy = true
	m.withdraw(testCluster, testSet)
	m.settle()
	if m.object(testCluster, "web") == nil {
		t.Fatal("the fixture's Flux was not busy")
	}
	m.wantsCopy("password=one values.yaml=a: 1")
	m.busy = false
	m.settle()
	m.wantsCopy("")
}

// TestCopyIsWrittenFirst: no add-on is written before what it reads.
func TestCopyIsWrittenFirst(t *testing.T) {
	m := newServedFixture(t, append(addonsOf(testSet, "1", readsBeside("web", map[string]any{"kind": "Secret", "name": "values", "from": "Cluster"})),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testCluster.Namespace, Name: "values",
			Annotations: map[string]string{hubv1.ShareAnnotation: "flux-system"}}, Data: map[string][]byte{"values.yaml": []byte("a: 1")}})...)
	broken := true
	m.failing = func(what string) (error, bool) {
		if broken && len(m.copies()) == 0 && strings.HasPrefix(what, "apply") && m.hasKubeconfig() {
			return errors.New("the API server is overloaded"), false
		}
		return nil, false
	}
	m.settle()
	if o := m.object(testCluster, "web"); o != nil {
		t.Errorf("%s was written before what it reads", o.GetName())
	}
	broken = false
	m.settle()
	m.wantsCopy("values.yaml=a: 1")
	if m.object(testCluster, "web") == nil {
		t.Error("it was not written")
	}
}

// hasKubeconfig returns whether the kubeconfig's copy is in place.
func (m *fixture) hasKubeconfig() bool {
	s := &corev1.Secret{}
	return m.api.Get(m.t.Context(), types.NamespacedName{Namespace: "flux-system", Name: identity.KubeconfigCopy("hub", testCluster)}, s) == nil
}
