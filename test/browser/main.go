// SPDX-License-Identifier: Apache-2.0

// Command browser drives a Chromium for the tests of the page, so that the main module needs none of what drives it. It reads steps from
// standard input, one a line, and ends with an error at the first that fails. Each step has some seconds.
//
//	open URL        load a page
//	see TEXT        wait until the page shows a text
//	gone TEXT       wait until it does not
//	click SELECTOR  click on an element; press, on the one that has the focus: press Tab, press Enter, press /
//	type TEXT       type into the element that has the focus
//	focus SELECTOR  the focus is on this element
//	true SCRIPT     an expression is true
//	print SCRIPT    print the value of an expression
//	size W H        the size of the window
//	scheme dark     what the person prefers: dark or light
//	script off      from now on without JavaScript; script on
//	picture FILE    a picture of the window
//	axe FILE        axe-core, from a file, finds nothing that is wrong with the page
//	quiet           the browser has complained about nothing since the last quiet: no refused load, no fault of a script
//	forget          forget what it has complained about
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1)
	}
}

// patience is how long a step may take.
const patience = 20 * time.Second

func find() (string, error) {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && name != "" {
			return path, nil
		}
	}
	return "", errors.New("there is no Chromium: install Debian's package chromium (apt-get install chromium), or name one in $CHROMIUM")
}

func run() error {
	path, err := find()
	if err != nil {
		return err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("hide-scrollbars", true),
		chromedp.WindowSize(1280, 900))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, cancel := chromedp.NewContext(ctx)
	defer cancel()
	if err := do(ctx, chromedp.Steps()); err != nil { // starts it, for longer than a step
		return fmt.Errorf("start %s: %w", path, err)
	}
	if err := chromedp.Listen(ctx, listen); err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		verb, rest, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if verb == "" || strings.HasPrefix(verb, "#") {
			continue
		}
		began := time.Now()
		within, cancel := context.WithTimeout(ctx, patience)
		err := step(within, verb, rest)
		if err != nil {
			shows, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
			err = fmt.Errorf("%s %s: %w; the page shows\n%s", verb, rest, err, shows)
		}
		cancel()
		if err != nil {
			return err
		}
		fmt.Printf("%6d ms  %s %s\n", time.Since(began).Milliseconds(), verb, rest)
	}
	return lines.Err()
}

var (
	mu         sync.Mutex
	complaints []string
)

// listen notes what the browser complains about.
func listen(event any) {
	mu.Lock()
	defer mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			complaints = append(complaints, fmt.Sprintf("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *runtime.EventExceptionThrown:
		complaints = append(complaints, e.ExceptionDetails.Text)
	}
}

var keys = map[string]string{"Tab": kb.Tab, "Enter": kb.Enter, "Escape": kb.Escape, "ArrowDown": kb.ArrowDown}

func step(ctx context.Context, verb, rest string) error {
	switch verb {
	case "open":
		return do(ctx, chromedp.Navigate(rest))
	case "see":
		return until(ctx, fmt.Sprintf("document.body.innerText.replace(/\\s+/g, ' ').includes(%q)", rest))
	case "gone":
		return until(ctx, fmt.Sprintf("!document.body.innerText.replace(/\\s+/g, ' ').includes(%q)", rest))
	case "true":
		return until(ctx, rest)
	case "focus":
		return until(ctx, fmt.Sprintf("!!document.activeElement && document.activeElement.matches(%q)", rest))
	case "click":
		err := do(ctx, chromedp.Click(chromedp.CSS(rest)))
		for err != nil && ctx.Err() == nil && strings.Contains(err.Error(), "Could not find node") { // the page has changed between two words
			err = do(ctx, chromedp.Click(chromedp.CSS(rest)))
		}
		return err
	case "press":
		if key, ok := keys[rest]; ok {
			rest = key
		}
		return do(ctx, chromedp.KeyEvent(rest))
	case "type":
		return do(ctx, chromedp.KeyEvent(rest))
	case "print":
		out, err := chromedp.Run(ctx, chromedp.Evaluate[any](rest))
		if err != nil {
			return err
		}
		fmt.Println(out)
		return nil
	case "axe":
		return axe(ctx, rest)
	case "quiet", "forget":
		return judge(verb == "quiet")
	}
	return setting(ctx, verb, rest)
}

// axe has axe-core look at the page.
func axe(ctx context.Context, file string) error {
	script, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const look = `;window.found = undefined; axe.run().then(r => window.found = r.violations.flatMap(v => v.nodes.map(n =>
		v.id + ": " + v.help + ": " + n.html.slice(0, 200))).join("\n"), e => window.found = "axe: " + e); 0`
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[int](string(script)+look)); err != nil {
		return err
	}
	if err := until(ctx, "window.found !== undefined"); err != nil {
		return err
	}
	found, err := chromedp.Run(ctx, chromedp.Evaluate[string]("window.found"))
	if err == nil && found != "" {
		err = errors.New(found)
	}
	return err
}

// judge forgets what the browser has complained about, or fails because of it.
func judge(fail bool) error {
	mu.Lock()
	defer mu.Unlock()
	said := strings.Join(complaints, "\n")
	if complaints = nil; said != "" && fail {
		return errors.New(said)
	}
	return nil
}

// setting sets what is not the page's, or takes a picture of it.
func setting(ctx context.Context, verb, rest string) error {
	switch verb {
	case "size":
		var w, h int64
		if _, err := fmt.Sscan(rest, &w, &h); err != nil {
			return err
		}
		return do(ctx, chromedp.EmulateViewport(w, h))
	case "scheme":
		return do(ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: rest}}})
			return err
		}))
	case "script":
		return do(ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: rest == "off"})
			return err
		}))
	case "picture":
		png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			return err
		}
		if png, err = small(png); err != nil {
			return err
		}
		return os.WriteFile(rest, png, 0o644) //nolint:gosec // a picture for everybody
	}
	return errors.New("there is no such step")
}

func do(ctx context.Context, action chromedp.Action[chromedp.Void]) error {
	_, err := chromedp.Run(ctx, action)
	return err
}

// until waits until an expression is true.
func until(ctx context.Context, script string) error {
	for {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script))
		if err == nil && is {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(25 * time.Millisecond):
		}
	}
}
