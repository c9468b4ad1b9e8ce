// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// loadAddons loads what runs on every node that kubeadm, or Kamaji as kubeadm has it, brings up: kube-proxy and CoreDNS, by the names
// that the cluster asks for, and will ask for when it is upgraded to another version.
func (w *Worker) loadAddons(ctx context.Context, versions []string) error {
	proxy, dns := &appsv1.DaemonSet{}, &appsv1.Deployment{}
	if err := await(ctx, "the cluster has its add-ons", func(ctx context.Context) error {
		return errors.Join(
			w.client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kube-proxy"}, proxy),
			w.client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "coredns"}, dns))
	}); err != nil {
		return err
	}
	if err := w.lift(ctx); err != nil {
		return err
	}
	proxyImage, err := kubeProxyImage()
	if err != nil {
		return err
	}
	ref := proxy.Spec.Template.Spec.Containers[0].Image
	proxyImage.Refs = []string{ref}
	for _, version := range versions {
		proxyImage.Refs = append(proxyImage.Refs, ref[:strings.LastIndex(ref, ":")+1]+version)
	}
	dnsImage, err := coreDNSImage(dns.Spec.Template.Spec.Containers[0].Image)
	if err != nil {
		return err
	}
	return w.Load(ctx, proxyImage, dnsImage)
}

// limits takes back what kubeadm has kube-proxy set: a limit of connections, which the kernel lets nobody set in a network namespace.
const limits = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: no-conntrack-limits}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps], resourceNames: [kube-proxy]}
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: "replace", path: "/data/config.conf",
        value: object.data["config.conf"].replace("maxPerCore: null", "maxPerCore: 0").replace("min: null", "min: 0")}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: no-conntrack-limits}
spec: {policyName: no-conntrack-limits}
`

// lift has the policy hold for what is there already. Kamaji writes what it wants again and again, and the policy holds each time.
func (w *Worker) lift(ctx context.Context) error {
	if err := localfleet.Apply(ctx, w.client, limits); err != nil {
		return err
	}
	return await(ctx, "kube-proxy's configuration is changed", func(ctx context.Context) error {
		config := &corev1.ConfigMap{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kube-proxy"}, config); err != nil {
			return err
		}
		if strings.Contains(config.Data["config.conf"], "min: 0") {
			return nil
		}
		// Any write will do.
		config.Annotations = map[string]string{"chandler.dev/test": strconv.FormatInt(time.Now().UnixNano(), 10)}
		return errors.Join(w.client.Update(ctx, config), errors.New("it has limits of connections"))
	})
}

func coreDNSImage(ref string) (Image, error) {
	path, err := parts.Path(parts.CoreDNS)
	return Image{Ref: ref, Files: map[string]string{"/coredns": path}, Entrypoint: []string{"/coredns"}}, err
}

// kubeProxyImage has this machine's iptables beside the program, as kubeadm's configuration has it work with these.
func kubeProxyImage() (Image, error) {
	path, err := parts.Path(parts.KubeProxy)
	if err != nil {
		return Image{}, err
	}
	files := map[string]string{"/usr/local/bin/kube-proxy": path}
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
		found, err := exec.LookPath(name)
		if err != nil {
			return Image{}, err
		}
		if files["/usr/sbin/"+name], err = filepath.EvalSymlinks(found); err != nil {
			return Image{}, err
		}
	}
	// What a rule can say is in libraries of its own.
	extensions, err := extensionsOf(files["/usr/sbin/iptables"])
	if err != nil {
		return Image{}, err
	}
	for _, each := range extensions {
		files[each] = each
	}
	libraries, err := librariesOf(append(extensions, files["/usr/sbin/iptables"])...)
	if err != nil {
		return Image{}, err
	}
	for _, each := range libraries {
		if files[each], err = filepath.EvalSymlinks(each); err != nil {
			return Image{}, err
		}
	}
	return Image{Files: files, Entrypoint: []string{"/usr/local/bin/kube-proxy"}}, nil
}

// librariesOf returns what dynamic programs and libraries need, by the paths at which they look for it.
func librariesOf(files ...string) ([]string, error) {
	out, err := exec.Command("ldd", files...).Output()
	if err != nil {
		return nil, fmt.Errorf("which libraries iptables needs: %w", err)
	}
	var found []string
	for _, line := range regexp.MustCompile(`(/\S+) \(0x`).FindAllStringSubmatch(string(out), -1) {
		found = append(found, line[1])
	}
	return found, nil
}

// extensionsOf returns the extensions of iptables, which are in a folder beside its library.
func extensionsOf(iptables string) ([]string, error) {
	libraries, err := librariesOf(iptables)
	if err != nil {
		return nil, err
	}
	for _, each := range libraries {
		if strings.HasPrefix(filepath.Base(each), "libxtables.") {
			file, err := filepath.EvalSymlinks(each)
			if err != nil {
				return nil, err
			}
			return filepath.Glob(filepath.Join(filepath.Dir(file), "xtables", "*.so"))
		}
	}
	return nil, fmt.Errorf("%s has no library of extensions", iptables)
}
