// SPDX-License-Identifier: Apache-2.0

// Package shard decides which shard of Flux's controllers serves a cluster. It is pure, so every replica of the hub
// decides the same, before and after every restart.
package shard

import (
	"crypto/sha256"
	"encoding/binary"
)

// Label is by which Flux's controllers tell the objects of a shard, with --watch-label-selector
// (https://fluxcd.io/flux/installation/configuration/sharding/).
const Label = "sharding.fluxcd.io/key"

// Of returns the shard of a cluster, "" if there are none: the one that wins a draw among all of them, which is held for each cluster
// anew (rendezvous hashing; Thaler and Ravishankar, 1998). A shard that is added wins just its part of the clusters, each from a
// shard that had it, and no other cluster moves; the clusters of one that is taken away are spread over the rest.
func Of(cluster string, shards []string) string {
	var winner string
	var most uint64
	for _, s := range shards {
		sum := sha256.Sum256([]byte(cluster + "\x00" + s))
		if score := binary.BigEndian.Uint64(sum[:]); winner == "" || score > most || score == most && s < winner {
			winner, most = s, score
		}
	}
	return winner
}
