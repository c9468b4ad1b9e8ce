// SPDX-License-Identifier: Apache-2.0

// Package uninstall is `chandler uninstall`.
package uninstall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/config"
	"github.com/chandler-hub/chandler/internal/cli/command"
	"github.com/chandler-hub/chandler/internal/cli/exit"
	"github.com/chandler-hub/chandler/internal/cli/factory"
	"github.com/chandler-hub/chandler/internal/cli/hub"
	"github.com/chandler-hub/chandler/internal/cli/installation"
	"github.com/chandler-hub/chandler/internal/cli/resource"
	"github.com/chandler-hub/chandler/internal/cli/terminal"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/manifests"
)

// Options are the flags of `chandler uninstall`, and what it finds.
type Options struct {
	hub.Connection
	terminal.Streams
	Removal   manifests.Removal
	Yes       bool
	Timeout   time.Duration
	config    *rest.Config
	wait      *installation.Waiter
	installed []*unstructured.Unstructured // in the order in which they were applied
	stays     []string
	hubID     string
}

// New returns the command. run is what it does; nil is what it usually does.
func New(from *factory.Factory, run func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Uninstall the hub",
		Long: `Shows what would go, asks, and removes the admission policies, the hub and its permissions. If there are
sets, Teams or clusters, --addons says what becomes of the add-ons. The CRDs stay unless you write --delete-crds: without
them every AddonSet is gone. The namespace stays, since kubeconfigs may be in it. docs/uninstall.md has each way.`,
		Example: `  chandler uninstall --addons=keep
  chandler uninstall --addons=remove --delete-crds --yes`,
		Args: command.OnlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Streams = terminal.Of(cmd)
			return command.Run(cmd.Context(), o, run, o.run)
		},
	}
	f := cmd.Flags()
	o.AddBare(cmd, from)
	f.StringVarP(&o.Removal.Namespace, "namespace", "n", hubconfig.DefaultNamespace, "namespace of the hub")
	f.StringVar(&o.Removal.Addons, "addons", "", "what to do with the add-ons: keep, remove or orphan")
	f.BoolVar(&o.Removal.CRDs, "delete-crds", false, "also delete the CRDs, once nothing of their kinds is left")
	f.BoolVarP(&o.Yes, "yes", "y", false, "skip the confirmation prompt")
	command.AddTimeout(f, &o.Timeout, 15*time.Minute, "how long to wait")
	exit.Means(cmd, "the hub is gone", "refused, you said no, there is no hub, or the time is over")
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	if a := o.Removal.Addons; a != "" && a != manifests.Keep && a != manifests.Remove && a != manifests.Orphan {
		return exit.Wrong(fmt.Errorf("uninstall: --addons is %q: write keep, remove or orphan", a))
	}
	var err error
	if o.Client, o.config, err = o.Factory.Connect(ctx, o.Flags); err != nil {
		return err
	}
	o.Out = terminal.Visible(o.Out)
	o.wait = &installation.Waiter{Client: o.Client, Out: o.Out, Timeout: o.Timeout}
	if err := o.look(ctx); err != nil {
		return err
	}
	if err := o.Removal.Refuse(); err != nil {
		return fmt.Errorf("nothing is changed: %w", err)
	}
	if len(o.installed) == 0 {
		return fmt.Errorf("there is nothing of a hub in namespace %s: choose another one by --namespace, or another cluster by --context",
			o.Removal.Namespace)
	}
	o.plan()
	if err := terminal.Agreed(ctx, o.In, o.Out, o.Yes); err != nil {
		return err
	}
	fmt.Fprintln(o.Out)
	if o.leaves() {
		if err := o.drain(ctx); err != nil {
			return fmt.Errorf("%w. The hub is still there; run the command again to go on", err)
		}
	}
	return o.remove(ctx)
}

// leaves returns whether there are add-ons that leave the hub.
func (o *Options) leaves() bool {
	return len(o.Removal.Fleet) > 0 && o.Removal.Addons != manifests.Keep
}

// look finds out what there is to uninstall.
func (o *Options) look(ctx context.Context) error {
	there, err := installation.Look(ctx, o.Client, o.Removal.Namespace)
	if err != nil {
		return err
	}
	if err := manifests.Owner(there.Deployment); err != nil {
		return err
	}
	o.hubID = cmp.Or(there.HubID, hubconfig.DefaultHubID)
	o.Removal.Leads, o.Removal.Elsewhere = there.Leads, there.Elsewhere
	if o.Removal.Fleet, o.Removal.Applied, err = fleetOf(ctx, o.Client); err != nil {
		return err
	}
	return o.find(ctx)
}

// find reads which objects of a hub are there. Cluster-wide ones that another hub uses stay.
func (o *Options) find(ctx context.Context) error {
	objects, err := manifests.Build(config.Files, manifests.Options{Namespace: o.Removal.Namespace, Policies: true})
	if err != nil {
		return err
	}
	policies, bindings := map[string]bool{}, map[string]bool{}
	for _, u := range objects {
		policies[u.GetName()] = policies[u.GetName()] || u.GetKind() == "ValidatingAdmissionPolicy"
		bindings[u.GetName()] = bindings[u.GetName()] || u.GetKind() == "ValidatingAdmissionPolicyBinding"
	}
	more := &unstructured.UnstructuredList{}
	more.SetAPIVersion("admissionregistration.k8s.io/v1")
	more.SetKind("ValidatingAdmissionPolicyBindingList")
	if err := o.Client.List(ctx, more); err != nil {
		return fmt.Errorf("list the bindings of admission policies: %w", err)
	}
	for i := range more.Items { // those for the Teams of other platform namespaces
		of, _, _ := unstructured.NestedString(more.Items[i].Object, "spec", "policyName")
		if policies[of] && !bindings[more.Items[i].GetName()] {
			objects = append(objects, &more.Items[i])
		}
	}
	for _, u := range objects {
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(u.GroupVersionKind())
		switch err := o.Client.Get(ctx, client.ObjectKeyFromObject(u), found); {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("read %s: %w", resource.Called(u), err)
		}
		switch {
		case u.GetKind() == "Namespace":
			o.stays = append(o.stays, fmt.Sprintf("%s: delete it when nothing of yours is in it", resource.Called(u)))
		case u.GetKind() == "CustomResourceDefinition" && !o.Removal.CRDs:
			o.stays = append(o.stays, resource.Called(u))
		case o.Removal.Elsewhere != "" && u.GetNamespace() != o.Removal.Namespace && !o.ours(found):
			o.stays = append(o.stays, resource.Called(u)+": another hub uses it")
		default:
			o.installed = append(o.installed, found)
		}
	}
	return nil
}

// ours returns whether an object outside of the hub's namespace is of no use to another hub: it gives this one its rights.
func (o *Options) ours(u *unstructured.Unstructured) bool {
	subjects, _, _ := unstructured.NestedSlice(u.Object, "subjects")
	return len(subjects) > 0 && !slices.ContainsFunc(subjects, func(s any) bool {
		m, _ := s.(map[string]any)
		return m["namespace"] != o.Removal.Namespace
	})
}

// plan says what would go, and what would stay.
func (o *Options) plan() {
	switch {
	case len(o.Removal.Fleet) == 0:
		fmt.Fprintln(o.Out, "There are no sets, Teams or clusters")
	case o.Removal.Addons == manifests.Keep:
		fmt.Fprintf(o.Out, "These stay, with their add-ons: %s\n", strings.Join(o.Removal.Fleet, ", "))
	case o.Removal.Addons == manifests.Remove:
		fmt.Fprintf(o.Out, "The hub first uninstalls every add-on from the clusters, and unregisters them. These go: %s\n",
			strings.Join(o.Removal.Fleet, ", "))
	default:
		fmt.Fprintf(o.Out, "The hub first orphans every add-on, which stays on its cluster, and unregisters the clusters. These go: %s\n",
			strings.Join(o.Removal.Fleet, ", "))
	}
	fmt.Fprintln(o.Out, "Deleted:")
	for _, u := range o.order() {
		fmt.Fprintln(o.Out, "  "+resource.Called(u))
	}
}

// order returns the objects in the order in which they go. The policies go first, since they forbid to delete the rest; the
// rights go when the hub is gone, which gives its Lease back; the CRDs are last.
func (o *Options) order() (out []*unstructured.Unstructured) {
	phases := []manifests.Phase{manifests.Policies, manifests.Hub, manifests.Surroundings, manifests.Rights, manifests.Definitions}
	for _, phase := range phases {
		for _, u := range o.installed {
			if manifests.PhaseOf(u.GetKind()) == phase {
				out = append(out, u)
			}
		}
	}
	return out
}

// remove deletes what was found, and waits for each thing.
func (o *Options) remove(ctx context.Context) error {
	looked := false
	for _, u := range o.order() {
		if u.GetKind() == "CustomResourceDefinition" && !looked {
			looked = true
			if left, _, err := fleetOf(ctx, o.Client); err != nil || len(left) > 0 {
				return errors.Join(err, fmt.Errorf("there are %s again: the CRDs stay", strings.Join(left, ", ")))
			}
		}
		if err := o.delete(ctx, u); err != nil {
			return err
		}
	}
	if o.leaves() || len(o.Removal.Fleet) == 0 { // nothing is left that says which hub it was
		if err := o.forget(ctx); err != nil {
			return err
		}
	} else {
		o.stays = append(o.stays, "configmap/"+hubconfig.ConfigMapName+": it has the hub's ID, which a hub that comes back needs",
			strings.Join(o.Removal.Fleet, ", ")+", and the Flux objects")
	}
	fmt.Fprintln(o.Out, "The hub is uninstalled. These stay:")
	for _, s := range o.stays {
		fmt.Fprintln(o.Out, "  "+s)
	}
	return nil
}

// forget deletes what the hub has made for itself.
func (o *Options) forget(ctx context.Context) error {
	published, lease := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	published.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	published.SetNamespace(o.Removal.Namespace)
	published.SetName(hubconfig.ConfigMapName)
	lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	lease.SetNamespace(hubconfig.LeaseNamespace)
	lease.SetName(hubconfig.LeaseName)
	err := o.delete(ctx, published)
	if err == nil && o.Removal.Elsewhere == "" {
		err = o.delete(ctx, lease)
	}
	return err
}

// delete deletes an object, and waits until it is gone.
func (o *Options) delete(ctx context.Context, u *unstructured.Unstructured) error {
	options := []client.DeleteOption{client.PropagationPolicy("Background")}
	if u.GetKind() == "Deployment" { // its pods are the hub, and give the Lease back with the rights that they have
		options[0] = client.PropagationPolicy("Foreground")
	}
	if uid := u.GetUID(); uid != "" { // not another one of its name, made meanwhile
		options = append(options, client.Preconditions{UID: &uid})
	}
	err := o.Client.Delete(ctx, u, options...)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", resource.Called(u), err)
	}
	err = o.wait.Until(ctx, func(ctx context.Context) (string, error) {
		err := o.Client.Get(ctx, client.ObjectKeyFromObject(u), u.DeepCopy())
		switch {
		case apierrors.IsNotFound(err):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("read %s: %w", resource.Called(u), err)
		}
		return resource.Called(u) + ": waits until it is gone", nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(o.Out, resource.Called(u), "deleted")
	return nil
}
