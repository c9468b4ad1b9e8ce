// SPDX-License-Identifier: Apache-2.0

package kindfleet

import (
	"errors"
	"fmt"
	"strings"
)

// need is a program that the plan runs, and a check that it works.
type need struct {
	program string
	remedy  string
	works   []string
	broken  string
}

var needs = []need{
	{program: "docker", remedy: "install Docker", works: []string{"docker", "info", "--format", "{{.ServerVersion}}"},
		broken: "the Docker daemon does not answer: start it"},
	{program: "kind", remedy: "go install sigs.k8s.io/kind@latest"},
	{program: "kubectl", remedy: "install kubectl"},
	{program: "helm", remedy: "install Helm"},
}

// Preflight returns nil if this machine has what a plan needs. Otherwise it returns one error of one line that names
// everything that is missing and what to do. look finds a program as exec.LookPath does, and run runs a command
// without input or output.
func Preflight(look func(string) (string, error), run func(argv ...string) error) error {
	var missing []string
	for _, n := range needs {
		if _, err := look(n.program); err != nil {
			missing = append(missing, fmt.Sprintf("%s is not in the PATH (%s)", n.program, n.remedy))
			continue
		}
		if n.works != nil && run(n.works...) != nil {
			missing = append(missing, n.broken)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return errors.New("this needs Docker, kind, kubectl, Helm and the internet: " + strings.Join(missing,
		"; ") + ". Without them, `make e2e-node` runs the same tests on pods of a real node, and `make test` on local processes")
}
