// SPDX-License-Identifier: Apache-2.0

package manifestchart

import (
	"bytes"
	"net/http" //nolint:depguard // the handler that serves the chart from memory
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Handler serves the versions of the chart as a registry does that has nothing else, and no tags: a client has to know a digest
// (https://github.com/opencontainers/distribution-spec, "Pull").
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/{$}", func(http.ResponseWriter, *http.Request) {})
	for _, a := range All() {
		mux.Handle("GET /v2/"+Name+"/manifests/"+digest(a.Manifest), content(ocispec.MediaTypeImageManifest, a.Manifest))
		for _, data := range [][]byte{a.Config, a.Archive} {
			mux.Handle("GET /v2/"+Name+"/blobs/"+digest(data), content("application/octet-stream", data))
		}
	}
	return mux
}

// content serves bytes that never change.
func content(contentType string, data []byte) http.Handler {
	is := digest(data)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Docker-Content-Digest", is)
		w.Header().Set("ETag", `"`+is+`"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
}
