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

func pauseCommand() *cobra.Command {
	var until, reason string
	cmd := &cobra.Command{
		Use:   "pause [cluster|set] NAME",
		Short: "Pause a cluster, or new revisions of a set",
		Long: `For a cluster: suspends its Flux objects (sets spec.pause on the registration). Nothing on the cluster
changes, and rollouts do not wait for it.
For a set: holds back new revisions (sets spec.pause on the set). Nothing is suspended, and new clusters get the completed
revision.

NAME is NAME or NAMESPACE/NAME. If there is both a cluster and a set, write cluster NAME or set NAME. If Flux applies the
object from Git, set spec.pause there.`,
		Example: `  chandler pause tenant1 --until 12h --reason 'change freeze'
  chandler pause set cert-manager --until 2027-01-02T08:00:00Z`,
		Args: subjectArgs("pause"),
	}
	o := &rolloutOptions{}
	o.add(cmd)
	addUntil(cmd, &until)
	addReason(cmd, &reason)
	return o.orders(cmd, "pause", func(reg *hubv1.ClusterRegistration, now time.Time) (*course.Order, error) {
		return course.PauseCluster(reg, until, reason, now)
	}, func(in *course.Input) (*course.Order, error) { return course.Pause(in, until, reason) })
}

func resumeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume [cluster|set] NAME",
		Short: "Resume a cluster or a set",
		Long: `Removes spec.pause. On a cluster, the hub resumes the Flux objects, except those that somebody suspended by
hand. For a set, new revisions go out again. If Flux applies the object from Git and spec.pause is there, remove it there.

NAME is NAME or NAMESPACE/NAME. If there is both a cluster and a set, write cluster NAME or set NAME.`,
		Example: `  chandler resume tenant1
  chandler resume set cert-manager`,
		Args: subjectArgs("resume"),
	}
	o := &rolloutOptions{}
	o.add(cmd)
	return o.orders(cmd, "resume", course.ResumeCluster, course.Resume)
}

func addUntil(cmd *cobra.Command, until *string) {
	cmd.Flags().StringVar(until, "until", "", "when it ends: a time or a duration, such as 12h (default: until resumed)")
	wants(cmd, func() error {
		if *until == "" {
			return nil
		}
		_, err := course.EndOf(*until, now())
		return err
	})
}

// wants has a command end as a wrong one does, before anybody is asked, if a check of its flags fails.
func wants(cmd *cobra.Command, check func() error) {
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if before != nil {
			if err := before(cmd, args); err != nil {
				return err
			}
		}
		return check()
	}
}

// orders has a command give an order to a cluster or to a set.
func (o *rolloutOptions) orders(cmd *cobra.Command, verb string,
	toCluster func(*hubv1.ClusterRegistration, time.Time) (*course.Order, error), toSet func(*course.Input) (*course.Order, error),
) *cobra.Command {
	cmd.ValidArgsFunction = o.completeSubject
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := o.subject(cmd.Context(), verb, args)
		switch {
		case err != nil:
			return err
		case s.cluster != nil:
			return o.orderCluster(cmd, s.cluster, toCluster)
		}
		return o.order(cmd, s.set.Namespace+"/"+s.set.Name, false, toSet)
	}
	return cmd
}

// orderCluster has an order made for a registration, and patches the registration.
func (o *hubOptions) orderCluster(cmd *cobra.Command, reg *hubv1.ClusterRegistration,
	write func(*hubv1.ClusterRegistration, time.Time) (*course.Order, error),
) error {
	order, err := write(reg, now())
	if err != nil {
		return err
	}
	raw, err := json.Marshal(order.Patch)
	if err != nil {
		return err
	}
	err = o.reader.Client.Patch(cmd.Context(), reg, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(course.Manager))
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("you may not patch ClusterRegistration %s/%s: %w", reg.Namespace, reg.Name, err)
	case err != nil:
		return fmt.Errorf("patch ClusterRegistration %s/%s: %w", reg.Namespace, reg.Name, err)
	}
	order.Print(visible{cmd.OutOrStdout()})
	return nil
}
