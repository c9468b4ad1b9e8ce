// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/examples"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/render/flux"
)

// teamNames are the Teams of examples/teams. They have the second and the third cluster.
var teamNames = []string{"shop", "search"}

// teams applies examples/teams, waits for the teams' add-ons, and shows what the credential of each may do.
func (f *fleet) teams(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	begin := time.Now()
	for _, file := range []string{"teams/platform.yaml", "teams/shop.yaml", "teams/search.yaml"} {
		text, err := examples.Read(file, map[string]string{examples.Podinfo: f.charts.URL()})
		if err != nil {
			return err
		}
		if err := f.apply(ctx, text); err != nil {
			return fmt.Errorf("apply examples/%s: %w", file, err)
		}
		f.out.linef("applied examples/%s", file)
	}
	for _, name := range teamNames {
		for _, w := range f.workloads[1:] {
			if err := f.arrived(ctx, name, w); err != nil {
				return err
			}
		}
	}
	f.out.linef("Both teams were on both clusters after %s.", time.Since(begin).Round(100*time.Millisecond))
	return f.credentials(ctx)
}

// arrived waits for a team's Deployment on a cluster.
func (f *fleet) arrived(ctx context.Context, team string, w *workload) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		d := &appsv1.Deployment{}
		err := w.Client.Get(ctx, client.ObjectKey{Namespace: team + "-apps", Name: team + "-web"}, d)
		if err == nil && d.Status.AvailableReplicas > 0 {
			f.out.linef("  %-8s team %-6s Deployment %s/%s %d/%d", w.name, team, d.Namespace, d.Name, d.Status.AvailableReplicas, *d.Spec.Replicas)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the add-on of team %s has not arrived on %s: %w", team, w.name, err)
		case <-tick.C:
		}
	}
}

// credentials asks each cluster what the credential may do that a team finds in its namespace of the management cluster.
func (f *fleet) credentials(ctx context.Context) error {
	f.out.line("")
	f.out.line("What the kubeconfig in each team's namespace may do, by the clusters' own word:")
	rows := [][]string{{"TEAM", "CLUSTER", "AS", "PODS IN ITS OWN NAMESPACE", "SECRETS IN KUBE-SYSTEM", "NAMESPACES"}}
	for _, name := range teamNames {
		for _, w := range f.workloads[1:] {
			row, err := f.may(ctx, name, w)
			if err != nil {
				return fmt.Errorf("team %s on %s: %w", name, w.name, err)
			}
			rows = append(rows, row)
		}
	}
	f.out.table(rows)
	f.out.line("")
	return nil
}

// may returns one row of the table.
func (f *fleet) may(ctx context.Context, team string, w *workload) ([]string, error) {
	copied := &corev1.Secret{}
	name := identity.KubeconfigCopy(hubconfig.DefaultHubID, types.NamespacedName{Namespace: namespace, Name: w.name})
	if err := f.hub.Client.Get(ctx, client.ObjectKey{Namespace: team, Name: name}, copied); err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(copied.Data[flux.KubeconfigKey])
	if err != nil {
		return nil, err
	}
	member, err := client.New(config, client.Options{Scheme: w.Client.Scheme()})
	if err != nil {
		return nil, err
	}
	self := &authenticationv1.SelfSubjectReview{}
	if err := member.Create(ctx, self); err != nil {
		return nil, err
	}
	row := []string{team, w.name, self.Status.UserInfo.Username}
	for _, a := range []authorizationv1.ResourceAttributes{
		{Verb: "create", Resource: "pods", Namespace: team + "-apps"},
		{Verb: "get", Resource: "secrets", Namespace: "kube-system"},
		{Verb: "create", Resource: "namespaces"},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}
		if err := member.Create(ctx, review); err != nil {
			return nil, err
		}
		row = append(row, map[bool]string{true: "yes", false: "no"}[review.Status.Allowed])
	}
	return row, nil
}
