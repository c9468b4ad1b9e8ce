// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-hub/chandler/internal/cli/clitest"
	"github.com/chandler-hub/chandler/internal/cli/diff"
	"github.com/chandler-hub/chandler/internal/cli/exit"
)

// diffed runs the command, and returns what it writes and its exit code.
func diffed(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	root := clitest.Root(diff.New(clitest.At(time.Time{}), nil))
	var out, errs strings.Builder
	root.SetArgs(append([]string{"diff"}, args...))
	root.SetIn(strings.NewReader(""))
	root.SetOut(&out)
	root.SetErr(&errs)
	if err := root.ExecuteContext(t.Context()); err != nil {
		exits := &exit.Error{Code: exit.Failed, Err: err}
		_ = errors.As(err, &exits)
		if code = exits.Code; exits.Err != nil {
			errs.WriteString(exits.Err.Error() + "\n")
		}
	}
	return out.String(), errs.String(), code
}

// repository makes a Git repository of one commit, with a fleet in a folder whose name needs quotes.
func repository(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	folder := filepath.Join(dir, "the fleet")
	clitest.Write(t, filepath.Join(folder, "fleet.yaml"), clitest.RegistrationFile)
	clitest.Write(t, filepath.Join(folder, "sets", "set.yaml"), clitest.SetFile)
	clitest.Write(t, filepath.Join(folder, "notes.txt"), "no YAML: {")
	inGit(t, dir, "init", "-q", "-b", "main")
	inGit(t, dir, "add", ".")
	inGit(t, dir, "commit", "-q", "-m", "one")
	return folder
}

func inGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestDiffAgainst: what is there now is a folder, a file, or a revision; the exit code says whether anything changes.
func TestDiffAgainst(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	folder := repository(t)
	old := filepath.Join(t.TempDir(), "old")
	clitest.Write(t, filepath.Join(old, "all.yaml"), clitest.RegistrationFile+"---\n"+clitest.SetFile)
	broken := filepath.Join(t.TempDir(), "broken")
	clitest.Write(t, filepath.Join(broken, "all.yaml"), clitest.RegistrationFile+"---\n"+strings.Replace(clitest.SetFile, "selectAll", "selectall", 1))
	empty := filepath.Join(t.TempDir(), "empty")
	clitest.Write(t, filepath.Join(empty, "set.yaml"), clitest.SetFile)
	unchanged, changed := "no changes on 1 cluster\n", "+ new"
	check := func(name string, args []string, code int, stdout, stderr string) {
		t.Helper()
		out, errs, got := diffed(t, args...)
		if got != code || !strings.Contains(out, stdout) || !strings.Contains(errs, stderr) {
			t.Errorf("%s: diff %v ends with %d, want %d:\n%s\n%s", name, args, got, code, out, errs)
		}
	}
	check("the same folder", []string{"-f", folder, "--against", old}, 0, "", unchanged)
	check("the same revision", []string{"-f", folder, "--against", "main"}, 0, "", unchanged)
	clitest.Write(t, filepath.Join(folder, "sets", "more.yaml"), strings.ReplaceAll(clitest.SetFile, "name: a", "name: b"))
	check("another file", []string{"-f", folder, "--against", "HEAD"}, 1, changed, "")
	check("one file of it", []string{"-f", filepath.Join(folder, "sets", "set.yaml"), "-f", filepath.Join(folder, "fleet.yaml"), "--against", "main"}, 0, "", unchanged)
	check("a new file", []string{"-f", filepath.Join(folder, "sets", "more.yaml"), "-f", filepath.Join(folder, "fleet.yaml"), "--against", "main"}, 1, changed, "")
	check("Markdown", []string{"-f", folder, "--against", "main", "-o", "markdown"}, 1, "<details>", "")
	check("JSON", []string{"-f", folder, "--against", "main", "-o", "json"}, 1, `"kind": "New"`, "")
	check("the clusters of the other side", []string{"-f", empty, "--against", old}, 0, "", unchanged)
	check("no clusters", []string{"-f", empty, "--against", empty}, 2, "", "there is no cluster on either side")
	check("a typo in what is new", []string{"-f", broken, "--against", old}, 2, "", "selectall")
	check("a typo in what is there", []string{"-f", old, "--against", broken}, 2, "new a", "selectall")
	check("no revision", []string{"-f", folder, "--against", "nope"}, 2, "", "is neither a file, nor a folder, nor a revision")
	check("an option of git", []string{"-f", folder, "--against=--output=x"}, 2, "", "is no Git revision")
	check("no repository", []string{"-f", old, "--against", "main"}, 2, "", "is in no Git repository")
	check("no such flag", []string{"--nope"}, 2, "", "unknown flag")
	check("an argument", []string{folder}, 2, "", "is no flag")
	t.Setenv("PATH", "")
	check("no git", []string{"-f", folder, "--against", "main"}, 2, "", "the program git, which reads revisions, is not in the path")
}

// TestDiffWithoutHub: who has files alone, and forgets --against, learns that the command then asks a hub.
func TestDiffWithoutHub(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	for _, flag := range []string{"--server=https://127.0.0.1:1", "--context=nobody"} {
		_, _, err := clitest.Run([]*cobra.Command{diff.New(clitest.At(time.Time{}), nil)}, "diff", "-f", "../../../examples/quickstart", flag)
		code, text := exit.Told(err)
		if code != exit.Uncertain || !strings.Contains(text, "--against DIR|REVISION compares files without a hub") {
			t.Errorf("%s: exit code %d, %s", flag, code, text)
		}
	}
}

// TestFilesAreNoRepository: files of a pull request look like a repository, whose config names a program. It does not run.
func TestFilesAreNoRepository(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	folder := repository(t)
	ran := filepath.Join(t.TempDir(), "ran")
	for name, text := range map[string]string{
		"HEAD": "ref: refs/heads/main\n", "objects/pack/.keep": "", "refs/heads/main": strings.Repeat("1", 40) + "\n",
		"config": "[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tworktree = " + folder + "\n[extensions]\n\tpartialClone = evil\n" +
			"[remote \"evil\"]\n\turl = " + folder + "\n\tpromisor = true\n\tuploadpack = \"touch " + ran + "; false; #\"\n",
	} {
		clitest.Write(t, filepath.Join(folder, filepath.FromSlash(name)), text)
	}
	inGit(t, filepath.Dir(folder), "add", "-f", ".")
	inGit(t, filepath.Dir(folder), "commit", "-q", "-m", "evil")
	out, errs, code := diffed(t, "-f", folder, "--against", "main")
	if _, err := os.Stat(ran); err == nil {
		t.Errorf("it has run: %d\n%s\n%s", code, out, errs)
	}
	if code != 0 {
		t.Errorf("ends with %d:\n%s\n%s", code, out, errs)
	}
}

// TestBlobs: a revision has what is stored, whatever attributes say of an archive, and what links lead to.
func TestBlobs(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	folder := repository(t)
	clitest.Write(t, filepath.Join(folder, ".gitattributes"), "*.yaml export-ignore\n")
	clitest.Write(t, filepath.Join(folder, "more.txt"), strings.ReplaceAll(clitest.SetFile, "name: a", "name: b"))
	if err := os.Symlink("more.txt", filepath.Join(folder, "more.yaml")); err != nil {
		t.Fatal(err)
	}
	inGit(t, folder, "add", ".")
	inGit(t, folder, "commit", "-q", "-m", "two")
	if out, errs, code := diffed(t, "-f", folder, "--against", "HEAD"); code != 0 {
		t.Errorf("ends with %d:\n%s\n%s", code, out, errs)
	}
}
