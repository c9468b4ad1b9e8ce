// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/chandler-hub/chandler/test/localfleet/parts"
)

// A seed is what etcd holds of a cluster that has just started and has some CRDs. A cluster begins with a copy of one: half of its start
// costs are some 400 requests by which an API server makes its own roles, and the schemas that it computes after each single CRD.
//
// Seeds are in the cache of the parts: they are the same for all that start the same parts with the same CRDs.

// seedScheme is part of a seed's name; a change of what is in a seed changes it.
const seedScheme = "2"

// inSeeds are the kinds that a seed keeps, in the order of their keys. Everything else is a cluster's own: namespaces, whose UIDs tell
// clusters apart, the certificates of its authority, leases, Services.
var inSeeds = []string{
	"apiextensions.k8s.io/customresourcedefinitions/", "apiregistration.k8s.io/apiservices/", "clusterrolebindings/", "clusterroles/",
	"flowschemas/", "priorityclasses/", "prioritylevelconfigurations/",
}

// seeding is held while this process looks for a seed, or makes one.
var seeding sync.Mutex

// seed returns the folder of a seed with the CRDs of some folders, which are in the cache too. It makes one if there is none.
func seed(ctx context.Context, crds []string) (string, error) {
	cache, err := parts.CacheDir()
	if err != nil {
		return "", err
	}
	name := sha256.New()
	fmt.Fprintln(name, seedScheme)
	for _, part := range []string{parts.Etcd, parts.KubeAPIServer} {
		path, err := parts.Path(part)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(name, path) // it is by what the part was made of
	}
	for _, dir := range slices.Sorted(slices.Values(crds)) {
		fmt.Fprintln(name, dir)
	}
	seeding.Lock()
	defer seeding.Unlock()
	dir := filepath.Join(cache, fmt.Sprintf("seed-%x", name.Sum(nil)[:8]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	tmp, err := os.MkdirTemp(cache, "new-seed-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := grow(ctx, tmp, crds); err != nil {
		return "", fmt.Errorf("make a cluster to copy: %w", err)
	}
	// Another process may have been faster.
	if err := os.Rename(filepath.Join(tmp, "etcd"), dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, nil
}

// grow starts a cluster, stops it when it has its CRDs, and moves what its etcd holds to folder etcd.
func grow(ctx context.Context, dir string, crds []string) error {
	c, err := StartCluster(ctx, ClusterOptions{Name: "seed", Dir: dir, CRDPaths: crds, unseeded: true})
	if err != nil {
		return err
	}
	c.process(parts.KubeAPIServer).Stop()
	from := "/registry/"
	for _, kind := range inSeeds {
		err = errors.Join(err, c.forget(ctx, from, "/registry/"+kind))
		from = "/registry/" + strings.TrimSuffix(kind, "/") + "0" // the byte after the slash: the end of the kind's keys
	}
	err = errors.Join(err, c.forget(ctx, from, "/registry0"))
	c.process(parts.Etcd).Stop()
	if err == nil {
		err = os.Rename(filepath.Join(c.dir, "etcd"), filepath.Join(dir, "etcd"))
	}
	return errors.Join(err, cutZeros(filepath.Join(dir, "etcd")), c.Stop())
}

// forget deletes a range of etcd's keys, by its gateway for JSON.
func (c *Cluster) forget(ctx context.Context, from, to string) error {
	body, err := json.Marshal(map[string][]byte{"key": []byte(from), "range_end": []byte(to)})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.etcd+"/v3/kv/deleterange", bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.probe.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answers %s", resp.Status)
	}
	return nil
}

// cutZeros shortens etcd's log, which is made 64 MB long at once. etcd makes it as long again when it opens it.
func cutZeros(etcd string) error {
	logs, err := filepath.Glob(filepath.Join(etcd, "member", "wal", "*.wal"))
	for _, file := range logs {
		raw, readErr := os.ReadFile(file)
		// The last record ends within eight bytes, to which records are filled up.
		end := min(len(raw), (len(bytes.TrimRight(raw, "\x00"))+15)&^7)
		err = errors.Join(err, readErr, os.Truncate(file, int64(end)))
	}
	tmp, globErr := filepath.Glob(filepath.Join(etcd, "member", "wal", "*.tmp"))
	for _, file := range tmp { // those that etcd has ready for what comes after
		err = errors.Join(err, os.Remove(file))
	}
	return errors.Join(err, globErr)
}

// installCRDs installs CRDs, and waits until the API server serves them and those that it has had from the beginning.
func (c *Cluster) installCRDs(there, missing []string) error {
	old := envtest.CRDInstallOptions{Paths: there, ErrorIfPathMissing: true}
	all := envtest.CRDInstallOptions{Paths: missing, ErrorIfPathMissing: true, MaxTime: readyTimeout, PollInterval: 100 * time.Millisecond}
	if err := errors.Join(envtest.ReadCRDFiles(&old), envtest.ReadCRDFiles(&all)); err != nil {
		return err
	}
	if err := envtest.CreateCRDs(c.Config, all.CRDs); err != nil {
		return err
	}
	return envtest.WaitForCRDs(c.Config, slices.Concat(old.CRDs, all.CRDs), all)
}

// sow gives the cluster, which has not started, a seed with those CRDs that are in the cache. It returns these and the others. A prebuilt
// etcd or API server may be any, so there is no seed for it.
func (c *Cluster) sow(ctx context.Context, o ClusterOptions) (pinned, rest []string, err error) {
	if _, prebuilt := parts.Prebuilt(parts.Etcd); prebuilt || o.unseeded {
		return nil, o.CRDPaths, nil
	}
	cache, err := parts.CacheDir()
	if err != nil {
		return nil, nil, err
	}
	for _, dir := range o.CRDPaths {
		if strings.HasPrefix(dir, cache+string(filepath.Separator)) {
			pinned = append(pinned, dir)
		} else {
			rest = append(rest, dir)
		}
	}
	dir, err := seed(ctx, pinned)
	if err != nil {
		return nil, nil, err
	}
	return pinned, rest, os.CopyFS(filepath.Join(c.dir, "etcd"), os.DirFS(dir))
}
