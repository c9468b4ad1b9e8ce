// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/config"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/manifests"
)

// uninstallOptions are the flags of `chandler uninstall`, and what it finds.
type uninstallOptions struct {
	flags     *genericclioptions.ConfigFlags
	removal   manifests.Removal
	yes       bool
	timeout   time.Duration
	config    *rest.Config
	client    client.Client
	wait      *waiter
	out       io.Writer
	installed []*unstructured.Unstructured // in the order in which they were applied
	stays     []string
	hubID     string
}

func uninstallCommand() *cobra.Command {
	o := &uninstallOptions{flags: kubectlFlags()}
	o.flags.Namespace = nil
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Uninstall the hub",
		Long: `Shows what would go, asks, and removes the admission policies, the hub and its permissions. If there are
sets, Teams or clusters, --addons says what becomes of the add-ons. The CRDs stay unless you write --delete-crds: without
them every AddonSet is gone. The namespace stays, since kubeconfigs may be in it. docs/uninstall.md has each way.`,
		Example: `  chandler uninstall --addons=keep
  chandler uninstall --addons=remove --delete-crds --yes`,
		Args: onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	o.flags.AddFlags(f)
	f.StringVarP(&o.removal.Namespace, "namespace", "n", hubconfig.DefaultNamespace, "namespace of the hub")
	f.StringVar(&o.removal.Addons, "addons", "", "what to do with the add-ons: keep, remove or orphan")
	f.BoolVar(&o.removal.CRDs, "delete-crds", false, "also delete the CRDs, once nothing of their kinds is left")
	f.BoolVarP(&o.yes, "yes", "y", false, "skip the confirmation prompt")
	addTimeout(f, &o.timeout, 15*time.Minute, "how long to wait")
	return cmd
}

func (o *uninstallOptions) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	if a := o.removal.Addons; a != "" && a != manifests.Keep && a != manifests.Remove && a != manifests.Orphan {
		return &exit{uncertain, fmt.Errorf("uninstall: --addons is %q: write keep, remove or orphan", a)}
	}
	var err error
	if o.config, err = reach(ctx, o.flags); err != nil {
		return err
	}
	if o.client, err = live.Connect(o.config); err != nil {
		return &exit{uncertain, err}
	}
	o.out = visible{cmd.OutOrStdout()}
	o.wait = &waiter{client: o.client, out: o.out, timeout: o.timeout}
	if err := o.look(ctx); err != nil {
		return err
	}
	if err := o.removal.Refuse(); err != nil {
		return fmt.Errorf("nothing is changed: %w", err)
	}
	if len(o.installed) == 0 {
		return fmt.Errorf("there is nothing of a hub in namespace %s: choose another one by --namespace, or another cluster by --context",
			o.removal.Namespace)
	}
	o.plan()
	if err := agreed(ctx, cmd.InOrStdin(), o.out, o.yes); err != nil {
		return err
	}
	fmt.Fprintln(o.out)
	if o.leaves() {
		if err := o.drain(ctx); err != nil {
			return fmt.Errorf("%w. The hub is still there; run the command again to go on", err)
		}
	}
	return o.remove(ctx)
}

// leaves returns whether there are add-ons that leave the hub.
func (o *uninstallOptions) leaves() bool {
	return len(o.removal.Fleet) > 0 && o.removal.Addons != manifests.Keep
}

// look finds out what there is to uninstall.
func (o *uninstallOptions) look(ctx context.Context) error {
	there, err := lookAround(ctx, o.client, o.removal.Namespace)
	if err != nil {
		return err
	}
	if err := manifests.Owner(there.Deployment); err != nil {
		return err
	}
	o.hubID = cmp.Or(there.HubID, hubconfig.DefaultHubID)
	o.removal.Leads, o.removal.Elsewhere = there.Leads, there.Elsewhere
	if o.removal.Fleet, o.removal.Applied, err = fleetOf(ctx, o.client); err != nil {
		return err
	}
	return o.find(ctx)
}

// find reads which objects of a hub are there. Cluster-wide ones that another hub uses stay.
func (o *uninstallOptions) find(ctx context.Context) error {
	objects, err := manifests.Build(config.Files, manifests.Options{Namespace: o.removal.Namespace, Policies: true})
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
	if err := o.client.List(ctx, more); err != nil {
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
		switch err := o.client.Get(ctx, client.ObjectKeyFromObject(u), found); {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("read %s: %w", called(u), err)
		}
		switch {
		case u.GetKind() == "Namespace":
			o.stays = append(o.stays, fmt.Sprintf("%s: delete it when nothing of yours is in it", called(u)))
		case u.GetKind() == "CustomResourceDefinition" && !o.removal.CRDs:
			o.stays = append(o.stays, called(u))
		case o.removal.Elsewhere != "" && u.GetNamespace() != o.removal.Namespace && !o.ours(found):
			o.stays = append(o.stays, called(u)+": another hub uses it")
		default:
			o.installed = append(o.installed, found)
		}
	}
	return nil
}

// ours returns whether an object outside of the hub's namespace is of no use to another hub: it gives this one its rights.
func (o *uninstallOptions) ours(u *unstructured.Unstructured) bool {
	subjects, _, _ := unstructured.NestedSlice(u.Object, "subjects")
	return len(subjects) > 0 && !slices.ContainsFunc(subjects, func(s any) bool {
		m, _ := s.(map[string]any)
		return m["namespace"] != o.removal.Namespace
	})
}

// plan says what would go, and what would stay.
func (o *uninstallOptions) plan() {
	switch {
	case len(o.removal.Fleet) == 0:
		fmt.Fprintln(o.out, "There are no sets, Teams or clusters")
	case o.removal.Addons == manifests.Keep:
		fmt.Fprintf(o.out, "These stay, with their add-ons: %s\n", strings.Join(o.removal.Fleet, ", "))
	case o.removal.Addons == manifests.Remove:
		fmt.Fprintf(o.out, "The hub first uninstalls every add-on from the clusters, and unregisters them. These go: %s\n",
			strings.Join(o.removal.Fleet, ", "))
	default:
		fmt.Fprintf(o.out, "The hub first lets go of every add-on, which stays on its cluster, and unregisters the clusters. These go: %s\n",
			strings.Join(o.removal.Fleet, ", "))
	}
	fmt.Fprintln(o.out, "Deleted:")
	for _, u := range o.order() {
		fmt.Fprintln(o.out, "  "+called(u))
	}
}

// order returns the objects in the order in which they go. Without the policies nobody is stopped any more who takes away the rest; the
// rights go when the hub is gone, which gives its Lease back; the CRDs are last.
func (o *uninstallOptions) order() (out []*unstructured.Unstructured) {
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
func (o *uninstallOptions) remove(ctx context.Context) error {
	looked := false
	for _, u := range o.order() {
		if u.GetKind() == "CustomResourceDefinition" && !looked {
			looked = true
			if left, _, err := fleetOf(ctx, o.client); err != nil || len(left) > 0 {
				return errors.Join(err, fmt.Errorf("there are %s again: the CRDs stay", strings.Join(left, ", ")))
			}
		}
		if err := o.delete(ctx, u); err != nil {
			return err
		}
	}
	if o.leaves() || len(o.removal.Fleet) == 0 { // nobody has to know any more which hub it was
		if err := o.forget(ctx); err != nil {
			return err
		}
	} else {
		o.stays = append(o.stays, "configmap/"+hubconfig.ConfigMapName+": it has the hub's ID, which a hub that comes back needs",
			strings.Join(o.removal.Fleet, ", ")+", and the Flux objects")
	}
	fmt.Fprintln(o.out, "The hub is uninstalled. These stay:")
	for _, s := range o.stays {
		fmt.Fprintln(o.out, "  "+s)
	}
	return nil
}

// forget deletes what the hub has made for itself.
func (o *uninstallOptions) forget(ctx context.Context) error {
	published, lease := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	published.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	published.SetNamespace(o.removal.Namespace)
	published.SetName(hubconfig.ConfigMapName)
	lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	lease.SetNamespace(hubconfig.LeaseNamespace)
	lease.SetName(hubconfig.LeaseName)
	err := o.delete(ctx, published)
	if err == nil && o.removal.Elsewhere == "" {
		err = o.delete(ctx, lease)
	}
	return err
}

// delete deletes an object, and waits until it is gone.
func (o *uninstallOptions) delete(ctx context.Context, u *unstructured.Unstructured) error {
	options := []client.DeleteOption{client.PropagationPolicy("Background")}
	if u.GetKind() == "Deployment" { // its pods are the hub, and give the Lease back with the rights that they have
		options[0] = client.PropagationPolicy("Foreground")
	}
	if uid := u.GetUID(); uid != "" { // not another one, that somebody has made meanwhile
		options = append(options, client.Preconditions{UID: &uid})
	}
	err := o.client.Delete(ctx, u, options...)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", called(u), err)
	}
	err = o.wait.until(ctx, func(ctx context.Context) (string, error) {
		err := o.client.Get(ctx, client.ObjectKeyFromObject(u), u.DeepCopy())
		switch {
		case apierrors.IsNotFound(err):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("read %s: %w", called(u), err)
		}
		return called(u) + ": waits until it is gone", nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(o.out, called(u), "deleted")
	return nil
}
