// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/render"
)

// revisionName is a revision as the hub names it: the set, ten digits of a hash, and the epoch.
var revisionName = regexp.MustCompile(`[a-z0-9]-[0-9a-f]{10}-e([0-9]+)\b`)

// TestRevisionNames: the revisions that the pages show are of the epoch of today's hub. Decisions are of their day.
func TestRevisionNames(t *testing.T) {
	count := 0
	for _, page := range pages(t) {
		if strings.Contains(page, "/adr/") {
			continue
		}
		for _, m := range revisionName.FindAllStringSubmatch(read(t, page), -1) {
			if count++; m[1] != strconv.Itoa(render.Epoch) {
				t.Errorf("%s: %s is of epoch %s, and the hub's is %d", page, m[0], m[1], render.Epoch)
			}
		}
	}
	if count < 5 {
		t.Errorf("only %d revisions were found", count)
	}
}
