// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// TestRegistrationRules: a rule registers the Secrets that vCluster writes, where the platform allows it, under the name and with the labels
// of the rule. The clusters get what sets deliver to such labels, and leave as those with the label do.
func TestRegistrationRules(t *testing.T) {
	beside(t)
	ctx := t.Context()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	check(t, os.WriteFile(file, []byte(`rules:
- name: vcluster
  match: {kind: Secret, namespaces: [team-*], labels: {app: vcluster}, names: vc-*}
  register: {name: "*", labels: {tier: dev}, key: config}
`), 0o600))
	a, b := workload(t, "workload-a"), workload(t, "workload-b")
	h := startHub(t, hubOptions{name: "hub-rules", flux: &localfleet.FluxOptions{}, args: []string{
		"--registration-rules=" + file, "--secret-namespaces=team-a,other", "--deselection-delay=20s",
	}})
	charts, _ := serve(t)
	vcluster := func(namespaceName, name, key string, of *localfleet.Cluster) *corev1.Secret {
		t.Helper()
		namespace(t, h.Client, namespaceName)
		s := secret(namespaceName, "vc-"+name, map[string][]byte{key: kubeconfigOf(t, of), "certificate-authority": []byte("x")})
		s.Labels = map[string]string{"app": "vcluster", "vcluster-name": name, "tier": "prod"}
		check(t, h.Client.Create(ctx, s))
		return s
	}
	one, two := vcluster("team-a", "one", "config", a), vcluster("team-a", "two", "config", b)
	vcluster("team-a", "three", "value", a) // the rule names another key
	vcluster("team-b", "four", "config", a) // of the rule, where no Secret may register
	vcluster("other", "five", "config", a)  // where Secrets may register, and not of the rule
	apply(t, h.Client, strings.ReplaceAll(`
apiVersion: chandler.dev/v1alpha1
kind: AddonSet
metadata: {name: dev, namespace: flux-system}
spec:
  clusterSelector: {matchLabels: {tier: dev}}
  rollout: {strategy: AllAtOnce}
  removalGuard: {mode: "Off"}
  sources: [{name: charts, kind: HelmRepository, spec: {url: $CHARTS}}]
  addons: [{name: by-rule, helmRelease: {chart: {spec: {chart: settings, sourceRef: {name: charts}}}, values: {color: blue}}}]
`, "$CHARTS", charts.URL()))

	soon(t, "both clusters are registered as the rule says, and have what the set delivers", func() error {
		return errors.Join(
			condition(ctx, h.Client, registration("team-a", "one"), hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.ProbeSucceededReason),
			condition(ctx, h.Client, registration("team-a", "two"), hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.ProbeSucceededReason),
			wantData(ctx, a, "by-rule", "by-rule", "color", "blue"), wantData(ctx, b, "by-rule", "by-rule", "color", "blue"))
	})
	reg := registration("team-a", "one")
	check(t, h.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg))
	if reg.Labels["tier"] != "dev" || reg.Labels["vcluster-name"] != "one" || reg.Spec.OriginRef == nil || reg.Spec.OriginRef.Name != "vc-one" ||
		reg.Status.Credential == nil || reg.Status.Credential.Key != "config" {
		t.Errorf("labels %v, origin %+v, credential %+v", reg.Labels, reg.Spec.OriginRef, reg.Status.Credential)
	}
	soon(t, "the key is the rule's, and the others say why they are not registered, or were not asked", func() error {
		return errors.Join(
			condition(ctx, h.Client, registration("team-a", "three"), hubv1.KubeConfigValidCondition, metav1.ConditionFalse, "KeyNotFound"),
			wantEvent(ctx, h, "vc-four", "may not register clusters"))
	})
	for _, key := range []client.ObjectKey{{Namespace: "team-b", Name: "four"}, {Namespace: "other", Name: "five"}, {Namespace: "team-a", Name: "vc-one"}} {
		if err := h.Client.Get(ctx, key, registration("", "")); !apierrors.IsNotFound(err) {
			t.Errorf("%s is registered: %v", key, err)
		}
	}
	t.Run("a dry run says the same", func(t *testing.T) {
		out, errs, code := chandler(t, "register", "--rule", file, "--dry-run", "--kubeconfig", h.KubeconfigFile())
		if code != 0 {
			t.Fatal(errs)
		}
		for name, want := range map[string]string{
			"vc-one": "is registered as one", "vc-three": `is registered as three; its kubeconfig is refused: the Secret has no key "config"`, "vc-four": "not registered: Secrets in namespace",
		} {
			if !strings.Contains(line(out, name), want) {
				t.Errorf("of %s there is no %q in\n%s", name, want, out)
			}
		}
	})
	t.Run("false wins, at once", func(t *testing.T) {
		patch(t, h, two, fmt.Sprintf(`{"metadata":{"labels":{%q:"false"}}}`, hubv1.RegisterLabel))
		soon(t, "it is gone, with its add-on", func() error {
			return errors.Join(wantGone(ctx, h.Client, registration("team-a", "two")), wantNoConfigMap(ctx, b, "by-rule", "by-rule"))
		})
	})
	t.Run("what the rule matches no more is unregistered after the delay", func(t *testing.T) {
		patch(t, h, one, `{"metadata":{"labels":{"app":"other"}}}`)
		soon(t, "it says so", func() error {
			return condition(ctx, h.Client, reg, hubv1.UnregisteringCondition, metav1.ConditionTrue, hubv1.LabelRemovedReason)
		})
		check(t, wantData(ctx, a, "by-rule", "by-rule", "color", "blue"))
		patch(t, h, one, `{"metadata":{"labels":{"app":"vcluster"}}}`)
		soon(t, "it is matched again, and stays", func() error {
			check(t, h.Client.Get(ctx, client.ObjectKeyFromObject(reg), reg))
			if c := conditionOf(reg, hubv1.UnregisteringCondition); c.Status == metav1.ConditionTrue {
				return fmt.Errorf("Unregistering: %s", c.Message)
			}
			return nil
		})
		patch(t, h, one, `{"metadata":{"labels":{"app":null}}}`)
		soon(t, "it is gone, with its add-on", func() error {
			return errors.Join(wantGone(ctx, h.Client, registration("team-a", "one")), wantNoConfigMap(ctx, a, "by-rule", "by-rule"))
		})
	})
}

// line returns the line of a table that has a word in it.
func line(table, word string) string {
	for l := range strings.Lines(table) {
		if strings.Contains(l, word+" ") {
			return l
		}
	}
	return ""
}

func patch(t *testing.T, h *hub, s *corev1.Secret, content string) {
	t.Helper()
	check(t, h.Client.Patch(t.Context(), s.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(content))))
}
