// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"sync"
)

// StartClusters starts clusters side by side, in the order of their options. If one fails, the others are stopped too.
func StartClusters(ctx context.Context, options ...ClusterOptions) ([]*Cluster, error) {
	clusters, errs := make([]*Cluster, len(options)), make([]error, len(options))
	var wg sync.WaitGroup
	for i, o := range options {
		wg.Go(func() { clusters[i], errs[i] = StartCluster(ctx, o) })
	}
	wg.Wait()
	err := errors.Join(errs...)
	if err == nil {
		return clusters, nil
	}
	for i, c := range clusters {
		if errs[i] == nil {
			err = errors.Join(err, c.Stop())
		}
	}
	return nil, err
}
