// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/live"
)

// liveOptions are what commands that look at a live hub have in common.
type liveOptions struct {
	flags  *genericclioptions.ConfigFlags
	reader live.Reader
	client client.WithWatch
}

// newLive returns the options, and adds kubectl's flags to a command.
func newLive(cmd *cobra.Command) *liveOptions {
	o := &liveOptions{flags: genericclioptions.NewConfigFlags(true)}
	// As in `chandler explain`: --cluster would be one of the kubeconfig.
	o.flags.ClusterName, o.flags.CacheDir = nil, nil
	o.flags.AddFlags(cmd.Flags())
	namespaces := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return o.complete(corev1.SchemeGroupVersion.WithKind("NamespaceList"), nil)
	}
	if err := cmd.RegisterFlagCompletionFunc("namespace", namespaces); err != nil {
		panic(err)
	}
	return o
}

// connect finds the hub.
func (o *liveOptions) connect() error {
	if o.reader.Client != nil {
		return nil
	}
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("find the hub: %w", err)
	}
	c, err := live.Connect(config)
	if err != nil {
		return err
	}
	o.reader.Client, o.client = c, c
	return nil
}

// completionTime is how long a shell waits for the hub. Nobody waits longer for a key.
const completionTime = 2 * time.Second

// The kinds of which names are completed.
var (
	registrationNames = hubv1.GroupVersion.WithKind("ClusterRegistrationList")
	setNames          = hubv1.GroupVersion.WithKind("AddonSetList")
)

// complete returns the names of a kind in the namespace of -n, or as NAMESPACE/NAME in all namespaces. Without an answer there are none.
func (o *liveOptions) complete(kind schema.GroupVersionKind, taken []string) ([]string, cobra.ShellCompDirective) {
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	config.Timeout = completionTime
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	names := make(chan []string, 1)
	go func() { // discovery does not know of ctx
		c, err := live.Connect(config)
		if err != nil {
			names <- nil
			return
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		opts := []client.ListOption{client.Limit(1000)}
		if *o.flags.Namespace != "" && kind.Group != corev1.GroupName {
			opts = append(opts, client.InNamespace(*o.flags.Namespace))
		}
		if c.List(ctx, list, opts...) != nil {
			list.Items = nil
		}
		var out []string
		for i := range list.Items {
			name := list.Items[i].Name
			if list.Items[i].Namespace != "" && *o.flags.Namespace == "" {
				name = list.Items[i].Namespace + "/" + name
			}
			if !slices.Contains(taken, name) {
				out = append(out, name)
			}
		}
		names <- out
	}()
	select {
	case <-ctx.Done():
		return nil, cobra.ShellCompDirectiveNoFileComp
	case out := <-names:
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeNames completes the names of kinds, for as many arguments as most says; 0 is any number.
func (o *liveOptions) completeNames(most int, kinds ...schema.GroupVersionKind) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) (out []string, how cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, kind := range kinds {
			names, _ := o.complete(kind, args)
			out = append(out, names...)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// deliveries reads the deliveries to a cluster. Who may not list them everywhere gets those beside the sets that the registration names.
func (o *liveOptions) deliveries(ctx context.Context, reg *hubv1.ClusterRegistration) ([]hubv1.AddonDelivery, error) {
	var out []hubv1.AddonDelivery
	read := func(namespace string) error {
		q := &live.Query{Client: o.client, Kinds: "AddonDeliveries", Namespace: namespace,
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
