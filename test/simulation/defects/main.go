// SPDX-License-Identifier: Apache-2.0

// Defects puts old defects back into the hub, one at a time, and plays the script that is to find it. If it has none,
// it counts the seeds that the simulation takes:
//
//	go run ./test/simulation/defects [-seeds 300] [NAME...]
//
// It changes nothing in the checkout: the files with the defect are a build overlay. It prints a table: each defect, its
// invariant, how many seeds it took, and the script.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	seeds := flag.Int("seeds", 300, "how many seeds to try for each that no script finds")
	flag.Parse()
	root, err := output("go", "list", "-m", "-f", "{{.Dir}}")
	if err == nil {
		err = run(strings.TrimSpace(root), *seeds, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "defects:", err)
		os.Exit(1)
	}
}

// run looks for the defects of these names, or for all of them.
func run(root string, seeds int, names []string) error {
	fmt.Println("| Defect | Invariant | Seeds | The shrunk script |\n| --- | --- | --- | --- |")
	dir, err := os.MkdirTemp("", "sound-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	sound := filepath.Join(dir, "simulation")
	if err := build(root, sound); err != nil {
		return err
	}
	missed := 0
	for _, d := range Defects {
		if len(names) > 0 && !slices.Contains(names, d.Name) {
			continue
		}
		found, err := d.find(root, seeds, sound)
		if err != nil {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
		if found.invariant == "" {
			missed++
			fmt.Printf("| %s | `%s` | not within %d | |\n", d.Text, d.Invariant, seeds)
			continue
		}
		if found.near {
			fmt.Printf("| %s | `%s` | order %d of a script | `%s` |\n", d.Text, found.invariant, found.seen, Scripts[d.Name])
		} else if found.seen > 0 {
			fmt.Printf("| %s | `%s` | %d | `%s` |\n", d.Text, found.invariant, found.seen, strings.Join(found.script, "; "))
		} else {
			fmt.Printf("| %s | `%s` | a script | `%s` |\n", d.Text, found.invariant, Scripts[d.Name])
		}
		if found.invariant != d.Invariant {
			fmt.Fprintf(os.Stderr, "%s: found by invariant %s, and was to be by %s\n", d.Name, found.invariant, d.Invariant)
			missed++
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d are not found as they should be", missed)
	}
	return nil
}

// Overlay writes the files with the defect below a folder, and returns the name of the file that tells `go build -overlay` of them.
func (d Defect) Overlay(root, dir string) (string, error) {
	replace := map[string]string{}
	for _, e := range d.Edits {
		from, to := filepath.Join(root, e.File), filepath.Join(dir, e.File)
		source := from
		if replace[from] != "" {
			source = to
		}
		raw, err := os.ReadFile(source)
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(raw), e.Old); n != 1 {
			return "", fmt.Errorf("%s has this text %d times, and not once: mend the defect by hand: %q", e.File, n, e.Old)
		}
		text := strings.Replace(string(raw), e.Old, e.New, 1)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, []byte(text), 0o644)); err != nil {
			return "", err
		}
		replace[from] = to
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, raw, 0o644)
}

type found struct {
	// seen is the number of seeds that it took; 0 if none has found it, but perhaps a script, and then there is an invariant all the same.
	seen      int
	invariant string
	script    []string
	near      bool // the seeds are other orders of the defect's script
}

// find builds the simulation with the defect, and plays its script, then the script in other orders, then seeds, until one breaks its
// invariant that does not without it. If none does, but another invariant is broken, it returns that.
func (d Defect) find(root string, seeds int, sound string) (found, error) {
	dir, err := os.MkdirTemp("", "defect-")
	if err != nil {
		return found{}, err
	}
	defer os.RemoveAll(dir)
	overlay, err := d.Overlay(root, dir)
	if err != nil {
		return found{}, err
	}
	binary := filepath.Join(dir, "simulation")
	if err := build(root, binary, "-overlay", overlay); err != nil {
		return found{}, err
	}
	if name, ok := Scripts[d.Name]; ok {
		if f := play(root, binary, name); f.invariant != "" {
			return f, nil
		}
		if f, err := d.search(root, binary, sound, seeds, "-near", name); err != nil || f.invariant == d.Invariant {
			f.near = true
			return f, err
		}
	}
	return d.search(root, binary, sound, seeds)
}

// search is find by seeds alone, drawn as the arguments say.
func (d Defect) search(root, binary, sound string, seeds int, args ...string) (found, error) {
	var other found
	for from := 0; from < seeds; {
		f, err := try(root, binary, from, seeds-from, 1, args...)
		if err != nil || f.seen == 0 {
			return other, err
		}
		without, err := try(root, sound, f.seen-1, 1, 2, args...)
		switch {
		case err != nil:
			return f, err
		case without.invariant == f.invariant: // the defect is not to blame
		case f.invariant == d.Invariant:
			return f, nil
		case other.seen == 0:
			other = f
		}
		from = f.seen
	}
	return other, nil
}

// play plays a script, and returns the invariant that it breaks; zero if none.
func play(root, binary, script string) found {
	plays := "TestScripts"
	if name, ok := strings.CutPrefix(script, "break-glass/"); ok {
		plays, script = "TestBreakGlass", name
	}
	test := exec.Command(binary, "-test.run", "^"+plays+"$/^"+script+"$", "-test.timeout", "0")
	test.Dir = filepath.Join(root, "test", "simulation")
	out, _ := test.CombinedOutput() // it fails if the script does, and says so
	if m := violated.FindStringSubmatch(string(out)); m != nil {
		return found{invariant: m[1]}
	}
	return found{}
}

// build makes a binary of the simulation.
func build(root, binary string, args ...string) error {
	args = append([]string{"test", "-c", "-trimpath", "-ldflags=-w", "-o", binary}, args...)
	cmd := exec.Command("go", append(args, "./test/simulation")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// try runs seeds, and shrinks the failure that makes so many; zero if none fails.
func try(root, binary string, from, seeds, stop int, args ...string) (found, error) {
	test := exec.Command(binary, append([]string{"-test.run", "^TestSeeds$", "-test.timeout", "0", "-from", fmt.Sprint(from), "-seeds",
		fmt.Sprint(seeds), "-stop", fmt.Sprint(stop)}, args...)...)
	test.Dir = filepath.Join(root, "test", "simulation")
	out, err := test.CombinedOutput()
	if err == nil {
		return found{}, nil
	}
	return read(string(out))
}

// violated is what a story says of an invariant that does not hold.
var violated = regexp.MustCompile(`VIOLATED (\w+): `)

var failure = regexp.MustCompile(`(?m)seed (\d+): (\w+): `)

// read understands what TestSeeds says of a seed that fails.
func read(out string) (found, error) {
	m := failure.FindStringSubmatch(out)
	if m == nil {
		return found{}, fmt.Errorf("the simulation says neither that all is well nor which seed fails:\n%s", out)
	}
	var f found
	_, err := fmt.Sscan(m[1], &f.seen)
	f.seen++ // seed 0 is the first
	f.invariant = m[2]
	if _, script, ok := strings.Cut(out, "the script:\n"); ok {
		for line := range strings.Lines(script) {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "---") || line == "FAIL" {
				break
			}
			f.script = append(f.script, line)
		}
	}
	// The fleet is the same in all of them.
	f.script = slices.DeleteFunc(f.script, func(l string) bool { return strings.HasPrefix(l, "cluster ") || strings.HasPrefix(l, "set ") })
	return f, err
}

func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	return string(out), err
}
