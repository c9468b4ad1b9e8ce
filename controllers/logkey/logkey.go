// SPDX-License-Identifier: Apache-2.0

// Package logkey holds the keys and values by which logs name things. One search finds every line about a cluster, a
// set or an add-on, whichever controller wrote it.
package logkey

import (
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The keys.
const (
	// Cluster is the namespace/name of a ClusterRegistration.
	Cluster = "cluster"
	// Set is the namespace/name of an AddonSet.
	Set = "addonset"
	// Team is the namespace/name of a Team.
	Team = "team"
	// Addon is the name of an add-on.
	Addon = "addon"
	// Object is the kind and namespace/name of a Flux object.
	Object = "object"
	// Origin is the kind and namespace/name of what a cluster comes from.
	Origin = "origin"

	// controller is the key that controller-runtime uses.
	controller = "controller"
)

// Of returns a controller's log constructor: each line of a reconcile names what it is about under a key.
func Of(mgr manager.Manager, of, key string) func(*reconcile.Request) logr.Logger {
	return OfAny(mgr, of, key, func(req reconcile.Request) string { return req.String() })
}

// OfAny is Of for requests of another type.
func OfAny[R any](mgr manager.Manager, of, key string, name func(R) string) func(*R) logr.Logger {
	log := mgr.GetLogger().WithValues(controller, of)
	return func(req *R) logr.Logger {
		if req == nil { // the controller starts or stops
			return log
		}
		return log.WithValues(key, name(*req))
	}
}
