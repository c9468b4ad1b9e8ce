// SPDX-License-Identifier: Apache-2.0

// Package shard decides which shard of Flux's controllers serves a cluster. It is pure, so every replica of the hub
// decides the same, before and after every restart.
package shard

import (
	"crypto/sha256"
	"encoding/binary"
)

// Label is the label by which Flux's controllers select the objects of their shard, with --watch-label-selector
// (https://fluxcd.io/flux/installation/configuration/sharding/).
const Label = "sharding.fluxcd.io/key"

// Of returns the shard of a cluster, or "" if there are no shards. It uses rendezvous hashing (Thaler and
// Ravishankar, 1998): the shard with the highest hash for the cluster wins. A new shard takes over only its share of
// the clusters, and no other cluster moves. If a shard is removed, its clusters are spread over the rest.
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
