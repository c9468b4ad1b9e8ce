// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/test/faultproxy"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// registers takes a cluster in and out by one command each, with an account of the hub's own that the hub renews.
func (g *generation) registers(t *testing.T) {
	ctx := t.Context()
	edge := types.NamespacedName{Namespace: "fleet", Name: "edge"}
	port, err := localfleet.FreePort()
	check(t, err)
	proxy, err := faultproxy.Start(faultproxy.Options{Address: fmt.Sprintf("127.0.0.1:%d", port), Target: strings.TrimPrefix(g.two.Server(), "https://")})
	check(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	admin := filepath.Join(t.TempDir(), "two.conf")
	check(t, os.WriteFile(admin, bytes.ReplaceAll(kubeconfigOf(t, g.two), []byte(g.two.Server()), []byte(proxy.URL())), 0o600))
	printed := ""
	flags := []string{"--kubeconfig", g.KubeconfigFile(), "--secret-namespaces=*", "--timeout=3m"}
	run := func(t *testing.T, code int, args ...string) string {
		t.Helper()
		out, errs, got := chandler(t, slices.Concat(args[:1], flags, args[1:])...)
		if got != code {
			t.Fatalf("chandler %s: exit code %d, want %d:\n%s\n%s", strings.Join(args, " "), got, code, out, errs)
		}
		printed += out + errs
		return out + errs
	}
	register := []string{"register", "edge", "-n", "fleet", "--cluster-kubeconfig", admin, "--labels", "region=eu"}
	account := identity.Account("chandler", edge)
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: account}}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: account}}
	secret := &corev1.Secret{}

	var left types.UID
	delivered := func() types.UID {
		cm := &corev1.ConfigMap{}
		check(t, g.two.Client.Get(ctx, types.NamespacedName{Namespace: "cmd-layers", Name: "cmd-layers"}, cm))
		return cm.UID
	}

	step(t, "a cluster that a Secret registered leaves, and its add-ons stay", func(t *testing.T) {
		left = delivered()
		run(t, 0, "unregister", "fleet/two", "--orphan", "--yes")
		check(t, wantGone(ctx, g.Client, registration("fleet", "two")))
		check(t, g.Client.Get(ctx, types.NamespacedName{Namespace: "fleet", Name: "two"}, &corev1.Secret{}))
		if delivered() != left {
			t.Error("the add-on is another one")
		}
	})
	step(t, "nothing is done without being asked", func(t *testing.T) {
		if out := run(t, 1, register...); !strings.Contains(out, "--yes") || !strings.Contains(out, "ClusterRoleBinding "+account+", to ClusterRole cluster-admin") {
			t.Errorf("it says\n%s", out)
		}
		check(t, wantGone(ctx, g.two.Client, ns))
		if out := run(t, 1, "register", "edge", "-n", "fleet", "--cluster-kubeconfig", g.KubeconfigFile(), "--yes"); !strings.Contains(out, "the management cluster itself") {
			t.Errorf("it says\n%s", out)
		}
	})
	step(t, "no rights for a namespace that a tenant of the cluster has made", func(t *testing.T) {
		forged := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: account, Labels: map[string]string{"app.kubernetes.io/managed-by": "chandler"},
			Annotations: map[string]string{hubv1.RegistrationAnnotation: edge.String()}}}
		check(t, g.two.Client.Create(ctx, forged))
		if out := run(t, 1, append(register, "--yes")...); !strings.Contains(out, "kubectl delete namespace "+account) {
			t.Errorf("it says\n%s", out)
		}
		check(t, wantGone(ctx, g.two.Client, binding))
		check(t, g.two.Client.Delete(ctx, forged))
		soon(t, "the namespace is gone", func() error { return wantGone(ctx, g.two.Client, ns) })
	})
	step(t, "it is registered, and its add-ons arrive", func(t *testing.T) {
		run(t, 0, append(register, "--yes")...)
		soon(t, "an add-on", func() error {
			return errors.Join(g.addonOf(ctx, "edge", "more", "cmd-extra", hubv1.AddonReady, ""), g.addonOf(ctx, "edge", "commands", "cmd-layers", hubv1.AddonReady, ""))
		})
		if delivered() != left {
			t.Error("the add-on that was left is another one")
		}
		_, err := configMap(ctx, g.two, "default", "cmd-extra")
		check(t, errors.Join(err, g.Client.Get(ctx, edge, secret)))
		config, err := clientcmd.Load(secret.Data["value"])
		check(t, err)
		if user := config.AuthInfos["hub"]; len(config.AuthInfos) != 1 || user.Token == "" || len(user.ClientKeyData)+len(user.ClientCertificateData) > 0 {
			t.Error("the Secret has more than a token")
		}
	})
	step(t, "to register it again changes nothing", func(t *testing.T) {
		check(t, g.two.Client.Get(ctx, client.ObjectKeyFromObject(binding), binding))
		if out := run(t, 0, register...); strings.Contains(out, "created") || strings.Contains(out, "updated") {
			t.Errorf("it says\n%s", out)
		}
		again, bound := &corev1.Secret{}, &rbacv1.ClusterRoleBinding{}
		check(t, errors.Join(g.Client.Get(ctx, edge, again), g.two.Client.Get(ctx, client.ObjectKeyFromObject(binding), bound)))
		if again.ResourceVersion != secret.ResourceVersion || bound.ResourceVersion != binding.ResourceVersion {
			t.Error("the Secret or the binding is another one")
		}
	})
	step(t, "a half-done run is continued", func(t *testing.T) {
		token := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: account, Name: "hub-token"}}
		check(t, g.two.Client.Delete(ctx, token))
		run(t, 0, append(register, "--yes")...)
		check(t, g.two.Client.Get(ctx, client.ObjectKeyFromObject(token), token))
	})
	step(t, "the hub renews the token", func(t *testing.T) {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"chandler.dev/token-issued":%q,"chandler.dev/renew-token":"700h"}}}`, time.Now().Add(-700*time.Hour).UTC().Format(time.RFC3339))
		check(t, g.Client.Patch(ctx, secret.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))))
		renewed := &corev1.Secret{}
		soon(t, "another token", func() error {
			if err := g.Client.Get(ctx, edge, renewed); err != nil || string(renewed.Data["value"]) == string(secret.Data["value"]) {
				return fmt.Errorf("annotations %v (%v)", renewed.Annotations, err)
			}
			return nil
		})
		soon(t, "the cluster answers to it", func() error {
			reg := registration("fleet", "edge")
			if err := condition(ctx, g.Client, reg, hubv1.ReachableCondition, metav1.ConditionTrue, hubv1.ProbeSucceededReason); err != nil {
				return err
			}
			if c := reg.Status.Credential; c.Fingerprint != renewed.Annotations[hubv1.FingerprintAnnotation] || !c.Renewed {
				return fmt.Errorf("credential %+v", c)
			}
			return nil
		})
	})
	step(t, "it leaves, and the account last", func(t *testing.T) {
		left := &corev1.Secret{}
		check(t, g.Client.Get(ctx, edge, left))
		if out := run(t, 0, "unregister", "fleet/edge", "--yes"); !strings.Contains(out, "Namespace "+account+" deleted on the cluster") {
			t.Errorf("it says\n%s", out)
		}
		check(t, errors.Join(wantGone(ctx, g.Client, registration("fleet", "edge")), wantGone(ctx, g.Client, secret), wantNoConfigMap(ctx, g.two, "default", "cmd-extra")))
		soon(t, "the account is gone", func() error {
			return errors.Join(wantGone(ctx, g.two.Client, binding), wantGone(ctx, g.two.Client, ns))
		})
		left.ObjectMeta = metav1.ObjectMeta{Namespace: left.Namespace, Name: left.Name, Labels: left.Labels, Annotations: left.Annotations}
		left.Labels[hubv1.RegisterLabel] = "false"
		check(t, g.Client.Create(ctx, left)) // as if the command had been cut short before its end
		if out := run(t, 0, "unregister", "fleet/edge", "--yes"); !strings.Contains(out, "the account is gone") {
			t.Errorf("it says\n%s", out)
		}
		check(t, wantGone(ctx, g.Client, secret))
	})
	step(t, "with a lesser role, too", func(t *testing.T) {
		_, kept, _ := strings.Cut(run(t, 0, "register", "fleet/viewer", "--role", "view", "--export"), "# For the management cluster")
		_, kept, _ = strings.Cut(kept, "---\n")
		apply(t, g.Client, kept) // the Secret is in Git, without its credential, and the hub has seen it so
		soon(t, "the hub misses the credential", func() error {
			return condition(ctx, g.Client, registration("fleet", "viewer"), hubv1.KubeConfigValidCondition, metav1.ConditionFalse, "KeyNotFound")
		})
		run(t, 0, "register", "fleet/viewer", "--cluster-kubeconfig", admin, "--role", "view", "--yes")
		viewer := identity.Account("chandler", types.NamespacedName{Namespace: "fleet", Name: "viewer"})
		check(t, proxy.Set(faultproxy.Refuse))
		out := run(t, 1, "unregister", "viewer", "-n", "fleet", "--orphan", "--yes")
		check(t, wantGone(ctx, g.Client, registration("fleet", "viewer")))
		if !strings.Contains(out, "the cluster at "+proxy.URL()+" cannot be reached") || !strings.Contains(out, "ClusterRegistration fleet/viewer is gone. These stay") {
			t.Errorf("it says\n%s", out)
		}
		for line := range strings.Lines(out) { // by hand, with another way to the cluster
			if strings.Contains(line, "kubectl delete ") {
				expect.Kubectl(t, g.two.Client, line)
			}
		}
		run(t, 0, "unregister", "viewer", "-n", "fleet", "--yes", "--leave-account", "--timeout=3s")
		check(t, wantGone(ctx, g.Client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "viewer"}}))
		soon(t, "the account is gone", func() error {
			var errs []error
			for _, name := range []string{viewer, viewer + "-self"} {
				errs = append(errs, wantGone(ctx, g.two.Client, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}))
			}
			return errors.Join(errs...)
		})
	})
	if strings.Contains(printed, "eyJ") {
		t.Errorf("a token is printed:\n%s", printed)
	}
}
