// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"sync"
)

// StartClusters starts clusters side by side, in the order of their options. If one fails, the others are stopped too.
func StartClusters(ctx context.Context, options ...ClusterOptions) ([]*Cluster, error) {
	clusters, starts := make([]*Cluster, len(options)), make([]func() error, len(options))
	for i, o := range options {
		starts[i] = func() (err error) {
			clusters[i], err = StartCluster(ctx, o)
			return err
		}
	}
	err := SideBySide(starts...)
	if err == nil {
		return clusters, nil
	}
	for _, c := range clusters {
		if c != nil {
			err = errors.Join(err, c.Stop())
		}
	}
	return nil, err
}

// SideBySide calls functions at the same time, waits for all, and joins their errors.
func SideBySide(functions ...func() error) error {
	errs := make([]error, len(functions))
	var wg sync.WaitGroup
	for i, f := range functions {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
