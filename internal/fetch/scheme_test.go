// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chandler-hub/chandler/internal/must"
)

// TestWithoutScheme: an address without a scheme is told what is missing.
func TestWithoutScheme(t *testing.T) {
	for address, want := range map[string]string{"charts.example.org/index.yaml": "write http:// or https:// before it", "ftp://a/b": "ftp is not fetched from"} {
		req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)).Or(t)
		answer, err := (&bounded{}).RoundTrip(req)
		if err == nil {
			_ = answer.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
}
