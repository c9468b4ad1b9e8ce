// SPDX-License-Identifier: Apache-2.0

package input

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/preview"
	"github.com/chandler-hub/chandler/internal/snapshot"
)

// Files are files that a command reads, and the objects in them. What is wrong with one is said, and the others are read all the same.
type Files struct {
	// Names are those of files and folders; - is standard input.
	Names   []string
	Stdin   io.Reader
	Stderr  io.Writer
	Preview preview.Options
	// Errors is how many there were.
	Errors int
}

// Fleet makes the fleet of the objects of files, and reports what is wrong with them.
func (r *Files) Fleet(objects []preview.Object) *preview.Fleet {
	r.Preview.Incomplete = r.Errors > 0
	fleet, err := preview.NewFleet(objects, r.Preview.Origins)
	r.Fail(err)
	return fleet
}

// Adopt takes the flags that are not written, and that no other objects gave, from what the hub has published.
func Adopt(flags *pflag.FlagSet, hubNamespace string, objects []preview.Object) error {
	if err := hubconfig.Adopt(flags, preview.Published(objects, hubNamespace)); err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", hubNamespace, hubconfig.ConfigMapName, err)
	}
	return nil
}

// Objects parses files, and reports what is wrong with them.
func (r *Files) Objects(files []File) []preview.Object {
	var objects []preview.Object
	for _, in := range files {
		if s, err := snapshot.Read(in.Name, in.Raw); s != nil && err == nil {
			terminal.Say(r.Stderr, "warning: %s is an export of a fleet (left out): chandler diff reads it by --fleet", in.Name)
			continue
		}
		found, _, err := preview.ParseWith(in.Name, in.Raw, r.Preview.Schemas)
		r.Unreadable(err, in.Named)
		objects = append(objects, found...)
	}
	return objects
}

// Booleans warns of words in files that their author may have taken for texts.
func (r *Files) Booleans(files []File) {
	for _, in := range files {
		for _, text := range preview.Booleans(in.Name, in.Raw) {
			if r.Preview.Strict {
				r.Fail(errors.New(text))
			} else {
				terminal.Say(r.Stderr, "warning: %s", text)
			}
		}
	}
}

// Result returns how many errors there were.
func (r *Files) Result() error {
	switch r.Errors {
	case 0:
		return nil
	case 1:
		return errors.New("1 error")
	}
	return fmt.Errorf("%d errors", r.Errors)
}

// Unreadable prints the problems of a file. A document in a folder that was not meant for the hub gives a warning,
// and no error.
func (r *Files) Unreadable(err error, named bool) {
	for _, e := range joined(err) {
		var not *preview.NotObject
		if errors.As(e, &not) && !named && !not.Meant() {
			terminal.Say(r.Stderr, "warning: %v (left out)", e)
			continue
		}
		r.Fail(e)
	}
}

// joined returns the errors that an error joins.
func joined(err error) []error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return several.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// Fail prints an error, or each of several that are joined.
func (r *Files) Fail(err error) {
	for _, e := range joined(err) {
		r.Errors++
		terminal.Say(r.Stderr, "error: %v", e)
	}
}
