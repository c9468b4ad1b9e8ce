// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"encoding/json"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/examples"
	"github.com/chandler-hub/chandler/internal/must"
)

// shell runs programs in a folder.
type shell struct {
	t   *testing.T
	dir string
	env []string
}

// run returns what a program prints, and its exit code.
func (s shell) run(name string, args ...string) (stdout string, code int) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), name, args...)
	var errs strings.Builder
	cmd.Dir, cmd.Stderr = s.dir, &errs
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.com",
		"GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.com", "GIT_TERMINAL_PROMPT=0")
	cmd.Env = append(cmd.Env, s.env...)
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		s.t.Fatalf("%s %v: %v", name, args, err)
	}
	if err != nil {
		s.t.Logf("%s %v: %v: %s", name, args, err, errs.String())
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (s shell) git(args ...string) {
	s.t.Helper()
	if _, code := s.run("git", args...); code != 0 {
		s.t.Fatalf("git %v ends with %d", args, code)
	}
}

// gitServer serves a new repository by Git's own HTTP server.
func gitServer(t *testing.T) (url string) {
	t.Helper()
	root := t.TempDir()
	where, _ := shell{t: t, dir: root}.run("git", "--exec-path")
	program := filepath.Join(strings.TrimSpace(where), "git-http-backend")
	if _, err := os.Stat(program); err != nil {
		t.Skip("this git has no HTTP server")
	}
	shell{t: t, dir: root}.git("init", "-q", "--bare", "-b", "main", "fleet.git")
	shell{t: t, dir: filepath.Join(root, "fleet.git")}.git("config", "http.receivepack", "true")
	s := httptest.NewServer(&cgi.Handler{Path: program, Dir: root, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}})
	t.Cleanup(s.Close)
	return s.URL + "/fleet.git"
}

// pullRequest is GitHub's comments of one pull request.
type pullRequest struct {
	comments []map[string]any
	asked    []string
}

func (p *pullRequest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.asked = append(p.asked, r.Method+" "+r.URL.Path)
	var in struct{ Body string }
	if r.Header.Get("Authorization") != "Bearer token" || r.Method != http.MethodGet && json.NewDecoder(r.Body).Decode(&in) != nil {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	switch r.Method {
	case http.MethodPost:
		p.comments = append(p.comments, map[string]any{"id": 100 + len(p.comments), "body": in.Body})
	case http.MethodPatch:
		for _, c := range p.comments {
			if strings.HasSuffix(r.URL.Path, "/issues/comments/101") && c["id"] == 101 {
				c["body"] = in.Body
			}
		}
	}
	_ = json.NewEncoder(w).Encode(p.comments)
}

// putExample writes files of the example into a folder.
func putExample(t *testing.T, dir string, from map[string]string) {
	t.Helper()
	files := must.Get(examples.Folder("environments")).Or(t)
	for name, text := range files {
		for prefix, to := range from {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				put(t, filepath.Join(dir, to+rest), text)
			}
		}
	}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil { // scripts among them
		t.Fatal(err)
	}
}

func edit(t *testing.T, file, old, next string) {
	t.Helper()
	raw := must.Read(t, file)
	if !strings.Contains(string(raw), old) {
		t.Fatalf("%s has no %q", file, old)
	}
	put(t, file, strings.ReplaceAll(string(raw), old, next))
}

// TestPromotion: a pull request of each layout gets one comment, which says what it does to each environment; the next push replaces it; a
// broken edit fails the check, and the comment says why. The scripts are those of the example, in a shallow clone from a real Git server.
func TestPromotion(t *testing.T) {
	for _, program := range []string{"git", "curl", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("there is no " + program)
		}
	}
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "chandler"), "../cmd/chandler")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	both := map[string]string{"fleets/": "fleets/", "diff.sh": "diff.sh", "comment.sh": "comment.sh"}
	for name, tc := range map[string]struct {
		layout, base, file string
		environments       []string
		want, never        []string
	}{
		"Folders": {"folders/", "main", "prod/addons.yaml", []string{"dev=dev", "qa=qa", "prod=prod"},
			[]string{"## dev\n", "No changes on 2 clusters", "## qa\n", "No changes on 3 clusters", "## prod\n", "8 of 8 clusters change", "v1.17.0", "wave canary: 1 cluster"}, nil},
		"Branches": {"branches/", "prod", "addons/addons.yaml", []string{"prod=addons"},
			[]string{"## prod\n", "8 of 8 clusters change", "v1.17.0", "wave canary: 1 cluster"}, []string{"## qa"}},
	} {
		t.Run(name, func(t *testing.T) {
			url := gitServer(t)
			work := shell{t: t, dir: filepath.Join(t.TempDir(), "work")}
			shell{t: t, dir: filepath.Dir(work.dir)}.git("clone", "-q", url, "work")
			files := map[string]string{tc.layout: ""}
			for from, to := range both {
				files[from] = to
			}
			putExample(t, work.dir, files)
			work.git("checkout", "-q", "-b", tc.base)
			work.git("add", ".")
			work.git("commit", "-q", "-m", "as it is")
			work.git("push", "-q", "origin", tc.base)
			work.git("checkout", "-q", "-b", "promote")

			github := &pullRequest{comments: []map[string]any{{"id": 100, "body": "Is this safe?"}}}
			api := httptest.NewServer(github)
			t.Cleanup(api.Close)
			// ci is what the workflow does.
			ci := func(message string) (comment string, code int) {
				work.git("commit", "-q", "-am", message)
				work.git("push", "-q", "origin", "promote")
				dir := t.TempDir()
				clone := shell{t: t, dir: filepath.Join(dir, "clone"), env: []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"),
					"GITHUB_API_URL=" + api.URL, "GITHUB_REPOSITORY=team/fleet", "GITHUB_TOKEN=token"}}
				shell{t: t, dir: dir}.git("clone", "-q", "--depth=1", "--branch=promote", url, "clone")
				clone.git("fetch", "-q", "--depth=1", "origin", "+refs/heads/"+tc.base+":refs/remotes/origin/"+tc.base)
				comment, code = clone.run("./diff.sh", append([]string{"origin/" + tc.base}, tc.environments...)...)
				put(t, filepath.Join(clone.dir, "comment.md"), comment)
				if _, code := clone.run("./comment.sh", "7", "comment.md"); code != 0 {
					t.Fatalf("the comment is not posted: %v", github.asked)
				}
				return comment, code
			}
			edit(t, filepath.Join(work.dir, tc.file), "v1.16.2", "v1.17.0")
			first, code := ci("promote cert-manager")
			for _, w := range append(tc.want, "exported at 2026-11-01T06:00:00Z") {
				if !strings.Contains(first, w) {
					t.Errorf("%q is missing", w)
				}
			}
			for _, n := range tc.never {
				if strings.Contains(first, n) {
					t.Errorf("%q is there", n)
				}
			}
			if code != 0 || t.Failed() {
				t.Errorf("diff.sh ends with %d:\n%s", code, first)
			}
			edit(t, filepath.Join(work.dir, tc.file), "replicaCount: 3", "replicaCount: 2")
			second, code := ci("and fewer of it in eu")
			if code != 0 || len(github.comments) != 2 || github.comments[1]["body"] != second || !strings.Contains(second, `overlay "eu"`) {
				t.Errorf("the second push ends with %d, after %v, and the comments are %v", code, github.asked, github.comments)
			}
			edit(t, filepath.Join(work.dir, tc.file), "selectAll", "selectEverything")
			third, code := ci("a typo")
			if code != 2 || len(github.comments) != 2 || !strings.Contains(third, "selectEverything") || strings.Contains(third, "REMOVED") {
				t.Errorf("a broken edit ends with %d:\n%s", code, third)
			}
		})
	}
}
