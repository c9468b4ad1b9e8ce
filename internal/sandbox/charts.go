// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"helm.sh/helm/v4/pkg/chart/loader/archive"

	"github.com/chandler-hub/chandler/internal/fetch"
	"github.com/chandler-hub/chandler/internal/inflate"
)

// keptCharts is how many charts stay read.
const keptCharts = 8

// chartReader returns what reads charts, and keeps those that it has read last: many clusters have one chart with values of their own.
func chartReader() func(*inflate.Chart) ([]*archive.BufferedFile, error) {
	kept := map[string][]*archive.BufferedFile{}
	var order []string
	return func(c *inflate.Chart) ([]*archive.BufferedFile, error) {
		if files, ok := kept[c.Path]; ok {
			return files, nil
		}
		files, err := fetch.ReadChart(c.Path)
		if err != nil {
			return nil, err //nolint:wrapcheck // says it all
		}
		if len(order) >= keptCharts {
			delete(kept, order[0])
			order = order[1:]
		}
		kept[c.Path], order = files, append(order, c.Path)
		return files, nil
	}
}
