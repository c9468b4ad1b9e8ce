// SPDX-License-Identifier: Apache-2.0

package manifestchart

import (
	"bytes"
	"net/http" //nolint:depguard // the handler that serves the chart from memory
	"time"
)

// Handler serves the Helm repository: its index, and the archives of all versions of the chart next to it.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /index.yaml", content("application/yaml", Index()))
	mux.Handle("GET /"+archiveName, content("application/gzip", Archive()))
	for name, archive := range Older() {
		mux.Handle("GET /"+name, content("application/gzip", archive))
	}
	return mux
}

// content serves bytes that never change.
func content(contentType string, data []byte) http.Handler {
	etag := `"` + digest(data) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("ETag", etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
}
