// SPDX-License-Identifier: Apache-2.0

// Package parts knows the real programs of a local fleet, and the paths of their binaries and CRDs. It builds
// nothing: `make tools` (hack/tools) builds into a cache outside the checkout, and takes the paths from this package.
// A path contains a hash of everything that decides its content. So a changed pin gives a new path, and checkouts
// with different pins share one cache.
package parts

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Names of the parts, for Path.
const (
	Etcd                  = "etcd"
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
	KubeScheduler         = "kube-scheduler"
	SourceController      = "source-controller"
	KustomizeController   = "kustomize-controller"
	HelmController        = "helm-controller"
	Kwok                  = "kwok"
	Kamaji                = "kamaji"
	ClusterAPI            = "cluster-api"
	Clusterctl            = "clusterctl"
	Helm                  = "helm"
	Kustomize             = "kustomize"
	SecretReader          = "kubeconfig-secretreader" // the plugin by which others read a kubeconfig Secret that a ClusterProfile names

	// The parts of a real node; see Node. The last three are plugins of CNI, which go by these names.
	Kubelet   = "kubelet"
	KubeProxy = "kube-proxy"
	CoreDNS   = "coredns"
	Bridge    = "bridge"
	HostLocal = "host-local"
	Loopback  = "loopback"
)

// Names of the file sets that belong to no part, for Files. SourceController, KustomizeController, HelmController, Kamaji and
// ClusterAPI name file sets too; that of ClusterAPI is the one CRD that the hub reads. All are CRDs, but for
// ClusterAPIWebhooks, for KwokStages: what kwok does with nodes and pods, for the charts, which tests or the examples deliver, and
// for what installs Flux on a cluster: the folders crd and manager of each controller, and FluxRBAC.
const (
	ClusterAPICRDs     = "cluster-api-crds"
	ClusterAPIWebhooks = "cluster-api-webhooks"
	ClusterInventory   = "cluster-inventory"
	Prometheus         = "prometheus-operator"
	KwokStages         = "kwok-stages"

	KamajiChart                = "kamaji-chart"
	KyvernoChart               = "kyverno-chart"
	FlaggerCharts              = "flagger-charts" // flagger, and podinfo, an application to try it with
	SourceControllerInstall    = "source-controller-install"
	KustomizeControllerInstall = "kustomize-controller-install"
	HelmControllerInstall      = "helm-controller-install"
	FluxRBAC                   = "flux-rbac"
)

// Environment variables that decide where things are looked for.
const (
	// EnvToolsDir is the cache's folder, where the default does not suit.
	EnvToolsDir = "CHANDLER_TOOLS_DIR"
	// EnvRoot is the checkout of this repository, where it cannot be found from the working directory.
	EnvRoot = "CHANDLER_ROOT"
	// EnvWith names variants, with commas between: other versions of some parts, as "flux-2.7,kubernetes-1.30".
	EnvWith = "CHANDLER_WITH"
	// EnvAssets is a folder with a prebuilt etcd and kube-apiserver, as envtest knows it.
	EnvAssets = "KUBEBUILDER_ASSETS"
)

// ErrNotBuilt is wrapped by the error for a part or a file set that is not in the cache yet. Those of Node come by
// `make tools-node`.
var ErrNotBuilt = errors.New("not built yet: run `make tools`")

// Part is a program that is built from a Go module as its authors published it.
type Part struct {
	// Name of the part and of its binary.
	Name string
	// Pins is the folder below hack/tools with the go.mod and go.sum that pin it.
	Pins string
	// Package to build.
	Package string
	// LDFlags for the linker.
	LDFlags string
}

// FileSet is files that a module carries.
type FileSet struct {
	// Name for Files.
	Name string
	// Module that carries the files.
	Module string
	// Pins is the folder below hack/tools whose go.mod pins the module.
	Pins string
	// Files to take: a glob inside the module. They come to lie beside each other; a folder comes with all that is in it.
	Files string
}

const (
	// strip leaves out the symbol table and the debugger's data, a third of a binary.
	strip = "-s -w"

	kubePins = "kubernetes"
	// kubeletPins has the same version, and sums for more modules: a change of the sums would build the API server anew.
	kubeletPins = "kubelet"
	cniModule   = "github.com/containernetworking/plugins/plugins/"

	kubeCmd    = "k8s.io/kubernetes/cmd/"
	fluxModule = "github.com/fluxcd/"
	fluxFiles  = "config/crd/bases/*.yaml"
	fluxFolder = "config/[cm]*" // crd and manager
	capiModule = "sigs.k8s.io/cluster-api"

	kamajiModule    = "github.com/clastix/kamaji"
	inventoryModule = "sigs.k8s.io/cluster-inventory-api"

	modulePath = "github.com/chandler-hub/chandler"
	// keyScheme is changed when hack/tools fills a folder of the cache in another way than before.
	keyScheme = "1"
)

// kubeVersions are those of the folders of pins with Kubernetes; a test compares them with each go.mod.
var kubeVersions = map[string]string{kubePins: "v1.36.3", kubeletPins: "v1.36.3", "kubernetes-1.30": "v1.30.14"}

// kubeLDFlags are the linker's flags for Kubernetes of some pins. Without them the API server reports
// "v0.0.0-master+$Format:%H$", which no chart's kubeVersion accepts.
func kubeLDFlags(pins string) string {
	version := kubeVersions[pinned(pins)]
	const set = " -X k8s.io/component-base/version."
	return strip + set + "gitVersion=" + version + set + "gitMajor=1" + set + "gitMinor=" + strings.Split(version, ".")[1]
}

// KubernetesVersion returns the version of the API servers, such as v1.36.3.
func KubernetesVersion() string { return kubeVersions[pinned(kubePins)] }

// variants are the pins that each variant has in place of the usual ones. The tests run with them at night.
var variants = map[string]map[string]string{
	"flux-2.7": {
		SourceController: "flux-2.7/source-controller", KustomizeController: "flux-2.7/kustomize-controller",
		HelmController: "flux-2.7/helm-controller",
	},
	"kubernetes-1.30": {kubePins: "kubernetes-1.30"},
}

// pinned returns the folder of pins that is used in place of the usual one, by EnvWith.
func pinned(pins string) string {
	for variant := range strings.SplitSeq(os.Getenv(EnvWith), ",") {
		if other := variants[strings.TrimSpace(variant)][pins]; other != "" {
			return other
		}
	}
	return pins
}

// All lists the parts. Their versions are pinned by the go.mod of each one's Pins folder.
func All() []Part {
	return []Part{
		{Name: Etcd, Pins: Etcd, Package: "go.etcd.io/etcd/server/v3", LDFlags: strip},
		{Name: KubeAPIServer, Pins: kubePins, Package: kubeCmd + KubeAPIServer, LDFlags: kubeLDFlags(kubePins)},
		{Name: KubeControllerManager, Pins: kubePins, Package: kubeCmd + KubeControllerManager, LDFlags: kubeLDFlags(kubePins)},
		{Name: KubeScheduler, Pins: kubePins, Package: kubeCmd + KubeScheduler, LDFlags: kubeLDFlags(kubePins)},
		{Name: SourceController, Pins: SourceController, Package: fluxModule + SourceController, LDFlags: strip},
		{Name: KustomizeController, Pins: KustomizeController, Package: fluxModule + KustomizeController, LDFlags: strip},
		{Name: HelmController, Pins: HelmController, Package: fluxModule + HelmController, LDFlags: strip},
		{Name: Kwok, Pins: Kwok, Package: "sigs.k8s.io/kwok/cmd/kwok", LDFlags: strip},
		{Name: Kamaji, Pins: Kamaji, Package: kamajiModule, LDFlags: strip},
		{Name: ClusterAPI, Pins: ClusterAPI, Package: capiModule, LDFlags: strip},
		{Name: Clusterctl, Pins: ClusterAPI, Package: capiModule + "/cmd/clusterctl", LDFlags: strip},
		{Name: Helm, Pins: Helm, Package: "helm.sh/helm/v4/cmd/helm", LDFlags: strip},
		{Name: SecretReader, Pins: ClusterInventory, Package: inventoryModule + "/plugins/kubeconfig-secretreader/cmd/plugin", LDFlags: strip},
		{Name: Kustomize, Pins: Kustomize, Package: "sigs.k8s.io/kustomize/kustomize/v5", LDFlags: strip},
	}
}

// Node lists the parts of a real node, which take minutes to build, and which only the tests on one need. They are not
// among All.
func Node() []Part {
	return []Part{
		{Name: Kubelet, Pins: kubeletPins, Package: kubeCmd + Kubelet, LDFlags: kubeLDFlags(kubeletPins)},
		{Name: KubeProxy, Pins: kubeletPins, Package: kubeCmd + KubeProxy, LDFlags: kubeLDFlags(kubeletPins)},
		{Name: CoreDNS, Pins: CoreDNS, Package: "github.com/coredns/coredns", LDFlags: strip},
		{Name: Bridge, Pins: "cni", Package: cniModule + "main/" + Bridge, LDFlags: strip},
		{Name: HostLocal, Pins: "cni", Package: cniModule + "ipam/" + HostLocal, LDFlags: strip},
		{Name: Loopback, Pins: "cni", Package: cniModule + "main/" + Loopback, LDFlags: strip},
	}
}

// AllFiles lists the file sets. Their versions are pinned with the parts.
func AllFiles() []FileSet {
	return []FileSet{
		{Name: SourceController, Pins: SourceController, Module: fluxModule + SourceController, Files: fluxFiles},
		{Name: KustomizeController, Pins: KustomizeController, Module: fluxModule + KustomizeController, Files: fluxFiles},
		{Name: HelmController, Pins: HelmController, Module: fluxModule + HelmController, Files: fluxFiles},
		{Name: Kamaji, Pins: Kamaji, Module: kamajiModule, Files: "charts/kamaji/crds/*.yaml"},
		{Name: KamajiChart, Pins: Kamaji, Module: kamajiModule, Files: "charts/kamaji"},
		{Name: ClusterAPI, Pins: ClusterAPI, Module: capiModule, Files: "config/crd/bases/cluster.x-k8s.io_clusters.yaml"},
		{Name: ClusterAPICRDs, Pins: ClusterAPI, Module: capiModule, Files: "config/crd/bases/*.yaml"},
		{Name: ClusterAPIWebhooks, Pins: ClusterAPI, Module: capiModule, Files: "config/webhook/manifests.yaml"},
		{Name: ClusterInventory, Pins: ClusterInventory, Module: inventoryModule, Files: "config/crd/bases/*_clusterprofiles.yaml"},
		{Name: Prometheus, Pins: Prometheus, Module: "github.com/prometheus-operator/prometheus-operator",
			Files: "example/prometheus-operator-crd/*_servicemonitors.yaml"},
		{Name: KwokStages, Pins: Kwok, Module: "sigs.k8s.io/kwok", Files: "kustomize/stage/[np]od*/fast/*-*.yaml"}, // nodes' and pods'
		{Name: KyvernoChart, Pins: "kyverno", Module: "github.com/kyverno/kyverno", Files: "charts/kyverno"},
		{Name: FlaggerCharts, Pins: "flagger", Module: fluxModule + "flagger", Files: "charts/[fp]*"},
		{Name: SourceControllerInstall, Pins: SourceController, Module: fluxModule + SourceController, Files: fluxFolder},
		{Name: KustomizeControllerInstall, Pins: KustomizeController, Module: fluxModule + KustomizeController, Files: fluxFolder},
		{Name: HelmControllerInstall, Pins: HelmController, Module: fluxModule + HelmController, Files: fluxFolder},
		{Name: FluxRBAC, Pins: "flux2", Module: fluxModule + "flux2/v2", Files: "manifests/rbac/*.yaml"},
	}
}

// Path returns the binary of a part. A prebuilt etcd and kube-apiserver in $KUBEBUILDER_ASSETS are preferred. The error
// for a part that is not there wraps ErrNotBuilt.
func Path(name string) (string, error) {
	known := append(All(), Node()...)
	i := slices.IndexFunc(known, func(p Part) bool { return p.Name == name })
	if i < 0 {
		return "", fmt.Errorf("there is no part %q", name)
	}
	if path, ok := Prebuilt(name); ok {
		return path, nil
	}
	path, err := known[i].Binary()
	if err != nil {
		return "", err
	}
	return path, present(name, path)
}

// Files returns the folder with the files of a set. The error for a set that is not there wraps
// ErrNotBuilt.
func Files(name string) (string, error) {
	i := slices.IndexFunc(AllFiles(), func(s FileSet) bool { return s.Name == name })
	if i < 0 {
		return "", fmt.Errorf("there is no file set %q", name)
	}
	dir, err := AllFiles()[i].Dir()
	if err != nil {
		return "", err
	}
	return dir, present("the files of "+name, dir)
}

// Prebuilt returns the part's binary in $KUBEBUILDER_ASSETS. Only a folder with both etcd and kube-apiserver counts, as
// these two go together.
func Prebuilt(name string) (string, bool) {
	dir := os.Getenv(EnvAssets)
	if dir == "" || (name != Etcd && name != KubeAPIServer) {
		return "", false
	}
	for _, each := range []string{Etcd, KubeAPIServer} {
		if info, err := os.Stat(filepath.Join(dir, each)); err != nil || !info.Mode().IsRegular() {
			return "", false
		}
	}
	return filepath.Join(dir, name), true
}

// Binary returns where in the cache the part's binary lies once it is built.
func (p Part) Binary() (string, error) {
	dir, err := keyedDir(p.Name, p.Pins, p.Package, p.LDFlags)
	return filepath.Join(dir, p.Name), err
}

// Dir returns where in the cache the set's files lie once they are copied.
func (s FileSet) Dir() (string, error) {
	return keyedDir(s.Name+"-files", s.Pins, s.Module, s.Files)
}

// CacheDir returns the root of the cache.
func CacheDir() (string, error) {
	if dir := os.Getenv(EnvToolsDir); dir != "" {
		// A relative one would be another folder for every package's tests.
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder, set $%s: %w", EnvToolsDir, err)
	}
	return filepath.Join(dir, "chandler", "tools"), nil
}

// PinsDir returns the folder of the checkout with a part's go.mod and go.sum: those of a variant that EnvWith names, or the usual ones.
func PinsDir(pins string) (string, error) {
	root, err := Root()
	return filepath.Join(root, "hack", "tools", pinned(pins)), err
}

// Root returns the checkout of this repository: $CHANDLER_ROOT, else the nearest one above the working directory, else
// above the running program (bin/ of a checkout). The pins are read from it rather than embedded, as go:embed does not
// reach into the nested modules that they are.
func Root() (string, error) {
	if root := os.Getenv(EnvRoot); root != "" {
		if !isRoot(root) {
			return "", fmt.Errorf("$%s=%s is no checkout of %s", EnvRoot, root, modulePath)
		}
		return filepath.Abs(root)
	}
	for _, start := range []func() (string, error){os.Getwd, executableDir} {
		dir, err := start()
		if err != nil {
			continue
		}
		for ; ; dir = filepath.Dir(dir) {
			if isRoot(dir) {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", fmt.Errorf("no checkout of %s around the working directory: go there, or set $%s", modulePath, EnvRoot)
}

func executableDir() (string, error) {
	path, err := os.Executable()
	return filepath.Dir(path), err
}

func isRoot(dir string) bool {
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "module" {
			return fields[1] == modulePath
		}
	}
	return false
}

// keyedDir returns the folder of the cache for what is made from these pins and these inputs by this toolchain.
func keyedDir(name, pins string, inputs ...string) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	inputs = append(inputs, keyScheme, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if pins != "" {
		dir, err := PinsDir(pins)
		if err != nil {
			return "", err
		}
		for _, file := range []string{"go.mod", "go.sum"} {
			content, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				return "", fmt.Errorf("pins of %s: %w", name, err)
			}
			inputs = append(inputs, string(content))
		}
	}
	hash := sha256.New()
	for _, input := range inputs {
		// With its length, so that no two lists of inputs run together into the same bytes.
		fmt.Fprintf(hash, "%d %s\n", len(input), input)
	}
	return filepath.Join(cache, name+"-"+hex.EncodeToString(hash.Sum(nil))[:16]), nil
}

func present(what, path string) error {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is %w", what, ErrNotBuilt)
	}
	return err
}
