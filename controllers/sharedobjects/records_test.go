// SPDX-License-Identifier: Apache-2.0

package sharedobjects

import (
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestRecordsAreForgotten: what nobody uses and nothing is known of takes no memory; what somebody holds stays his.
func TestRecordsAreForgotten(t *testing.T) {
	k := &Keeper{}
	key := id{sourcev1.HelmChartKind, types.NamespacedName{Namespace: "flux-system", Name: "chart"}}
	first, release := k.record(key)
	first.hash = "a"
	release()
	if k.records.Len() != 1 {
		t.Fatal("what was written is forgotten")
	}
	again, release := k.record(key)
	if again != first {
		t.Fatal("there are two records of one object")
	}
	waits := k.take(key) // who waits for the lock
	again.hash, again.idleSince = "", time.Time{}
	release()
	if is, _ := k.records.Get(key); is != waits {
		t.Fatal("a record is forgotten that somebody waits for")
	}
	waits.users--
	if _, release = k.record(key); k.records.Len() != 1 {
		t.Fatal("there is no record")
	}
	if release(); k.records.Len() != 0 {
		t.Errorf("%d records are left of what is gone", k.records.Len())
	}
}

// TestGone: what somebody has deleted is made again, though it was made a moment ago.
func TestGone(t *testing.T) {
	k := &Keeper{}
	key := id{sourcev1.HelmChartKind, types.NamespacedName{Namespace: "flux-system", Name: "chart"}}
	first, release := k.record(key)
	first.hash = "a"
	k.Gone(key.kind, key.NamespacedName)
	again, releaseAgain := k.record(key)
	if again == first || again.hash != "" {
		t.Error("it counts as made")
	}
	release()
	if is, _ := k.records.Get(key); is != again {
		t.Error("who was at work on the former one has the new one forgotten")
	}
	releaseAgain()
}
