// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"sort"
	"strings"
)

// checksumsName is the file that sha256sum --check reads.
const checksumsName = "SHA256SUMS"

// writeChecksums writes the checksum of every file that is published; the image has its digest.
func (r *release) writeChecksums(context.Context) error {
	sums, err := r.checksums()
	if err != nil {
		return err
	}
	return os.WriteFile(r.path(checksumsName), []byte(sums), 0o644)
}

// checkChecksums holds the file against the files that are there now.
func (r *release) checkChecksums(context.Context) error {
	written, err := os.ReadFile(r.path(checksumsName))
	if err != nil {
		return err
	}
	now, err := r.checksums()
	if err != nil {
		return err
	}
	if string(written) != now {
		return fmt.Errorf("%s says\n%sand the files are\n%s", checksumsName, written, now)
	}
	// Every platform's archive and SBOM, the image's SBOMs, the chart, the manifests and the one for krew.
	if want, got := 2*len(r.commands)+len(r.images)+3, strings.Count(now, "\n"); want != got {
		return fmt.Errorf("%d files are published, and not %d:\n%s", got, want, now)
	}
	return nil
}

func (r *release) checksums() (string, error) {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, e := range entries {
		if e.IsDir() || e.Name() == checksumsName || e.Name() == notesName {
			continue
		}
		content, err := os.ReadFile(r.path(e.Name()))
		if err != nil {
			return "", err
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(content), e.Name()))
	}
	sort.Strings(lines)
	return strings.Join(lines, ""), nil
}
