// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chandler-hub/chandler/internal/shard"
)

func TestOf(t *testing.T) {
	if got := shard.Of("one", nil); got != "" {
		t.Errorf("without shards a cluster is on %q", got)
	}
	if got := shard.Of("one", []string{"a"}); got != "a" {
		t.Errorf("with one shard a cluster is on %q", got)
	}
	for i := range 100 {
		c := fmt.Sprintf("c%d", i)
		if a, b := shard.Of(c, []string{"a", "b", "c"}), shard.Of(c, []string{"c", "a", "b"}); a != b {
			t.Fatalf("%s is on %s or on %s, as the flag is written", c, a, b)
		}
	}
}

// Every shard has about its part. The fourth shard takes about a quarter of the clusters and moves no other; so does taking one away.
func TestMoves(t *testing.T) {
	const clusters = 10_000
	three, four := []string{"a", "b", "c"}, []string{"a", "b", "c", "d"}
	moved, on := 0, map[string]int{}
	for i := range clusters {
		c := fmt.Sprintf("%016x", i*7919)
		before, after := shard.Of(c, three), shard.Of(c, four)
		on[after]++
		if before == after {
			continue
		}
		if moved++; after != "d" {
			t.Fatalf("%s moves from %s to %s, and only the new shard takes clusters", c, before, after)
		}
		if back := shard.Of(c, slices.DeleteFunc(slices.Clone(four), func(s string) bool { return s == "d" })); back != before {
			t.Fatalf("%s does not go back to %s", c, before)
		}
	}
	for s, n := range on {
		if n < clusters*23/100 || n > clusters*27/100 {
			t.Errorf("shard %s has %d of %d", s, n, clusters)
		}
	}
	if moved < clusters*23/100 || moved > clusters*27/100 {
		t.Errorf("%d of %d clusters moved, and a quarter is to", moved, clusters)
	}
}
