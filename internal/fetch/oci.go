// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// What Helm calls the layer with the chart, and how much a manifest and a list of tags may be.
const (
	chartLayer  = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	maxManifest = 4 << 20
	maxTags     = 20_000
)

// repository returns a client for one repository of a registry.
func (h *fetching) repository(url string, insecure bool) (*remote.Repository, error) {
	name, ok := strings.CutPrefix(url, "oci://")
	if !ok {
		return nil, fmt.Errorf("%q does not begin with oci://", redacted(url))
	}
	repo, err := remote.NewRepository(name)
	if err != nil {
		return nil, fmt.Errorf("%q is no repository of a registry", redacted(url))
	}
	repo.PlainHTTP, repo.MaxMetadataBytes = insecure, maxManifest
	repo.Client = &auth.Client{Client: h.client, Credential: func(_ context.Context, host string) (auth.Credential, error) {
		scheme := "https"
		if insecure {
			scheme = "http"
		}
		c, _ := h.auth.of(scheme, host)
		return auth.Credential{Username: c.User, Password: c.Password}, nil
	}}
	return repo, nil
}

// tag returns the tag of a version, or of the newest of a range.
func tag(ctx context.Context, repo *remote.Repository, want string) (string, error) {
	var tags []string
	err := repo.Tags(ctx, "", func(more []string) error {
		if tags = append(tags, more...); len(tags) > maxTags {
			return fmt.Errorf("there are more than %d tags", maxTags)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("list the tags: %w", err)
	}
	versions := make([]string, len(tags)) // a tag has no plus
	for i, t := range tags {
		versions[i] = strings.ReplaceAll(t, "_", "+")
	}
	at, err := newest(versions, want)
	if err != nil {
		return "", err
	}
	return tags[at], nil
}

// ociChart fetches a chart that a registry has.
func (h *fetching) ociChart(ctx context.Context, spec *sourcev1.HelmRepositorySpec, r *Request) (*Content, error) {
	repo, err := h.repository(strings.TrimSuffix(spec.URL, "/")+"/"+r.Chart, spec.Insecure)
	if err != nil {
		return nil, err
	}
	name, err := tag(ctx, repo, r.Version)
	if err != nil {
		return nil, err
	}
	layers, err := h.layers(ctx, repo, name)
	if err != nil {
		return nil, err
	}
	for i := range layers {
		if layers[i].MediaType != chartLayer {
			continue
		}
		raw, err := blob(ctx, repo, layers[i], maxChart)
		if err != nil {
			return nil, err
		}
		out, err := write(r.Dir, raw)
		if err == nil {
			out.Version = strings.ReplaceAll(name, "_", "+")
		}
		return out, err
	}
	return nil, fmt.Errorf("%s:%s is no chart", repo.Reference, name)
}

// artifact fetches what an OCIRepository leads to: a folder, or a chart.
func (h *fetching) artifact(ctx context.Context, spec *sourcev1.OCIRepositorySpec, r *Request) (*Content, error) {
	repo, err := h.repository(spec.URL, spec.Insecure)
	if err != nil {
		return nil, err
	}
	name := "latest"
	switch ref := spec.Reference; {
	case ref == nil:
	case ref.Digest != "":
		name = ref.Digest
	case ref.SemVer != "" && ref.SemverFilter != "":
		return nil, errors.New("spec.ref.semverFilter is not known here: say by --local-sources where a copy of the content is")
	case ref.SemVer != "":
		if name, err = tag(ctx, repo, ref.SemVer); err != nil {
			return nil, err
		}
	case ref.Tag != "":
		name = ref.Tag
	}
	layers, err := h.layers(ctx, repo, name)
	if err != nil {
		return nil, err
	}
	layer, err := choose(layers, spec.LayerSelector)
	if err != nil {
		return nil, err
	}
	most := int64(maxContent)
	if r.Packed {
		most = maxChart
	}
	raw, err := blob(ctx, repo, *layer, most)
	if err != nil {
		return nil, err
	}
	if r.Packed {
		return write(r.Dir, raw)
	}
	if s := spec.LayerSelector; s != nil && s.Operation == sourcev1.OCILayerCopy {
		return nil, errors.New("spec.layerSelector.operation is copy, so it has an archive and no folder")
	}
	out := &Content{Path: filepath.Join(r.Dir, "content"), Digest: digest(raw)}
	if err := untar(raw, out.Path); err != nil {
		return nil, err
	}
	return out, leaveOut(out.Path, spec.Ignore)
}

// choose returns the layer that a selector names; without one it is the first.
func choose(layers []ocispec.Descriptor, s *sourcev1.OCILayerSelector) (*ocispec.Descriptor, error) {
	for i := range layers {
		if s == nil || s.MediaType == "" || s.MediaType == layers[i].MediaType {
			return &layers[i], nil
		}
	}
	return nil, errors.New("it has no such layer")
}

// layers returns the layers of an artifact.
func (h *fetching) layers(ctx context.Context, repo *remote.Repository, name string) ([]ocispec.Descriptor, error) {
	desc, body, err := repo.FetchReference(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("fetch %s:%s: %w", path.Base(repo.Reference.Repository), name, err)
	}
	defer func() { _ = body.Close() }()
	if desc.Size > maxManifest {
		return nil, errors.New("its manifest is too large")
	}
	raw, err := content.ReadAll(body, desc)
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	manifest := ocispec.Manifest{}
	if err := json.Unmarshal(raw, &manifest); err != nil || len(manifest.Layers) == 0 {
		return nil, errors.New("it is an index, or has no layers")
	}
	return manifest.Layers, nil
}

// blob returns a layer, whose digest is checked.
func blob(ctx context.Context, repo *remote.Repository, desc ocispec.Descriptor, most int64) ([]byte, error) {
	if desc.Size > most {
		return nil, fmt.Errorf("it is larger than %d MiB", most>>20)
	}
	body, err := repo.Blobs().Fetch(ctx, desc)
	if err != nil {
		return nil, fmt.Errorf("fetch a layer: %w", err)
	}
	defer func() { _ = body.Close() }()
	raw, err := content.ReadAll(io.LimitReader(body, most+1), desc)
	if err != nil {
		return nil, fmt.Errorf("fetch a layer: %w", err)
	}
	return raw, nil
}
