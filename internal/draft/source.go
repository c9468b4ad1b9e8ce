// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-hub/chandler/internal/fluxspec"
)

// Source is what `create source` is asked for. The fields are those of the flags of `flux create source`.
type Source struct {
	Object
	// Kind is GitRepository, HelmRepository or OCIRepository.
	Kind string
	URL  string
	// Branch, Tag, TagSemver, Ref, Commit and Digest say what of it; the kind decides which of them it has.
	Branch, Tag, TagSemver, Ref, Commit, Digest string
	SecretRef, CertRef, ProxyRef                string
	Provider                                    string
	Insecure, PassCredentials, Submodules       bool
	Interval, Timeout                           time.Duration

	// flag is the one that holds the address; empty for --url.
	flag string
}

// Make returns the source.
func (s Source) Make() ([]*unstructured.Unstructured, error) {
	if err := s.check(s.Kind); err != nil {
		return nil, err
	}
	spec, err := s.spec()
	if err != nil {
		return nil, err
	}
	if problems := fluxspec.CheckSource(s.Kind, spec, fluxspec.Author{}); len(problems) > 0 {
		return nil, fmt.Errorf("%s %s: spec.%s: %s", s.Kind, s.Name, problems[0].Path, problems[0].Message)
	}
	u := document(sourcev1.GroupVersion.String(), s.Kind, s.Object)
	u.Object["spec"] = spec
	return []*unstructured.Unstructured{u}, nil
}

// spec returns the spec of the source.
func (s Source) spec() (map[string]any, error) {
	if s.URL == "" {
		return nil, errors.New("write its address: --url")
	}
	spec := map[string]any{"url": s.URL}
	set(spec, s.Interval, "interval")
	set(spec, s.Timeout, "timeout")
	set(spec, s.SecretRef, "secretRef", "name")
	set(spec, s.CertRef, "certSecretRef", "name")
	set(spec, s.ProxyRef, "proxySecretRef", "name")
	set(spec, s.Provider, "provider")
	var err error
	switch s.Kind {
	case sourcev1.GitRepositoryKind:
		err = s.git(spec)
	case sourcev1.HelmRepositoryKind:
		err = checkURL(cmp.Or(s.flag, "--url"), s.URL, "https", "http", "oci")
		if strings.HasPrefix(s.URL, "oci://") {
			spec["type"] = sourcev1.HelmRepositoryTypeOCI
		}
		set(spec, s.PassCredentials, "passCredentials")
	case sourcev1.OCIRepositoryKind:
		err = s.oci(spec)
	}
	return spec, err
}

func (s Source) git(spec map[string]any) error {
	if err := checkURL(cmp.Or(s.flag, "--url"), s.URL, "https", "http", "ssh"); err != nil {
		return err
	}
	set(spec, s.Submodules, "recurseSubmodules")
	set(spec, s.Commit, "ref", "commit")
	if s.Commit != "" { // Flux takes a branch with a commit, to fetch less
		set(spec, s.Branch, "ref", "branch")
		return one("--commit", s.Commit, "--tag", s.Tag, "--tag-semver", s.TagSemver, "--ref-name", s.Ref)
	}
	if err := one("--branch", s.Branch, "--tag", s.Tag, "--tag-semver", s.TagSemver, "--ref-name", s.Ref); err != nil {
		return err
	}
	branch := s.Branch
	if s.Tag+s.TagSemver+s.Ref == "" && branch == "" {
		return errors.New("which of its content? Write --branch, --tag, --tag-semver, --ref-name or --commit")
	}
	set(spec, branch, "ref", "branch")
	set(spec, s.Tag, "ref", "tag")
	set(spec, s.TagSemver, "ref", "semver")
	set(spec, s.Ref, "ref", "name")
	return nil
}

func (s Source) oci(spec map[string]any) error {
	if err := checkURL(cmp.Or(s.flag, "--url"), s.URL, "oci"); err != nil {
		return err
	}
	if err := one("--tag", s.Tag, "--tag-semver", s.TagSemver, "--digest", s.Digest); err != nil {
		return err
	}
	if s.Tag+s.TagSemver+s.Digest == "" {
		return errors.New("which of its content? Write --tag, --tag-semver or --digest")
	}
	set(spec, s.Insecure, "insecure")
	set(spec, s.Tag, "ref", "tag")
	set(spec, s.TagSemver, "ref", "semver")
	set(spec, s.Digest, "ref", "digest")
	return nil
}

// one returns an error if more than one of some flags is set. It takes names and values in turn.
func one(flags ...string) error {
	var there []string
	for i := 0; i < len(flags); i += 2 {
		if flags[i+1] != "" {
			there = append(there, flags[i])
		}
	}
	if len(there) > 1 {
		return fmt.Errorf("%s exclude each other: write one of them", strings.Join(there, " and "))
	}
	return nil
}
