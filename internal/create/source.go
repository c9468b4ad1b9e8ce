// SPDX-License-Identifier: Apache-2.0

package create

import (
	"errors"
	"fmt"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// upstream is what a set fetches.
type upstream struct {
	// kind is GitRepository, HelmRepository or OCIRepository.
	kind, url              string
	branch, tag, tagSemver string
	secretRef              string
	// flag is the one that holds the address.
	flag string
}

// spec returns the spec of the source.
func (s *upstream) spec() (map[string]any, error) {
	spec := map[string]any{"url": s.url}
	set(spec, s.secretRef, "secretRef", "name")
	var err error
	switch s.kind {
	case sourcev1.GitRepositoryKind:
		err = s.git(spec)
	case sourcev1.HelmRepositoryKind:
		err = checkURL(s.flag, s.url, "https", "http", "oci")
		if strings.HasPrefix(s.url, "oci://") {
			spec["type"] = sourcev1.HelmRepositoryTypeOCI
		}
	case sourcev1.OCIRepositoryKind:
		err = s.oci(spec)
	}
	return spec, err
}

func (s *upstream) git(spec map[string]any) error {
	if err := checkURL(s.flag, s.url, "https", "http", "ssh"); err != nil {
		return err
	}
	if err := one("--branch", s.branch, "--tag", s.tag, "--tag-semver", s.tagSemver); err != nil {
		return err
	}
	if s.branch+s.tag+s.tagSemver == "" {
		return errors.New("which of its content? Write --branch, --tag or --tag-semver")
	}
	set(spec, s.branch, "ref", "branch")
	set(spec, s.tag, "ref", "tag")
	set(spec, s.tagSemver, "ref", "semver")
	return nil
}

func (s *upstream) oci(spec map[string]any) error {
	if err := checkURL(s.flag, s.url, "oci"); err != nil {
		return err
	}
	if err := one("--tag", s.tag, "--tag-semver", s.tagSemver); err != nil {
		return err
	}
	if s.tag+s.tagSemver == "" {
		return errors.New("which of its content? Write --tag or --tag-semver")
	}
	set(spec, s.tag, "ref", "tag")
	set(spec, s.tagSemver, "ref", "semver")
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
