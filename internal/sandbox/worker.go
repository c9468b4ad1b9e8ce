// SPDX-License-Identifier: Apache-2.0

// Package sandbox fetches charts and folders, and makes objects of them, in another process of the same program. They are other people's
// programs: a template may go on for ever, or fill the memory. The process has bounds of both, no environment but what leads to a proxy,
// and ends with the one that has started it.
package sandbox

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/chandler-hub/chandler/internal/fetch"
	"github.com/chandler-hub/chandler/internal/inflate"
)

// Argument makes the program the other process.
const Argument = "sandbox-of-chandler-diff"

// The limits of the other process.
const (
	maxMemory = 1 << 30
	// maxFrame is how much one request or answer may be.
	maxFrame = 128 << 20
	// tooMuch is the exit code of a process that has taken too much memory.
	tooMuch = 3
)

type request struct {
	Fetch *fetch.Request `json:"fetch,omitempty"`
	Make  *inflate.Task  `json:"make,omitempty"`
}

type answer struct {
	Error   string          `json:"error,omitempty"`
	Content *fetch.Content  `json:"content,omitempty"`
	Result  *inflate.Result `json:"result,omitempty"`
}

// Main is what the program does if its first argument is Argument; otherwise it returns.
func Main() {
	if len(os.Args) != 2 || os.Args[1] != Argument {
		return
	}
	limit()
	debug.SetMemoryLimit(maxMemory * 3 / 4)
	go watch(os.Exit)
	out := os.Stdout
	os.Stdout = os.Stderr // what libraries print is no answer
	if serve(bufio.NewReader(os.Stdin), out) != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// watch ends the process when it takes too much memory, or when the process that has started it is not there any more.
func watch(end func(int)) {
	parent := os.Getppid()
	taken := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for {
		metrics.Read(taken)
		if taken[0].Value.Uint64()-taken[1].Value.Uint64() > maxMemory {
			end(tooMuch)
			return
		}
		if os.Getppid() != parent {
			end(1)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// serve answers requests until there are no more.
func serve(in io.Reader, out io.Writer) error {
	fetcher := &fetch.Fetcher{}
	inflater := inflate.New(nil)
	inflater.Read = chartReader()
	for {
		r := &request{}
		if err := receive(in, r); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := send(out, done(fetcher, inflater, r)); err != nil {
			return err
		}
	}
}

func done(fetcher *fetch.Fetcher, inflater *inflate.Inflater, r *request) (a *answer) {
	defer func() {
		if p := recover(); p != nil {
			a = &answer{Error: fmt.Sprintf("it cannot be read: %v", p)}
		}
	}()
	a = &answer{}
	var err error
	switch {
	case r.Fetch != nil:
		a.Content, err = fetcher.Do(context.Background(), r.Fetch)
	case r.Make != nil:
		a.Result, err = r.Make.Do(context.Background(), inflater)
	default:
		err = errors.New("nothing is asked")
	}
	if err != nil {
		a = &answer{Error: err.Error()}
	}
	return a
}

func send(out io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write it: %w", err)
	}
	if len(raw) > maxFrame {
		raw = []byte(fmt.Sprintf(`{"error":"what comes out is larger than %d MiB"}`, maxFrame>>20))
	}
	var size [4]byte
	binary.BigEndian.PutUint32(size[:], uint32(len(raw))) //nolint:gosec // bounded above
	if _, err := out.Write(append(size[:], raw...)); err != nil {
		return fmt.Errorf("write it: %w", err)
	}
	return nil
}

func receive(in io.Reader, into any) error {
	var size [4]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return err //nolint:wrapcheck // io.EOF is the end
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxFrame {
		return errors.New("it is too large")
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(in, raw); err != nil {
		return fmt.Errorf("read it: %w", err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read it: %w", err)
	}
	return nil
}
