// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-hub/chandler/internal/fluxspec"
	"github.com/chandler-hub/chandler/internal/nearest"
	"github.com/chandler-hub/chandler/internal/status"
)

// NoSource is what is wrong with a reference that has a name alone, so one of the set's own sources, where the set has none of that
// name. It names those that there are; "" if that is not what is wrong.
func (p *Program) NoSource(ref fluxspec.SourceReference) string {
	name, _ := ref.Ref["name"].(string)
	if _, there := p.Sources[name]; there || name == "" || len(p.Sources) == 0 || ref.Ref["kind"] != nil || ref.Ref["namespace"] != nil {
		return ""
	}
	return fmt.Sprintf("the set has no source %q; it has %s%s For a source that is not the set's, write its kind: %s", name, p.sourceNames(),
		cmp.Or(nearest.Meant(name, slices.Sorted(maps.Keys(p.Sources))), "."), strings.Join(ref.Kinds, ", "))
}

// sourceNames names the set's own sources: "charts (HelmRepository), fleet (GitRepository)", with a bound.
func (p *Program) sourceNames() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.Sources)) {
		names = append(names, fmt.Sprintf("%s (%s)", name, p.Sources[name].Kind))
	}
	return status.List(names, 5)
}
