// SPDX-License-Identifier: Apache-2.0

package outdated

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/compile"
	"github.com/chandler-hub/chandler/internal/expression"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/match"
	"github.com/chandler-hub/chandler/internal/outdated"
	"github.com/chandler-hub/chandler/internal/render"
	"github.com/chandler-hub/chandler/internal/render/floating"
	"github.com/chandler-hub/chandler/internal/team"
)

// upstream reads what sets follow upstream.
type upstream struct {
	*live.Reader
	now time.Time
	// notes say what could not be read.
	notes []string

	// Teams and clusters are read when the first set needs them.
	teams, clusters bool
	allTeams        []hubv1.Team
	allClusters     []hubv1.ClusterRegistration
}

// of returns what the add-ons of a set follow. It reads no registry and no repository: Flux has.
func (u *upstream) of(ctx context.Context, set *hubv1.AddonSet) ([]outdated.Item, error) {
	reach, err := u.reach(ctx, set.Namespace)
	if err != nil {
		return nil, err
	}
	in := &outdated.Input{Set: set, Now: u.now}
	var selector *match.Selector
	if selector, in.Invalid = match.New(reach, &set.Spec); in.Invalid == nil {
		in.Program, in.Invalid = compile.Compile(&set.Spec, reach.Author(set.Name))
	}
	if in.Invalid == nil {
		if in.Found, err = u.floats(ctx, set, in.Program, selector); err != nil {
			return nil, err
		}
	}
	items, err := outdated.Of(in)
	for i := range items {
		if items[i].State == outdated.Outdated && err == nil {
			items[i].Since, err = u.since(ctx, items[i].Source)
		}
	}
	return items, err
}

// forbidden notes what the caller may not read, and returns any other error.
func (u *upstream) forbidden(err error, format string, args ...any) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	what := fmt.Sprintf(format, args...)
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("read %s: %w", what, err)
	}
	if note := "you may not read " + what; !slices.Contains(u.notes, note) {
		u.notes = append(u.notes, note)
	}
	return nil
}

// reach returns how far the sets of a namespace reach, which says too what they may do.
func (u *upstream) reach(ctx context.Context, namespace string) (match.Reach, error) {
	platform := u.Hub.IsPlatform
	if !u.teams && !platform(namespace) {
		list := &hubv1.TeamList{}
		if err := u.forbidden(u.Client.List(ctx, list), "the Teams: sets of their namespaces count as those of no Team"); err != nil {
			return match.Reach{}, err
		}
		u.teams, u.allTeams = true, list.Items
	}
	return team.Reach(namespace, u.allTeams, platform), nil
}

// floats finds what a set follows, as the hub does.
func (u *upstream) floats(ctx context.Context, set *hubv1.AddonSet, p *compile.Program, selector *match.Selector) (floating.Floats, error) {
	maps := map[string]map[string]string{}
	for _, v := range p.VariablesFrom {
		if v.Cluster || expression.Has(v.Name) {
			continue
		}
		cm := &corev1.ConfigMap{}
		err := u.Client.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: v.Name}, cm)
		if err = u.forbidden(err, "ConfigMap %s/%s", set.Namespace, v.Name); err != nil {
			return floating.Floats{}, err
		}
		maps[v.Name] = cm.Data
	}
	of := []labels.Set{nil}
	if len(p.Overlays) > 0 {
		all, err := u.registrations(ctx)
		if err != nil {
			return floating.Floats{}, err
		}
		of = nil
		for i := range all {
			if reg := &all[i]; reg.DeletionTimestamp == nil && selector.Matches(reg) {
				of = append(of, reg.Labels)
			}
		}
	}
	target := render.Target{HubID: u.Hub.HubID, Namespace: set.Namespace, Set: set.Name}
	return floating.Find(p, target, floating.ChoicesOf(p, of), maps), nil
}

func (u *upstream) registrations(ctx context.Context) ([]hubv1.ClusterRegistration, error) {
	if u.clusters {
		return u.allClusters, nil
	}
	list := &hubv1.ClusterRegistrationList{}
	if err := u.forbidden(u.Client.List(ctx, list), "the ClusterRegistrations: what only their overlays bring is missing"); err != nil {
		return nil, err
	}
	u.clusters, u.allClusters = true, list.Items
	return u.allClusters, nil
}

// since returns when Flux got what a source has; nil if that is not known, as of a ConfigMap.
func (u *upstream) since(ctx context.Context, source string) (*metav1.Time, error) {
	kind, full, _ := strings.Cut(source, " ")
	namespace, name, _ := strings.Cut(full, "/")
	if kind == "ConfigMap" {
		return nil, nil
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(sourcev1.GroupVersion.WithKind(kind))
	err := u.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	if err = u.forbidden(err, "Flux's sources, which say since when"); err != nil {
		return nil, err
	}
	text, _, _ := unstructured.NestedString(obj.Object, "status", "artifact", "lastUpdateTime")
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, nil //nolint:nilerr // it does not say
	}
	return &metav1.Time{Time: at}, nil
}
