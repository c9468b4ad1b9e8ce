// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/live"
)

// Deliveries reads the deliveries to a cluster. A user without the right to list them in all namespaces gets those beside the sets that the
// registration names.
func (c *Connection) Deliveries(ctx context.Context, reg *hubv1.ClusterRegistration) ([]hubv1.AddonDelivery, error) {
	var out []hubv1.AddonDelivery
	read := func(namespace string) error {
		q := &live.Query{Client: c.Client, Kinds: "AddonDeliveries", Namespace: namespace,
			List:    func() client.ObjectList { return &hubv1.AddonDeliveryList{} },
			Options: []client.ListOption{client.MatchingLabels{hubv1.ClusterLabel: identity.LabelValue(reg.Name)}}}
		_, err := q.Pages(ctx, func(objects []client.Object) error {
			for _, object := range objects {
				d, ok := object.(*hubv1.AddonDelivery)
				if ok && d.Spec.RegistrationRef.Key() == client.ObjectKeyFromObject(reg) {
					out = append(out, *d)
				}
			}
			return nil
		})
		return err
	}
	err := read("")
	if !apierrors.IsForbidden(err) {
		return out, err
	}
	var namespaces []string
	for _, s := range reg.Status.Sets {
		namespace, _, _ := strings.Cut(s.Name, "/")
		namespaces = append(namespaces, namespace)
	}
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		if err := read(namespace); err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, err
	}
	return out, nil
}

// OwnNamespace is the namespace for a user who may not read all of them: that of -n, or of the kubeconfig's context.
func OwnNamespace(flags *genericclioptions.ConfigFlags) (string, error) {
	if *flags.Namespace != "" {
		return *flags.Namespace, nil
	}
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", exit.Wrong(fmt.Errorf("find the hub: %w", err))
	}
	return namespace, nil
}

// SayNarrow says that only one namespace is shown, since the user may not read all of them.
func SayNarrow(to io.Writer, kinds, namespace string) {
	terminal.Say(to, "cannot list %s in all namespaces: showing namespace %s", kinds, namespace)
}
