// SPDX-License-Identifier: Apache-2.0

package input

import (
	"fmt"
	"os"

	"github.com/chandler-hub/chandler/internal/crdschema"
)

// CRDsUsage is what the help says of --crds.
const CRDsUsage = "folder of CRDs to use instead of the built-in ones, such as those of another Flux version"

// ReadCRDs reads the CRDs in a folder and its folders. It returns nil for no folder.
func ReadCRDs(dir string) (*crdschema.Library, error) {
	if dir == "" {
		return nil, nil
	}
	names, _, err := list(dir)
	if err != nil {
		return nil, fmt.Errorf("--crds: %w", err)
	}
	var files [][]byte
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("--crds: %w", err)
		}
		files = append(files, raw)
	}
	l, err := crdschema.Parse(files...)
	if err != nil {
		return nil, fmt.Errorf("--crds %s: %w", dir, err)
	}
	if l.ID == "" {
		return nil, fmt.Errorf("--crds %s: there is no CustomResourceDefinition in it", dir)
	}
	return l, nil
}
