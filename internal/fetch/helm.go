// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"fmt"

	"github.com/Masterminds/semver/v3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/yaml"
)

// index is the index of a Helm repository, as far as it says where charts are. Helm's own package reads it with its plugins, which is a
// machine for WebAssembly more than this program needs.
type index struct {
	Entries map[string][]entry `json:"entries"`
}

type entry struct {
	Version string   `json:"version"`
	URLs    []string `json:"urls"`
}

// chart fetches a chart from a repository with an index.
func (f *Fetcher) chart(ctx context.Context, h *fetching, spec *sourcev1.HelmRepositorySpec, r *Request) (*Content, error) {
	if f.kept == nil || f.repository != spec.URL {
		address, err := resolve(spec.URL, "index.yaml")
		if err != nil {
			return nil, err
		}
		raw, err := h.get(ctx, address, maxIndex)
		if err != nil {
			return nil, err
		}
		read := &index{}
		if err := yaml.Unmarshal(raw, read); err != nil {
			return nil, fmt.Errorf("GET %s: it is no index of a Helm repository", redacted(address))
		}
		f.repository, f.kept = spec.URL, read
	}
	entries := f.kept.Entries[r.Chart]
	if len(entries) == 0 {
		return nil, fmt.Errorf("the repository has no chart %s", r.Chart)
	}
	versions := make([]string, len(entries))
	for i := range entries {
		versions[i] = entries[i].Version
	}
	at, err := newest(versions, r.Version)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", r.Chart, err)
	}
	if len(entries[at].URLs) == 0 {
		return nil, fmt.Errorf("the index does not say where chart %s %s is", r.Chart, versions[at])
	}
	address, err := resolve(spec.URL, entries[at].URLs[0])
	if err != nil {
		return nil, err
	}
	raw, err := h.get(ctx, address, maxChart)
	if err != nil {
		return nil, err
	}
	out, err := write(r.Dir, raw)
	if err == nil {
		out.Version = versions[at]
	}
	return out, err
}

// newest returns which of some versions is the one that is wanted, or the newest of a range, as Flux chooses it.
func newest(versions []string, want string) (int, error) {
	for i, v := range versions {
		if v == want {
			return i, nil
		}
	}
	if want == "" {
		want = "*"
	}
	constraint, err := semver.NewConstraint(want)
	if err != nil {
		return 0, fmt.Errorf("%q is neither a version that there is nor a range of versions", want)
	}
	best, found := 0, (*semver.Version)(nil)
	for i, text := range versions {
		v, err := semver.NewVersion(text)
		if err != nil || !constraint.Check(v) {
			continue
		}
		if found == nil || v.GreaterThan(found) {
			best, found = i, v
		}
	}
	if found == nil {
		return 0, errors.New("there is no version " + want)
	}
	return best, nil
}
