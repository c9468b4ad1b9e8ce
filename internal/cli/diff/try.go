// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"

	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/diff"
	"github.com/chandler-hub/chandler/internal/dryrun"
)

// mostTried is how many clusters are tried at the most, unless they are named.
const mostTried = 20

// try has the API servers of a sample of clusters say what becomes of the objects.
func (o *Options) try(ctx context.Context, r *diff.Result, makers *diff.Makers) error {
	most := mostTried
	if len(o.Clusters) > 0 {
		most = len(o.Clusters)
	}
	picks, left, err := r.Sample(o.Clusters, most)
	if err != nil {
		return err
	}
	if left != "" {
		r.Untried("", left)
	}
	if err := o.Connect(ctx); err != nil {
		return err
	}
	rules, unknown, err := o.Reader.Rules(ctx, o.HubNamespace)
	if err != nil {
		return err
	}
	if unknown != "" {
		terminal.Say(o.ErrOut, "note: by which rules the hub checks kubeconfigs is not known, and those of a hub without flags count: %s",
			unknown)
	}
	dryrun.Try(ctx, o.Client, rules, r, makers, picks)
	return nil
}
