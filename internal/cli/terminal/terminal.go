// SPDX-License-Identifier: Apache-2.0

// Package terminal has what commands read from, write to and ask at.
package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/chandler-hub/chandler/internal/excerpt"
)

// Streams are standard input, output and error of a command.
type Streams = genericiooptions.IOStreams

// Of returns the streams of a command.
func Of(cmd *cobra.Command) Streams {
	return Streams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), ErrOut: cmd.ErrOrStderr()}
}

// Say prints one visible line. Names of files and objects in it are what other people chose.
func Say(out io.Writer, format string, args ...any) {
	fmt.Fprintln(out, excerpt.Visible(fmt.Sprintf(format, args...)))
}

// Visible returns a writer that writes what is safe for a terminal.
func Visible(to io.Writer) io.Writer { return visible{to} }

type visible struct{ to io.Writer }

func (v visible) Write(p []byte) (int, error) {
	_, err := io.WriteString(v.to, excerpt.VisibleLines(string(p)))
	return len(p), err
}

// Coloured returns whether out is a terminal that has colours. NO_COLOR is a convention of many programs
// (no-color.org).
func Coloured(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}

// Agreed asks whether to go on.
func Agreed(ctx context.Context, from io.Reader, to io.Writer, yes bool) error {
	if yes {
		return nil
	}
	in, ok := from.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return errors.New("nothing is changed: there is no terminal to ask at; --yes does it without asking")
	}
	fmt.Fprint(to, "\nContinue? [y/N] ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(io.LimitReader(in, 100)).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case a := <-answer:
		if a == "y" || a == "yes" {
			return nil
		}
	}
	return errors.New("nothing is changed")
}
