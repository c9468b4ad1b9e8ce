// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/diff"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/inflate"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/preview"
)

// triedAtOnce is how many clusters are tried at a time.
const triedAtOnce = 4

// Try has the API servers of some clusters say what becomes of the objects of a change, and adds that to the result. The kubeconfigs of the
// clusters are read from the hub, and checked by its rules.
func Try(ctx context.Context, hub client.Client, rules kubeconfig.Rules, r *diff.Result, makers *diff.Makers, picks []diff.Pick) {
	config := &hubconfig.Config{Rules: rules}
	tries := make([]*trying, len(picks))
	for i := range picks { // charts are made one after the other
		tries[i] = &trying{hub: hub, config: config, result: r, makers: makers, pick: picks[i]}
		tries[i].prepare()
	}
	g := &errgroup.Group{}
	g.SetLimit(triedAtOnce)
	for _, t := range tries {
		g.Go(func() error { t.run(ctx); return nil })
	}
	_ = g.Wait() // none returns an error
	for _, t := range tries {
		for _, why := range t.untried {
			r.Untried(t.pick.Cluster, why)
		}
		if t.tried != nil {
			r.Try(t.tried)
		}
	}
}

// trying is the change on one cluster.
type trying struct {
	hub    client.Client
	config *hubconfig.Config // with the hub's rules for kubeconfigs
	result *diff.Result
	makers *diff.Makers
	pick   diff.Pick

	parts   []wantedPart
	untried []string
	tried   *diff.Tried
}

// wantedPart is a part whose cluster is not connected to yet.
type wantedPart struct {
	Part
	item *preview.Item
}

func (t *trying) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, there := range t.untried {
		if there == text {
			return
		}
	}
	t.untried = append(t.untried, text)
}

// prepare makes the objects of everything that changes.
func (t *trying) prepare() {
	for _, m := range t.result.Moves(t.pick.Cluster) {
		made := func(item *preview.Item, makes diff.Making) (*inflate.Result, bool) {
			if item == nil {
				return nil, true
			}
			in, err := makes.Input(m.Object(item))
			if err == nil {
				var out *inflate.Result
				if out, err = makes.Objects(in); err == nil {
					return out, true
				}
			}
			t.fail("add-on %s of AddonSet %s: its objects are not known: %s", item.Addon, item.Set, err)
			return nil, false
		}
		old, known := made(m.Old, t.makers.Old)
		next, known2 := made(m.New, t.makers.New)
		if !known || !known2 {
			continue
		}
		item := m.New
		if item == nil {
			item = m.Old
		}
		p := wantedPart{PartOf(item.Manifest, item.Release, next, old), item}
		p.Set, p.Addon, p.Anew = item.Set, item.Addon, m.Kind == diff.Reinstalled
		t.parts = append(t.parts, p)
	}
}

// run asks the cluster.
func (t *trying) run(ctx context.Context) {
	var parts []Part
	clients := map[login]client.Client{}
	for i := range t.parts {
		p := &t.parts[i]
		at, err := t.login(ctx, p.item)
		if err == nil && clients[at] == nil {
			clients[at], err = t.connect(ctx, at)
		}
		if err != nil {
			t.fail("add-on %s of AddonSet %s: %s", p.Addon, p.Set, err)
			continue
		}
		p.Client = clients[at]
		parts = append(parts, p.Part)
	}
	if len(parts) == 0 {
		return
	}
	t.tried = &diff.Tried{Cluster: t.pick.Cluster, Clusters: t.pick.Clusters, Where: t.pick.Where}
	t.tried.Objects, t.tried.Unchanged = Run(ctx, parts, Limits{})
	if t.tried.Objects == nil {
		t.tried.Objects = []diff.TriedObject{}
	}
}

// login is how Flux gets in to a cluster for a Flux object: a Secret with a kubeconfig, and whom it impersonates there.
type login struct{ namespace, secret, key, user string }

// login finds out how Flux gets in, or would.
func (t *trying) login(ctx context.Context, item *preview.Item) (login, error) {
	spec, _ := item.Manifest.Object["spec"].(map[string]any)
	secret, _, _ := unstructured.NestedString(spec, "kubeConfig", "secretRef", "name")
	key, _, _ := unstructured.NestedString(spec, "kubeConfig", "secretRef", "key")
	out := login{namespace: item.Key.Namespace, secret: secret, key: key}
	if name, _ := spec["serviceAccountName"].(string); name != "" {
		out.user = "system:serviceaccount:" + item.Key.Namespace + ":" + name
	}
	if secret == "" {
		return out, errors.New("Flux gets in to the cluster by workload identity, which is that of its own controllers")
	}
	err := t.hub.Get(ctx, client.ObjectKey{Namespace: out.namespace, Name: secret}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) || t.result.ByTeam(item.Key.Namespace) {
		return out, nil // what is wrong with it is told when it is read
	}
	// The hub makes it with the first add-on of the namespace. Until then there is what the cluster is registered with.
	pair := t.result.Pair(t.pick.Cluster)
	reg := &hubv1.ClusterRegistration{}
	if err := t.hub.Get(ctx, client.ObjectKey{Namespace: pair.Name.Namespace, Name: pair.Name.Name}, reg); err != nil {
		return out, fmt.Errorf("the hub's kubeconfig for it is not there yet, and its registration cannot be read: %w", err)
	}
	if c := reg.Status.Credential; c != nil && c.SecretName != "" && c.Context == "" {
		out.namespace, out.secret, out.key = reg.Namespace, c.SecretName, c.Key
	}
	return out, nil
}

// connect connects to the cluster as Flux does.
func (t *trying) connect(ctx context.Context, at login) (client.Client, error) {
	secret := &corev1.Secret{}
	switch err := t.hub.Get(ctx, client.ObjectKey{Namespace: at.namespace, Name: at.secret}, secret); {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("you may not read Secret %s/%s, by which Flux gets in to the cluster", at.namespace, at.secret)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("Secret %s/%s, by which Flux gets in to the cluster, is not there", at.namespace, at.secret)
	case err != nil:
		return nil, fmt.Errorf("read Secret %s/%s: %w", at.namespace, at.secret, err)
	}
	raw := secret.Data[at.key]
	for _, key := range []string{"value", "value.yaml"} {
		if at.key == "" && raw == nil {
			raw = secret.Data[key]
		}
	}
	config, err := kubeconfig.Parse(raw, t.rules(ctx))
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig in Secret %s/%s: %w", at.namespace, at.secret, err)
	}
	c, err := Connect(ctx, config, at.user, t.uid())
	if err != nil {
		return nil, fmt.Errorf("the cluster is not asked: %w", err)
	}
	return c, nil
}

// rules are those by which the hub checks the kubeconfig of the cluster. Files may say of a registration what they want: what lifts a rule
// is only what the hub has.
func (t *trying) rules(ctx context.Context) kubeconfig.Rules {
	name, reg := t.result.Pair(t.pick.Cluster).Name, &hubv1.ClusterRegistration{}
	if t.hub.Get(ctx, name, reg) != nil {
		return t.config.Rules
	}
	return t.config.RulesFor(reg)
}

// uid is that of the cluster, as far as the hub knows it.
func (t *trying) uid() string {
	pair := t.result.Pair(t.pick.Cluster)
	for _, reg := range []*hubv1.ClusterRegistration{pair.After, pair.Before} {
		if reg != nil && reg.Status.ClusterUID != "" {
			return reg.Status.ClusterID()
		}
	}
	return ""
}
