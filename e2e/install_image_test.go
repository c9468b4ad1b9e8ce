// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// TestImage carries out by hand what can be of the Dockerfile without Docker: it builds the hub from the build context, by the
// Dockerfile's own command, and runs it with no other file in reach.
func TestImage(t *testing.T) {
	beside(t)
	root, err := parts.Root()
	check(t, err)
	raw, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	check(t, err)
	dockerfile := string(raw)
	uid := deploymentUser(t)
	if want := fmt.Sprintf("\nUSER %[1]d:%[1]d\n", uid); !strings.Contains(dockerfile, want) {
		t.Errorf("the Dockerfile has no %q, which the Deployment says", strings.TrimSpace(want))
	}
	froms := regexp.MustCompile(`(?m)^FROM (?:--\S+ )?(\S+)`).FindAllStringSubmatch(dockerfile, -1)
	if n := len(froms); n != 2 || froms[n-1][1] != "scratch" {
		t.Fatalf("the image is made in these steps: %v", froms)
	}
	build := regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=0 .*go build .*) -o /hub (\./cmd/hub)$`).FindStringSubmatch(dockerfile)
	if build == nil {
		t.Fatal("the Dockerfile does not build the hub as this test knows it")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", build[1]+` -o "$OUT" `+build[2])
	cmd.Dir = buildContext(t, root)
	cmd.Env = append(os.Environ(), "OUT="+filepath.Join(dir, "hub"), "TARGETOS="+runtime.GOOS, "TARGETARCH="+runtime.GOARCH)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if runtime.GOOS != "linux" {
		return // what it needs of the system is another question elsewhere
	}
	binary, err := elf.Open(filepath.Join(dir, "hub"))
	check(t, err)
	defer func() { _ = binary.Close() }()
	for _, p := range binary.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the hub is not static: it has %s", p.Type)
		}
	}
	if os.Getuid() != 0 {
		t.Log("not run in an empty root: that takes root")
		return
	}
	check(t, os.Chmod(dir, 0o755))
	help := exec.CommandContext(t.Context(), "/hub", "--help")
	help.Dir, help.Env = "/", []string{}
	help.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	out, err := help.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--hub-id") {
		t.Errorf("in an empty root it ends with %v and prints\n%s", err, out)
	}
}

// buildContext is what .dockerignore lets into the build.
func buildContext(t *testing.T, root string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	check(t, err)
	dir := t.TempDir()
	for line := range strings.Lines(string(raw)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "!")
		if !ok {
			continue
		}
		from, to := filepath.Join(root, name), filepath.Join(dir, name)
		if info, err := os.Stat(from); err == nil && info.IsDir() {
			check(t, os.CopyFS(to, os.DirFS(from)))
			continue
		}
		content, err := os.ReadFile(from)
		check(t, err)
		check(t, os.WriteFile(to, content, 0o600))
	}
	return dir
}

// deploymentUser is who the Deployment says that the hub runs as.
func deploymentUser(t *testing.T) int64 {
	t.Helper()
	for _, u := range objects(t, kustomize(t, filepath.Join("..", "config", "manager"))) {
		if u.GetKind() == "Deployment" {
			d := &appsv1.Deployment{}
			check(t, k8sruntime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d))
			return *d.Spec.Template.Spec.SecurityContext.RunAsUser
		}
	}
	t.Fatal("no Deployment")
	return 0
}
