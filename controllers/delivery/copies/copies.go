// SPDX-License-Identifier: Apache-2.0

// Package copies keeps in the namespaces of sets the copies that Flux reads there for a cluster: of its kubeconfig, and of values that lie
// in the namespace of its registration.
package copies

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/controllers/delivery/observed"
	"github.com/chandler-hub/chandler/controllers/delivery/planned"
	"github.com/chandler-hub/chandler/controllers/documents"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/plan"
	"github.com/chandler-hub/chandler/internal/team"
)

// Cluster is a cluster with the copies of kubeconfigs and of values that Flux needs for what is to be done there.
type Cluster struct {
	*planned.Cluster
	// inPlace are the namespaces in which the kubeconfig copy that Flux needs is in place.
	inPlace map[string]bool
	// kept is what the hub keeps for the cluster beside the sets, by kind; see keptBeside.
	kept map[string][]metav1.PartialObjectMetadata
	// foreign are those in which an object that is not the hub's has its name, which the error names.
	foreign map[string]error
	// uncopied says of copies of what lies beside the cluster why they could not be made.
	uncopied map[plan.Key]error
}

// Begin begins to look after the copies of a cluster.
func Begin(c *planned.Cluster) *Cluster {
	return &Cluster{Cluster: c, inPlace: map[string]bool{}, uncopied: map[plan.Key]error{}}
}

// Keeper keeps the copies of kubeconfigs and of values that Flux reads.
type Keeper struct {
	Client client.Client
	Live   client.Reader
	Config *hubconfig.Config

	Reader    *observed.Reader
	Documents *documents.Reader
}

// ErrNoCopy says that Flux cannot log in to the cluster from a namespace yet.
var ErrNoCopy = errors.New("the copy of the kubeconfig, or of the workload identity, is not in place yet")

// NoCopy says why an object cannot be made yet: there is no kubeconfig copy in its namespace.
func (c *Cluster) NoCopy(namespace string) error {
	if by := c.foreign[namespace]; by != nil {
		return fmt.Errorf("%w: %s. Remove it", ErrNoCopy, by.Error()) // to be waited for, and no failure of an add-on
	}
	from := c.Reach[namespace]
	if !from.ByTeam() {
		return ErrNoCopy
	}
	return fmt.Errorf("%w: it gets a token of Team %s/%s when AddonSet %q is Ready here", ErrNoCopy, from.Team.Namespace, from.Team.Name,
		team.SetName(from.Team.Name))
}

// MayWrite returns whether Flux could log in to the cluster for an object. For a Team nothing is made while its rights are
// withdrawn, as after a user has deleted their AddonSet: they may go in this very pass, and would not wait for it.
func (c *Cluster) MayWrite(s plan.Step) bool {
	if rights := c.Rights(s.Key.Namespace); s.Verb == plan.Create && rights != nil && rights.Leaving {
		return false
	}
	return c.inPlace[s.Key.Namespace] || s.Verb != plan.Create && !c.Reach[s.Key.Namespace].ByTeam()
}
