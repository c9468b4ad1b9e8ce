// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

const (
	// HubUserAgent is how the hub calls itself to API servers.
	HubUserAgent = "chandler-hub"
	// HubUser is the hub's user name at its API server, by config/rbac/account.yaml.
	HubUser = "system:serviceaccount:" + HubNamespace + ":chandler"

	// SecondHubUser is that of a hub that somebody installs in namespace second.
	SecondHubUser = "system:serviceaccount:second:chandler"

	// HubNamespace is that of the hub's ServiceAccount and lease.
	HubNamespace = "chandler-system"
)

// BuildHub builds the hub from this checkout into a folder and returns the binary.
func BuildHub(ctx context.Context, dir string) (string, error) { return build(ctx, dir, "hub") }

// BuildCommandLine builds chandler from this checkout into a folder and returns the binary.
func BuildCommandLine(ctx context.Context, dir string) (string, error) {
	return build(ctx, dir, "chandler")
}

func build(ctx context.Context, dir, name string) (string, error) {
	root, err := parts.Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/"+name)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

// StartHub runs a hub binary against a cluster until it is ready, with only the rights of config/rbac. The caller
// must stop it. After a restart, the hub serves its chart to Flux at the same address, as through a Service.
func (c *Cluster) StartHub(ctx context.Context, binary string, args ...string) (*Process, error) {
	if err := c.grantHub(ctx); err != nil {
		return nil, fmt.Errorf("give the hub its rights: %w", err)
	}
	return c.RunHub(ctx, HubOptions{Binary: binary, Kubeconfig: c.hubKubeconfigFile(), Args: args})
}

// HubConfig returns the hub's client configuration, with the rights of config/rbac, for proxies between the hub and
// its API server.
func (c *Cluster) HubConfig(ctx context.Context) (*rest.Config, error) {
	if err := c.grantHub(ctx); err != nil {
		return nil, fmt.Errorf("give the hub its rights: %w", err)
	}
	return clientcmd.BuildConfigFromFlags("", c.hubKubeconfigFile())
}

// HubOptions configure a hub, and its connection to its API server.
type HubOptions struct {
	Binary     string
	Kubeconfig string // a file
	Env        []string
	Args       []string
	// Health is the address of /healthz and /readyz, for a hub that is not expected to become ready: RunHub waits until it lives.
	Health string
}

// RunHub is StartHub with other options than StartHub's own.
func (c *Cluster) RunHub(ctx context.Context, o HubOptions) (*Process, error) {
	health, path := o.Health, "/healthz"
	if health == "" {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		health, path = fmt.Sprintf("127.0.0.1:%d", port), "/readyz"
	}
	if c.charts == 0 {
		var err error
		if c.charts, err = FreePort(); err != nil {
			return nil, err
		}
	}
	charts := fmt.Sprintf("127.0.0.1:%d", c.charts)
	return start(ctx, command{
		name: fmt.Sprintf("hub-%d", time.Now().UnixNano()), path: o.Binary, dir: c.dir,
		args: append([]string{
			"--metrics-bind-address=0", "--health-probe-bind-address=" + health, "--chart-bind-address=" + charts, "--chart-url=http://" + charts,
			"--without-policies", // most clusters have none; Args may say otherwise
		}, o.Args...),
		env:        append([]string{"KUBECONFIG=" + o.Kubeconfig}, o.Env...),
		ready:      answers(c.probe, "http://"+health+path),
		asReleased: true,
	})
}

func (c *Cluster) hubKubeconfigFile() string { return filepath.Join(c.dir, "hub.conf") }

// grantHub applies config/rbac and writes the hub's kubeconfig. It uses a certificate with the name of the hub's
// ServiceAccount, because without a controller manager there are no ServiceAccounts.
func (c *Cluster) grantHub(ctx context.Context) error {
	root, err := parts.Root()
	if err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: HubNamespace}}
	if err := client.IgnoreAlreadyExists(c.Client.Create(ctx, ns)); err != nil {
		return err
	}
	for _, file := range []string{"account.yaml", "role.yaml"} {
		if err := c.applyFile(ctx, filepath.Join(root, "config", "rbac", file)); err != nil {
			return fmt.Errorf("config/rbac/%s: %w", file, err)
		}
	}
	kubeconfig, err := c.Kubeconfig(HubUser, "system:serviceaccounts", "system:serviceaccounts:"+HubNamespace)
	if err != nil {
		return err
	}
	return writeFiles(map[string][]byte{c.hubKubeconfigFile(): kubeconfig})
}

// ApplyPolicies applies config/policies: they go by the names that the hub and Flux have here.
func (c *Cluster) ApplyPolicies(ctx context.Context) error {
	root, err := parts.Root()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(root, "config", "policies", "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		if err := c.applyFile(ctx, file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// applyFile applies every object of a file.
func (c *Cluster) applyFile(ctx context.Context, file string) error {
	return eachObject(file, applyObject(ctx, c.Client))
}

// Apply applies every object of a text, as an administrator.
func (c *Cluster) Apply(ctx context.Context, text string) error { return Apply(ctx, c.Client, text) }

// Apply applies every object of a text with somebody's client.
func Apply(ctx context.Context, c client.Client, text string) error {
	return eachObjectOf(strings.NewReader(text), applyObject(ctx, c))
}

func applyObject(ctx context.Context, c client.Client) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("localfleet"), client.ForceOwnership)
	}
}

// eachObject calls a function with every object of a file.
func eachObject(file string, f func(*unstructured.Unstructured) error) error {
	r, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return eachObjectOf(r, f)
}

func eachObjectOf(r io.Reader, f func(*unstructured.Unstructured) error) error {
	objects := yaml.NewYAMLOrJSONDecoder(r, 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := objects.Decode(&u.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if len(u.Object) == 0 {
			continue // a comment between two separators
		}
		if err := f(u); err != nil {
			return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
}
