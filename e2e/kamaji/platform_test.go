// SPDX-License-Identifier: Apache-2.0

package kamaji

import (
	"context"
	"io/fs"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Platform is what the tests run on: a management cluster with Kamaji, Flux and the hub, where tenants can be made. The tests
// know nothing else of it, so that the same ones run on processes of this machine, on a real node of it, and on kind.
type Platform interface {
	// Client is the administrator's on the management cluster. It caches nothing.
	Client() client.Client
	// Kubeconfig is a file for it; "" for kubectl's own.
	Kubeconfig() string
	// CreateTenant makes a TenantControlPlane in a namespace that is there. It does not wait until it is Ready.
	CreateTenant(ctx context.Context, key client.ObjectKey, t Tenant) error
	// TenantConfig is how the tests reach a tenant's own API: as its super-admin, with the credentials of this moment.
	TenantConfig(ctx context.Context, key client.ObjectKey) (*rest.Config, error)
	// JoinNode gives a tenant that is Ready a node, on which pods run, or seem to. It returns false where tenants have none.
	JoinNode(ctx context.Context, key client.ObjectKey) (bool, error)
	// Hello gives the nodes of tenants an image by this name, of a server that says the name of its pod. It returns false where pods
	// only seem to run.
	Hello(ctx context.Context, image string) (bool, error)
	// Versions are two versions of Kubernetes that Kamaji accepts: it can upgrade a tenant from the first to the second, which is
	// what tenants get that ask for none.
	Versions() (older, newest string)
	// Patience is how long a control plane may take to come, or to come back.
	Patience() time.Duration
	// PublishChart adds the chart in a folder to a Helm repository that Flux reaches at ChartsURL.
	PublishChart(fsys fs.FS, dir string) error
	ChartsURL() string
	// Commit makes files the content of the branch main of a Git repository that Flux reaches at GitURL.
	Commit(files map[string]string) error
	GitURL() string
	// Dump prints what helps to understand a failure, beside the objects of the hub, of Flux and of Kamaji. It reads no Secret.
	Dump(t *testing.T)
	// Denied returns what RBAC did not let the hub do, where that is known.
	Denied() ([]string, error)
	// Close ends all that was started, and leaves nothing behind.
	Close() error
}

// Tenant is what a TenantControlPlane is to be. Addresses and the size of the control plane are the platform's to choose.
type Tenant struct {
	Labels map[string]string
	// Version is the newest that the platform knows if empty.
	Version string
	// PodCIDR is spec.networkProfile.podCidr.
	PodCIDR string
}
