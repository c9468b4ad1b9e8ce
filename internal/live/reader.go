// SPDX-License-Identifier: Apache-2.0

// Package live reads the objects of a live hub for the commands. It never writes, reads each object once, and returns
// nothing secret.
package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/status"
)

// Reader reads from one hub.
type Reader struct {
	Client client.Client
	// Hub is the hub's configuration; see Ask.
	Hub hubconfig.Shared
}

// Connect returns a client for the hub's API server. It has no cache, because a command reads each object once.
func Connect(config *rest.Config) (client.Client, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100 // a few dozen reads, and then it is over
	c, err := client.New(config, client.Options{Scheme: hubscheme.New()})
	if err != nil {
		return nil, fmt.Errorf("reach the hub at %s: %w", config.Host, err)
	}
	return c, nil
}

// Ask fills in Hub with the configuration that the hub publishes in its namespace. flags were made by Hub's own
// methods; a flag that the user has set keeps its value. If the hub publishes nothing, or the caller may not read it,
// the defaults apply.
func (r *Reader) Ask(ctx context.Context, namespace string, flags *pflag.FlagSet) error {
	published := &corev1.ConfigMap{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: hubconfig.ConfigMapName}, published)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("read ConfigMap %s/%s: %w", namespace, hubconfig.ConfigMapName, err)
	}
	if err := hubconfig.Adopt(flags, published.Data); err != nil {
		return fmt.Errorf("ConfigMap %s/%s: %w", namespace, hubconfig.ConfigMapName, err)
	}
	return r.Hub.Complete(namespace)
}

// maxNames is how many names an error lists.
const maxNames = 20

// Find returns the registration with a name, or namespace/name. An empty namespace means all.
func (r *Reader) Find(ctx context.Context, name, namespace string) (*hubv1.ClusterRegistration, error) {
	if ns, rest, ok := strings.Cut(name, "/"); ok {
		if ns == "" || rest == "" || strings.Contains(rest, "/") {
			return nil, fmt.Errorf("%q is not a cluster: write NAME or NAMESPACE/NAME", name)
		}
		if namespace != "" && namespace != ns {
			return nil, fmt.Errorf("cluster %s is not in namespace %q: leave out -n, or write the name alone", name, namespace)
		}
		namespace, name = ns, rest
	}
	list := &hubv1.ClusterRegistrationList{}
	err := r.Client.List(ctx, list, client.InNamespace(namespace))
	switch {
	case meta.IsNoMatchError(err):
		return nil, errors.New("this API server has no ClusterRegistrations, so it is not a Chandler hub: " +
			"choose another one by --context or --kubeconfig")
	case apierrors.IsForbidden(err) && namespace == "":
		return nil, fmt.Errorf("list the ClusterRegistrations of all namespaces: %w; write -n NAMESPACE for a namespace that you may read", err)
	case err != nil:
		return nil, fmt.Errorf("list the ClusterRegistrations: %w", err)
	}
	return choose(list.Items, name, namespace)
}

func choose(regs []hubv1.ClusterRegistration, name, namespace string) (*hubv1.ClusterRegistration, error) {
	var found []*hubv1.ClusterRegistration
	var known, candidates []string
	for i := range regs {
		full := regs[i].Namespace + "/" + regs[i].Name
		known = append(known, full)
		if regs[i].Name == name {
			found, candidates = append(found, &regs[i]), append(candidates, full)
		}
	}
	where := "on this hub"
	if namespace != "" {
		where = fmt.Sprintf("in namespace %q", namespace)
	}
	slices.Sort(known)
	slices.Sort(candidates)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("there are %d clusters called %q: %s; write one of these, or -n NAMESPACE", len(found), name,
			status.List(candidates, maxNames))
	case len(known) == 0:
		return nil, fmt.Errorf("there is no ClusterRegistration %s: label an origin %s: \"true\", or leave out the namespace to look in all",
			where, hubv1.RegisterLabel)
	}
	return nil, fmt.Errorf("there is no cluster %q %s; there are %s", name, where, status.List(known, maxNames))
}
