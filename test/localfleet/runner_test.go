// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestHostPaths(t *testing.T) {
	mounts := []corev1.VolumeMount{{Name: "conf", MountPath: "/etc/kubernetes"}, {Name: "pki", MountPath: "/etc/kubernetes/pki/"}}
	got := hostPaths([]string{
		"--client-ca-file=/etc/kubernetes/pki/ca.crt", "--kubeconfig=/etc/kubernetes/scheduler.conf", "--etcd-prefix=/tenants_one",
		"--enable-bootstrap-token-auth=true", "/etc/kubernetes/pki/ca.crt", "--cert-dir=/etc/kubernetes2/x",
	}, mounts, func(name string) string { return "/here/" + name })
	want := []string{
		"--client-ca-file=/here/pki/ca.crt", "--kubeconfig=/here/conf/scheduler.conf", "--etcd-prefix=/tenants_one",
		"--enable-bootstrap-token-auth=true", "/etc/kubernetes/pki/ca.crt", "--cert-dir=/etc/kubernetes2/x",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestLayVolume(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	lay := func(content files) string {
		t.Helper()
		if err := layVolume(dir, content); err != nil {
			t.Fatal(err)
		}
		for path, want := range content {
			if raw, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(raw) != string(want) {
				t.Errorf("%s is %q, %v", path, raw, err)
			}
		}
		at, err := os.Readlink(filepath.Join(dir, dataLink))
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	first := lay(files{"tls.crt": []byte("1"), "tls.key": []byte("1"), "etcd/ca.crt": []byte("1"), "old": []byte("1")})
	if again := lay(files{"tls.crt": []byte("1"), "tls.key": []byte("1"), "etcd/ca.crt": []byte("1"), "old": []byte("1")}); again != first {
		t.Error("the same content was laid out once more")
	}
	if second := lay(files{"tls.crt": []byte("2"), "tls.key": []byte("2"), "etcd/ca.crt": []byte("2")}); second == first {
		t.Error("the files were changed in place, one after the other")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "..") {
			names = append(names, e.Name())
		}
	}
	if diff := cmp.Diff([]string{"etcd", "tls.crt", "tls.key"}, names); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if len(entries) != 5 { // and the link, and what it leads to
		t.Errorf("something is left behind: %v", entries)
	}
}

func TestReadVolume(t *testing.T) {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "tenants", Name: name} }
	c := fake.NewClientBuilder().WithObjects(
		&corev1.Secret{ObjectMeta: named("s"), Data: map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k")}},
		&corev1.ConfigMap{ObjectMeta: named("m"), Data: map[string]string{"text": "t"}, BinaryData: map[string][]byte{"raw": {1}}},
	).Build()
	secret := corev1.LocalObjectReference{Name: "s"}
	for name, tc := range map[string]struct {
		source corev1.VolumeSource
		want   files
		err    string
	}{
		"Secret":    {source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}, want: files{"tls.crt": []byte("c"), "tls.key": []byte("k")}},
		"Items":     {source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", Items: []corev1.KeyToPath{{Key: "tls.crt", Path: "etcd/ca.crt"}}}}, want: files{"etcd/ca.crt": []byte("c")}},
		"ConfigMap": {source: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "m"}}}, want: files{"text": []byte("t"), "raw": {1}}},
		"Projected": {source: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: secret, Items: []corev1.KeyToPath{{Key: "tls.key", Path: "k"}}}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "m"}, Items: []corev1.KeyToPath{{Key: "text", Path: "t"}}}},
		}}}, want: files{"k": []byte("k"), "t": []byte("t")}},
		"NoSuchKey":    {source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", Items: []corev1.KeyToPath{{Key: "x", Path: "x"}}}}, err: `s has no key "x"`},
		"NoSuchSecret": {source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "x"}}, err: "not found"},
		"HostPath":     {source: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}, err: "a kind that the runner does not know"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readVolume(t.Context(), c, "tenants", corev1.Volume{Name: "v", VolumeSource: tc.source})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func TestServiceProxy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "the tenant") }))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p, err := newServiceProxy()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.server.Close() })
	for target, want := range map[string]string{
		"one.tenants.svc:" + port: "200", "example.org:" + port: "403", "127.0.0.1:" + port: "403", "one.tenants.svc:1": "502",
	} {
		conn, err := net.Dial("tcp", p.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
		answer := bufio.NewReader(conn)
		line, _ := answer.ReadString('\n')
		if !strings.Contains(line, " "+want+" ") {
			t.Errorf("%s: %q, want %s", target, line, want)
		}
		if want == "200" {
			_, _ = answer.ReadString('\n')
			_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
			if raw, _ := io.ReadAll(answer); !strings.HasSuffix(string(raw), "the tenant") {
				t.Errorf("%s: %q", target, raw)
			}
		}
		_ = conn.Close()
	}
}

// TestKamajiLock: one waits for the other, and says for whom.
func TestKamajiLock(t *testing.T) {
	open := func() *os.File {
		f, err := os.OpenFile(filepath.Join(t.TempDir(), "..", "lock"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	first := open()
	if err := waitForLock(t.Context(), first, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var said []string
	err := waitForLock(ctx, open(), func(holder string) { said = append(said, holder) })
	who := fmt.Sprintf("(process %d)", os.Getpid())
	if err == nil || !strings.Contains(err.Error(), who) || len(said) != 1 || !strings.Contains(said[0], who) {
		t.Errorf("got %v after saying %q", err, said)
	}
	_ = first.Close()
	if err := waitForLock(t.Context(), open(), nil); err != nil {
		t.Error(err)
	}
}
