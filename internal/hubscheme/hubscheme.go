// SPDX-License-Identifier: Apache-2.0

// Package hubscheme has the scheme of the kinds that the hub reads and writes, for everything that talks to its API server.
package hubscheme

import (
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// New returns a new scheme with Kubernetes' own kinds, the hub's and Flux's. It panics if two Go types claim the same
// kind, which no input can cause.
func New() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, hubv1.AddToScheme, helmv2.AddToScheme, kustomizev1.AddToScheme,
		sourcev1.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}
