// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/openapi/cached"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// careful is a client that writes nothing: every request for a write is one for a dry run. An API server of an extension that does not know
// dryRun would ignore it, and write. So what does not say in its OpenAPI that it knows it is not asked.
type careful struct {
	client.Client

	mu       sync.Mutex
	verifier resource.Verifier
	known    map[schema.GroupVersionKind]error
}

func newCareful(c client.Client, config *rest.Config, httpClient *http.Client) (*careful, error) {
	d, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("ask it for its OpenAPI: %w", err)
	}
	crds, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("ask it for its OpenAPI: %w", err)
	}
	verifier := resource.NewQueryParamVerifierV3(crds, cached.NewClient(d.OpenAPIV3()), resource.VerifiableQueryParam("dryRun"))
	return &careful{Client: client.NewDryRunClient(c), verifier: verifier, known: map[schema.GroupVersionKind]error{}}, nil
}

// Patch tries a patch, if who serves the object can try.
func (c *careful) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := c.tries(obj.GetObjectKind().GroupVersionKind()); err != nil {
		return err
	}
	return c.Client.Patch(ctx, obj, patch, opts...) //nolint:wrapcheck // the words of the API server are told
}

// tries returns an error if who serves a kind does not say that it can try.
func (c *careful) tries(gvk schema.GroupVersionKind) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err, asked := c.known[gvk]
	if !asked {
		err = c.verifier.HasSupport(gvk)
		if err != nil {
			err = apierrors.NewBadRequest(fmt.Sprintf("not tried: the server of %s in version %s does not say in its OpenAPI that it knows "+
				"dryRun, and could write", gvk.GroupKind(), gvk.Version))
		}
		c.known[gvk] = err
	}
	return err
}
