// SPDX-License-Identifier: Apache-2.0

// Package memory holds what a process of the hub remembers beside its cache. What can be read is not remembered: from the cache, from an
// index of it, or from a status. So there are few memories, of three types:
//
//   - [Map], by objects of the cluster. Its bound is how many of them there are: who uses it forgets what is gone.
//   - [Recent], of what can be made again. It has a [Bound], and forgets what was not used for longest.
//   - [Readers], of who reads what. Its bound is what the readers read now.
//
// All of it is lost at a restart, and is not there in a process that begins to lead. Below is all that the hub remembers, by package,
// each with why it is not read, its bound, and what a restart costs.
//
// # controllers/delivery/planned
//
// Which deliveries of a cluster were looked at last, and what was rendered of each, without bodies. No object has the result as a whole,
// and it takes milliseconds to make. Bound: one for each delivery, until the cluster is looked at without it. Restart: all is rendered
// once.
//
// # controllers/delivery/observed
//
// Sightings: what a Flux object has shown since the hub knows it, so that a routine look of Flux is no news. An event has only the last
// two states. Bound: one for each Flux object, until it is deleted. Restart: the status of the object counts.
//
// Ledger: the generation of a Flux object after the hub's write, until the delivery's status shows it, and what was deleted. Bound: one
// for each Flux object, until it is deleted; deletions go with the next one after a minute. Restart: an object may be written once more.
//
// Looks: whether a Secret in a namespace out of reach has the kubeconfig of a cluster. The cache has no bytes of Secrets. Bound: the
// namespaces with deliveries of each cluster. Restart: each is read once.
//
// # controllers/expectations
//
// What a controller has written, until its cache shows it: the cache is what is behind. Bound: the writes of one reconcile for each key,
// each for three seconds. Restart: none, since the cache begins with all of it.
//
// # controllers/documents
//
// ConfigMaps and Secrets that sets refer to; of Secrets only names. The cache has only their metadata. Bound: 128 MiB for each
// controller, and only what is read. Restart: each is read once.
//
// Who has read them: expressions name them, so no index can. Bound: what each cluster and set reads now. Restart: all is read again.
//
// # controllers/programs
//
// Compiled sets, and the names of their contents. A set takes up to a second. Bound: 1,000 and 256 MiB, and 16,000 names. Restart: each
// is compiled once.
//
// # controllers/addonset
//
// What the matcher needs of each compiled set, which clusters it has told to start, and which it has counted without a delivery.
// Statuses show that late: a cluster that is about to start takes its slot. Bound: one for each set, until it is gone. Restart: nothing
// is decided about the clusters of a set until it is compiled.
//
// What each set follows upstream. It costs as much to find as to render some clusters. Bound: one for each set. Restart: it is found
// once.
//
// # controllers/registration
//
// What was found in the Secret that a registration reads. The cache has no bytes of Secrets. Bound: one for each registration at most;
// those that read the same share it. Restart: each is read once.
//
// What is probed of a registration, the state of its origin then, and since when an origin cannot be read. Bound: one for each
// registration. Restart: clusters are probed in turn, and the time until something is orphaned begins anew.
//
// # controllers/sharedobjects
//
// What was written of a shared object, until the cache shows it, and since when no delivery uses it. Bound: one for each object, until
// it is deleted. Restart: its retention begins anew.
//
// # controllers/tokens
//
// When a cluster that has given no token, or one just now, is asked again. Bound: the namespaces with deliveries of each cluster.
// Restart: all are asked at once.
//
// # controllers/profiles
//
// Digests of what a ClusterProfile shows, and of which kubeconfig. What the profile says itself may be a user's edit. Bound: one for
// each registration. Restart: each Secret is read once.
//
// # controllers/index
//
// One copy of each string that many objects of the cache share. Bound: 32 MiB. Restart: they are collected anew.
//
// # internal/crdschema
//
// Digests of bodies that a schema has accepted. To check one takes a tenth of a millisecond. Bound: 20,000 for each schema. Restart:
// each is checked once.
//
// # internal/pace
//
// Since when a status waits to be written. Bound: one for each object, until it is written or gone. Restart: it is written with the next
// change.
package memory
