// SPDX-License-Identifier: Apache-2.0

// Package indextest gives fake clients the indexes of the hub's cache, for the tests of the controllers.
package indextest

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
)

// All adds every index of the hub.
func All(b *fake.ClientBuilder) *fake.ClientBuilder {
	if err := index.Add(context.Background(), indexer{b}); err != nil {
		panic(err) // a fake client refuses none
	}
	return b
}

// NoTeams adds the index of Teams, for a hub that has none, beside indexes of the test's own. The builder has to have its
// scheme.
func NoTeams(b *fake.ClientBuilder) *fake.ClientBuilder {
	return b.WithIndex(&hubv1.Team{}, index.Governs, func(client.Object) []string { return nil })
}

type indexer struct{ *fake.ClientBuilder }

// IndexField implements client.FieldIndexer.
func (b indexer) IndexField(_ context.Context, obj client.Object, field string, value client.IndexerFunc) error {
	b.WithIndex(obj, field, value)
	return nil
}
