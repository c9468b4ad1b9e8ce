// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"strings"

	"github.com/chandler-hub/chandler/internal/cli/exit"
)

// CheckNames returns an error for what cannot be NAME or NAMESPACE/NAME.
func CheckNames(command string, args []string) error {
	for _, a := range args {
		if ns, name, both := strings.Cut(a, "/"); ns == "" || both && (name == "" || strings.Contains(name, "/")) {
			return exit.Wrong(fmt.Errorf("%s: %q is not a name: write NAME or NAMESPACE/NAME", command, a))
		}
	}
	return nil
}

// Place returns the namespace and the name of an argument, which is NAME or NAMESPACE/NAME.
func (c *Connection) Place(arg string) (namespace, name string) {
	if ns, name, both := strings.Cut(arg, "/"); both {
		return ns, name
	}
	return *c.Flags.Namespace, arg
}

// PlaceOf is Place, and refuses a namespace that is not that of -n. word is what people call the kind.
func (c *Connection) PlaceOf(word, arg string) (namespace, name string, err error) {
	namespace, name = c.Place(arg)
	if only := *c.Flags.Namespace; only != "" && only != namespace {
		return "", "", fmt.Errorf("%s %s is not in namespace %q: leave out -n, or write the name alone", word, arg, only)
	}
	return namespace, name, nil
}
