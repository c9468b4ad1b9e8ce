// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/test/localfleet"
)

// bed is an API server without a hub, a bare client to it, and a folder for files.
type bed struct {
	dir     string
	cluster *localfleet.Cluster
	raw     *raw
}

// startBed starts an API server that has the CRDs of some folders, and the namespaces. The caller must stop it.
func startBed(ctx context.Context, crds []string, namespaces ...string) (_ *bed, err error) {
	b := &bed{}
	if b.dir, err = os.MkdirTemp("", "chandler-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.stop())
		}
	}()
	b.cluster, err = localfleet.StartCluster(ctx,
		localfleet.ClusterOptions{Name: "management", Dir: b.dir, CRDPaths: crds, Scheme: hubscheme.New()})
	if err != nil {
		return nil, err
	}
	for _, ns := range namespaces {
		if err := b.cluster.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
			return nil, err
		}
	}
	b.raw, err = newRaw(b.cluster.Config)
	return b, err
}

func (b *bed) stop() error {
	var err error
	if b.cluster != nil {
		err = b.cluster.Stop()
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}
