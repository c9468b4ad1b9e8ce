// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/course"
)

func pauseAllCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Have a cluster stay as it is, or hold back new revisions of a set",
		Example: `  chandler pause cluster tenant1 --until 12h --reason 'change freeze'
  chandler pause set cert-manager --until 2027-01-02T08:00:00Z --reason holidays`,
	}
	cmd.RunE = oneOf(cmd)
	set := pauseCommand()
	set.Use, set.Args = "set NAME [--until TIME|DURATION] --reason TEXT", oneName("set")
	set.Long += " It is the same as chandler rollout pause."
	set.Example = "  chandler pause set cert-manager --until 12h --reason 'change freeze'"
	cmd.AddCommand(pauseClusterCommand(), set)
	return cmd
}

func resumeAllCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "End the pause of a cluster or a set",
		Example: `  chandler resume cluster tenant1
  chandler resume set cert-manager`,
	}
	cmd.RunE = oneOf(cmd)
	set := unpauseCommand()
	set.Use, set.Args = "set NAME", oneName("set")
	set.Long += " It is the same as chandler rollout unpause."
	set.Example = "  chandler resume set cert-manager"
	cmd.AddCommand(resumeClusterCommand(), set)
	return cmd
}

func pauseClusterCommand() *cobra.Command {
	var until, reason string
	h := &hubOptions{}
	cmd := &cobra.Command{
		Use:   "cluster NAME [--until TIME|DURATION] --reason TEXT",
		Short: "Have a cluster stay as it is",
		Long: `Suspends the Flux objects of a cluster, by spec.pause of its registration. What runs stays as it is: nothing is made, changed,
undone or removed there. New revisions of its sets do not wait for it.`,
		Example: `  chandler pause cluster tenant1 --until 12h --reason 'change freeze'
  chandler pause cluster tenants/tenant1 --reason 'somebody looks into it'`,
		Args: oneName("cluster"),
	}
	h.add(cmd)
	cmd.ValidArgsFunction = completeNames(h.flags, "ClusterRegistration", false)
	cmd.Flags().StringVar(&until, "until", "", "when it ends, as a time such as 2027-01-02T08:00:00Z or a duration such as 12h (default: "+
		"when somebody ends it)")
	addReason(cmd, &reason)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return h.orderCluster(cmd, args[0], func(reg *hubv1.ClusterRegistration, now time.Time) (*course.Order, error) {
			return course.PauseCluster(reg, until, reason, now)
		})
	}
	return cmd
}

func resumeClusterCommand() *cobra.Command {
	h := &hubOptions{}
	cmd := &cobra.Command{
		Use:   "cluster NAME",
		Short: "Deliver to a cluster again",
		Long: `Removes spec.pause from the registration of a cluster, and the hub resumes its Flux objects. Those that somebody suspended by hand
stay suspended.`,
		Example: "  chandler resume cluster tenant1",
		Args:    oneName("cluster"),
	}
	h.add(cmd)
	cmd.ValidArgsFunction = completeNames(h.flags, "ClusterRegistration", false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return h.orderCluster(cmd, args[0], course.ResumeCluster)
	}
	return cmd
}

// orderCluster finds a registration, has an order made, and patches the registration.
func (h *hubOptions) orderCluster(cmd *cobra.Command, name string,
	write func(*hubv1.ClusterRegistration, time.Time) (*course.Order, error),
) error {
	if err := h.connect(); err != nil {
		return err
	}
	reg, err := h.reader.Find(cmd.Context(), name, *h.flags.Namespace)
	if err != nil {
		return err
	}
	order, err := write(reg, now())
	if err != nil {
		return err
	}
	raw, err := json.Marshal(order.Patch)
	if err != nil {
		return err
	}
	err = h.reader.Client.Patch(cmd.Context(), reg, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(course.Manager))
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("you may not patch ClusterRegistration %s/%s: %w", reg.Namespace, reg.Name, err)
	case err != nil:
		return fmt.Errorf("patch ClusterRegistration %s/%s: %w", reg.Namespace, reg.Name, err)
	}
	order.Print(visible{cmd.OutOrStdout()})
	return nil
}
