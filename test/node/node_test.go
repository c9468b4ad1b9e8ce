// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/test/localfleet"
	"github.com/chandler-hub/chandler/test/node"
)

// TestMain leaves it to TestNodeTwice to enter places for a node.
func TestMain(m *testing.M) {
	if node.Entering() {
		os.Exit(node.Main(m, nil))
	}
	os.Exit(m.Run())
}

// TestNodeTwice starts a node twice, each time in a place of its own, and wants the machine to be as it was before.
func TestNodeTwice(t *testing.T) {
	if err := node.Missing(); err != nil {
		t.Skip(err)
	}
	if node.Inside() {
		t.Skip("this is the machine's side")
	}
	before := look(t)
	for i := range 2 {
		start := time.Now()
		if err := node.Enter(t.Context(), prepare, "-test.run=^TestPods$", "-test.v"); err != nil {
			t.Fatalf("round %d: %v", i+1, err)
		}
		t.Logf("round %d took %s", i+1, time.Since(start).Round(100*time.Millisecond))
		if after := look(t); after != before {
			t.Errorf("round %d: the machine was\n%s\nand is\n%s", i+1, before, after)
		}
	}
}

// TestKilled ends a place while pods run in it. Nobody in there has a chance to clean up.
func TestKilled(t *testing.T) {
	if err := node.Missing(); err != nil {
		t.Skip(err)
	}
	if node.Inside() {
		t.Skip("this is the machine's side")
	}
	before := look(t)
	ctx, cancel := context.WithCancel(t.Context())
	running := filepath.Join(t.TempDir(), "running")
	go func() {
		for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			if _, err := os.Stat(running); err == nil {
				cancel()
			}
		}
	}()
	t.Setenv("TEST_RUNNING", running)
	err := node.Enter(ctx, prepare, "-test.run=^TestPods$")
	if ctx.Err() == nil {
		t.Fatalf("it ended by itself: %v", err)
	}
	if after := look(t); after != before {
		t.Errorf("the machine was\n%s\nand is\n%s", before, after)
	}
}

// look returns what a node could change on the machine.
func look(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, file := range []string{"/proc/net/route", "/proc/net/fib_trie", "/proc/net/dev_mcast", "/etc/resolv.conf",
		"/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/panic", "/proc/sys/kernel/panic_on_oops", "/proc/sys/kernel/keys/root_maxkeys",
		"/proc/sys/kernel/keys/root_maxbytes", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/bridge/bridge-nf-call-iptables"} {
		content, err := os.ReadFile(file)
		fmt.Fprintln(&b, file, string(content), err)
	}
	host, err := os.Hostname()
	fmt.Fprintln(&b, "host", host, err)
	interfaces, err := filepath.Glob("/sys/class/net/*")
	fmt.Fprintln(&b, interfaces, err)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	check(t, err)
	fmt.Fprintln(&b, strings.Count(string(mounts), "\n"), "mounts")
	for _, path := range []string{"/var/lib/cni", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods", "/var/log/containers", "/run/netns", "/run/containerd",
		"/etc/cni", "/opt/cni", "/usr/libexec/kubernetes"} {
		_, err := os.Stat(path)
		fmt.Fprintln(&b, path, err)
	}
	places, err := filepath.Glob(filepath.Join(os.TempDir(), "chandler-node-*"))
	fmt.Fprintln(&b, "places", places, err)
	var groups []string // a process of the place would be in one of them
	check(t, filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (strings.Contains(d.Name(), "chandler-node-") || strings.Contains(d.Name(), "kubepods")) {
			groups = append(groups, path)
		}
		if errors.Is(err, fs.ErrNotExist) { // other processes come and go
			err = nil
		}
		return err
	}))
	fmt.Fprintln(&b, "cgroups", groups)
	return b.String()
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// prepare builds the server of the test: this very program would need an image with a C library.
func prepare(ctx context.Context, dir string) error {
	return node.Build(ctx, "./test/node/hello", filepath.Join(dir, "hello"))
}

const hello = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: hello, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: hello}}
  template:
    metadata: {labels: {app: hello}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: hello
        image: local.test/hello:1
        imagePullPolicy: Never
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
---
apiVersion: v1
kind: Service
metadata: {name: hello, namespace: default}
spec: {selector: {app: hello}, ports: [{port: 80, targetPort: 8080}]}
`

// TestPods is one node's life: pods with probes, a Service by its address and by its name, from the node and from another pod, and logs.
func TestPods(t *testing.T) {
	node.Require(t)
	start := time.Now()
	n, err := node.Start(t.Context(), localfleet.ClusterOptions{Name: "one"})
	check(t, err)
	defer func() { check(t, n.Stop()) }()
	t.Logf("the node and its DNS took %s", time.Since(start).Round(100*time.Millisecond))
	check(t, n.Load(t.Context(), node.HelloImage("local.test/hello:1", filepath.Join(node.Dir(), "hello"))))
	check(t, n.Apply(t.Context(), hello))
	key := client.ObjectKey{Namespace: "default", Name: "hello"}
	check(t, n.Available(t.Context(), key))
	if file := os.Getenv("TEST_RUNNING"); file != "" {
		check(t, os.WriteFile(file, nil, 0o600))
		<-t.Context().Done() // until TestKilled kills it
	}
	service := &corev1.Service{}
	check(t, n.Client.Get(t.Context(), key, service))
	var pods []string
	for _, url := range []string{"http://" + service.Spec.ClusterIP, "http://hello.default.svc.cluster.local",
		"http://hello.default.svc.cluster.local/?from=http://hello.default.svc"} {
		expect.Soon(t, url+" answers from both pods", func() error {
			name, err := get(t.Context(), url)
			if err == nil && !slices.Contains(pods, name) {
				pods = append(pods, name)
			}
			if err == nil && len(pods) < 2 {
				err = fmt.Errorf("only %v answers", pods)
			}
			return err
		})
	}
	all, err := kubernetes.NewForConfig(n.Config)
	check(t, err)
	logs, err := all.CoreV1().Pods("default").GetLogs(pods[0], &corev1.PodLogOptions{}).DoRaw(t.Context())
	check(t, err)
	if !strings.Contains(string(logs), "hello from "+pods[0]) {
		t.Errorf("the log of %s is %q", pods[0], logs)
	}
}

func get(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	// Each request goes to whom the Service picks.
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return string(body), err
}
