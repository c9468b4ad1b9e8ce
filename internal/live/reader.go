// SPDX-License-Identifier: Apache-2.0

// Package live reaches a live hub for the command line and the page: it connects, takes over the hub's flags, finds and lists objects, and
// says to a person why that failed. What a view needs is read beside the view. Nothing here writes, or returns anything secret.
package live

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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

// Connect returns a client for an API server, with what Reach or Within returns. It has no cache, because a command reads each object once.
func Connect(config *rest.Config) (client.WithWatch, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100 // a few dozen reads, and then it is over
	c, err := client.NewWithWatch(config, client.Options{Scheme: hubscheme.New()})
	if err != nil {
		return nil, fmt.Errorf("reach the API server at %s: %w", config.Host, err)
	}
	return c, nil
}

// Find returns the registration with a name, namespace/name, or kubectl's kind/name. An empty namespace means all.
func (r *Reader) Find(ctx context.Context, name, namespace string) (*hubv1.ClusterRegistration, error) {
	list := &hubv1.ClusterRegistrationList{}
	of := kindOfObject{"cluster", "ClusterRegistration", fmt.Sprintf("label an origin %s: \"true\"", hubv1.RegisterLabel)}
	at, err := r.find(ctx, list, of, name, namespace)
	if err != nil {
		return nil, err
	}
	return &list.Items[at], nil
}

// FindSet returns the AddonSet with a name, namespace/name, or kubectl's kind/name. An empty namespace means all.
func (r *Reader) FindSet(ctx context.Context, name, namespace string) (*hubv1.AddonSet, error) {
	list := &hubv1.AddonSetList{}
	at, err := r.find(ctx, list, kindOfObject{"set", "AddonSet", "apply one"}, name, namespace)
	if err != nil {
		return nil, err
	}
	return &list.Items[at], nil
}

// kindOfObject is how people call what they look for, its kind, and what they do if there is none.
type kindOfObject struct{ word, kind, advice string }

// Bare returns the name in kubectl's KIND/NAME, as `get -o name` prints it, and every other name as it is. KIND is no namespace, since no
// namespace has a dot.
func Bare(kind, name string) string {
	return strings.TrimPrefix(name, strings.ToLower(kind)+"."+hubv1.GroupVersion.Group+"/")
}

// find lists the objects of a kind, and returns which one has a name, namespace/name, or kubectl's kind/name.
func (r *Reader) find(ctx context.Context, list client.ObjectList, of kindOfObject, name, namespace string) (int, error) {
	name = Bare(of.kind, name)
	if ns, rest, ok := strings.Cut(name, "/"); ok {
		if ns == "" || rest == "" || strings.Contains(rest, "/") || strings.Contains(ns, ".") {
			return 0, wrong(fmt.Sprintf("%q is not a %s: write NAME or NAMESPACE/NAME", name, of.word))
		}
		if namespace != "" && namespace != ns {
			return 0, wrong(fmt.Sprintf("%s %s is not in namespace %q: leave out -n, or write the name alone", of.word, name, namespace))
		}
		namespace, name = ns, rest
	}
	err := r.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
	if err == nil && meta.LenList(list) == 0 { // what there is, for the message
		if err := r.elsewhere(ctx, list, of, name, namespace); err != nil {
			return 0, err
		}
		err = r.Client.List(ctx, list, client.InNamespace(namespace), client.Limit(PageSize))
	}
	if err != nil {
		return 0, Refused(of.kind+"s", namespace, err)
	}
	var all []string
	err = each(list, func(m metav1.Object) { all = append(all, m.GetNamespace()+"/"+m.GetName()) })
	if err != nil {
		return 0, fmt.Errorf("read the %ss: %w", of.kind, err)
	}
	return choose(all, of, name, namespace)
}

// elsewhere returns an error that says in which other namespaces an object is, and none if that is not known.
func (r *Reader) elsewhere(ctx context.Context, list client.ObjectList, of kindOfObject, name, namespace string) error {
	if namespace == "" || r.Client.List(ctx, list, client.MatchingFields{"metadata.name": name}) != nil {
		return nil // the user may not read the other namespaces
	}
	var in []string
	err := each(list, func(m metav1.Object) {
		if m.GetName() == name && m.GetNamespace() != namespace {
			in = append(in, m.GetNamespace())
		}
	})
	if err != nil || len(in) == 0 {
		return nil
	}
	slices.Sort(in)
	return fmt.Errorf("there is no %s %q in namespace %q: there is one in namespace %s", of.word, name, namespace, status.List(in, MaxNames))
}

// each does something with each object of a list.
func each(list client.ObjectList, do func(metav1.Object)) error {
	return meta.EachListItem(list, func(o runtime.Object) error {
		m, err := meta.Accessor(o)
		if err == nil {
			do(m)
		}
		return err
	})
}

// choose returns which of all objects has a name.
func choose(all []string, of kindOfObject, name, namespace string) (int, error) {
	at := -1
	var candidates []string
	for i, full := range all {
		if strings.HasSuffix(full, "/"+name) {
			at, candidates = i, append(candidates, full)
		}
	}
	where := "on this hub"
	if namespace != "" {
		where = fmt.Sprintf("in namespace %q", namespace)
	}
	slices.Sort(all)
	slices.Sort(candidates)
	switch {
	case len(candidates) == 1:
		return at, nil
	case len(candidates) > 1:
		return 0, Several(fmt.Sprintf("there are %d %ss called %q: %s; write one of these, or -n NAMESPACE", len(candidates), of.word, name,
			status.List(candidates, MaxNames)))
	case len(all) == 0:
		return 0, fmt.Errorf("there is no %s %s: %s, or leave out the namespace to look in all", of.kind, where, of.advice)
	}
	return 0, fmt.Errorf("there is no %s %q %s; there are %s", of.word, name, where, status.List(all, MaxNames))
}
