// SPDX-License-Identifier: Apache-2.0

package register

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/account"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/live"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/token"
)

// Request is what a cluster is to be registered as.
type Request struct {
	Name   types.NamespacedName
	Labels map[string]string
	Role   string
	// Lifetime is how long the token is asked for.
	Lifetime time.Duration
	// Address is how the hub reaches the cluster; "" if it is as the caller does.
	Address string
}

// Validate returns what is wrong with a request, without asking anybody.
func (r Request) Validate() error {
	if errs := validation.IsDNS1123Subdomain(r.Name.Name); len(errs) > 0 {
		return fmt.Errorf("name %q: %s", r.Name.Name, errs[0])
	}
	for _, key := range slices.Sorted(maps.Keys(r.Labels)) {
		errs := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(r.Labels[key])...)
		if len(errs) == 0 && strings.HasPrefix(key, "chandler.dev/") {
			errs = []string{"labels of chandler.dev are the hub's: choose another key"}
		}
		if len(errs) > 0 {
			return fmt.Errorf("--labels %s=%s: %s", key, r.Labels[key], errs[0])
		}
	}
	if _, ok := token.Lifetime(excerpt.Duration(r.Lifetime)); !ok {
		return fmt.Errorf("--token-ttl %s: write a duration from %s to %s, such as 720h", r.Lifetime, token.Shortest, token.Longest)
	}
	if errs := validation.IsDNS1123Subdomain(strings.ToLower(strings.ReplaceAll(r.Role, ":", "-"))); len(errs) > 0 {
		return fmt.Errorf("--role %q: write the name of a ClusterRole", r.Role)
	}
	return nil
}

// Work is a registration that has been checked: what is there, and what is to be done.
type Work struct {
	Plan account.Plan

	req          Request
	account      account.Account
	hub, cluster *server
	target       account.Target
	objects      []*unstructured.Unstructured // as they are on the cluster; nil where there is none
	secret       *corev1.Secret               // as it is on the hub; nil if there is none
	current      *kubeconfig.Config           // in the Secret, if it is good for long enough
	relabel      bool
}

// Check asks the hub and the cluster whether the cluster can be registered, and returns what that takes. It changes nothing.
func (r *Registrar) Check(ctx context.Context, req Request) (*Work, error) {
	w := &Work{req: req}
	var err error
	if w.hub, err = ask(ctx, r.HubConfig); err != nil {
		return nil, fmt.Errorf("the hub at %s: %w", live.Address(r.HubConfig), err)
	}
	if w.cluster, err = ask(ctx, r.Cluster); err != nil {
		return nil, fmt.Errorf("the cluster at %s: %w", live.Address(r.Cluster), err)
	}
	w.account = account.Of(r.Hub.Hub.HubID, w.hub.uid, req.Name, req.Role)
	w.Plan = account.Plan{Registration: req.Name.String(), Server: live.Address(r.Cluster), Version: w.cluster.version}
	for _, check := range []func(context.Context, *Work) error{r.identity, r.way, r.namespace, r.registration, r.onHub, r.onCluster} {
		if err := check(ctx, w); err != nil {
			return nil, err
		}
	}
	r.steps(w)
	return w, nil
}

// identity checks that the cluster is a workload cluster that the hub can serve.
func (r *Registrar) identity(_ context.Context, w *Work) error {
	if w.cluster.uid == "" {
		return fmt.Errorf("the cluster at %s: you may not read Namespace kube-system there: register it with the rights of an "+
			"administrator", live.Address(r.Cluster))
	}
	if w.cluster.uid == w.hub.uid || r.Cluster.Host == r.HubConfig.Host {
		return fmt.Errorf("the kubeconfig leads to the management cluster itself, at %s: write that of a workload cluster in "+
			"--cluster-kubeconfig; --kubeconfig and --context say where the hub is", live.Address(r.Cluster))
	}
	if w.hub.uid == "" {
		w.Plan.Warnings = append(w.Plan.Warnings, "you may not read Namespace kube-system on the hub, so it is not known before whether the "+
			"cluster is the "+
			"management cluster itself: the hub refuses that")
	}
	if warning := account.Skew(w.cluster.clock, w.hub.clock); warning != "" {
		w.Plan.Warnings = append(w.Plan.Warnings, warning)
	}
	return nil
}

// way checks that the hub accepts the way to the cluster.
func (r *Registrar) way(ctx context.Context, w *Work) error {
	rules, unknown, err := r.Hub.Rules(ctx, r.HubNamespace)
	if err != nil {
		return err
	}
	if w.target, err = target(r.Cluster, w.req.Address); err != nil {
		return err
	}
	w.Plan.Server = w.target.Server
	_, refused, err := w.target.KubeconfigBy("x", rules)
	if err != nil {
		return fmt.Errorf("the hub would refuse the kubeconfig: %w", err)
	}
	if refused != "" {
		says := "the hub refuses this, by the flags that it was started with: "
		if unknown != "" {
			says = "the hub refuses this unless it was started with a flag that allows it (" + unknown + "): "
		}
		w.Plan.Warnings = append(w.Plan.Warnings, says+refused+
			". If the hub reaches the cluster by another address, write --server")
	}
	return nil
}

// namespace checks that Secrets in the namespace may register clusters.
func (r *Registrar) namespace(ctx context.Context, w *Work) error {
	ns := &corev1.Namespace{}
	err := w.hub.client.Get(ctx, types.NamespacedName{Name: w.req.Name.Namespace}, ns)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("Namespace %s is not on the hub: create it, or choose another one by -n", w.req.Name.Namespace)
	case err != nil && !apierrors.IsForbidden(err):
		return fmt.Errorf("read Namespace %s on the hub: %w", w.req.Name.Namespace, err)
	}
	u := &unstructured.Unstructured{}
	u.SetNamespace(w.req.Name.Namespace)
	u.SetLabels(map[string]string{hubv1.RegisterLabel: "true"})
	verdict := r.Hub.Hub.Origins.Judge(origin.Secret, u, origin.Around{NamespaceLabels: ns.Labels,
		ClusterExists: func(string) bool { return false }})
	switch {
	case verdict.Refused != "" && err != nil:
		w.Plan.Warnings = append(w.Plan.Warnings, fmt.Sprintf("you may not read Namespace %s on the hub, so it is not known before whether it "+
			"has label %s",
			w.req.Name.Namespace, hubv1.RegisterSecretsLabel))
	case verdict.Refused != "":
		return fmt.Errorf("%s, or choose one by -n", verdict.Refused)
	}
	return nil
}

// registration checks that the name is free, or the cluster's, and looks for another registration of the cluster.
func (r *Registrar) registration(ctx context.Context, w *Work) error {
	reg := &hubv1.ClusterRegistration{}
	err := w.hub.client.Get(ctx, w.req.Name, reg)
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the hub's API server has no ClusterRegistrations, so %w: choose another one by --kubeconfig or "+
			"--context", live.ErrNoHub)
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read ClusterRegistration %s: %w", w.req.Name, err)
	case reg.DeletionTimestamp != nil:
		return fmt.Errorf("ClusterRegistration %s is being deleted: wait until it is gone, and run the command again", w.req.Name)
	case reg.Spec.KubeConfig != nil:
		return fmt.Errorf("ClusterRegistration %s was written by hand, with a spec.kubeConfig of its own: choose another name", w.req.Name)
	case reg.Spec.OriginRef != nil && (reg.Spec.OriginRef.Kind != origin.Secret.Kind || reg.Spec.OriginRef.Name != w.req.Name.Name):
		return fmt.Errorf("ClusterRegistration %s is that of %s %q: choose another "+
			"name", w.req.Name, reg.Spec.OriginRef.Kind, reg.Spec.OriginRef.Name)
	case reg.Status.ClusterUID != "" && reg.Status.ClusterUID != w.cluster.uid:
		return fmt.Errorf("ClusterRegistration %s is of another cluster: its kube-system has UID %s, and this one's has %s: unregister that "+
			"one "+
			"first, or choose another name", w.req.Name, reg.Status.ClusterUID, w.cluster.uid)
	}
	list := &hubv1.ClusterRegistrationList{}
	if err := w.hub.client.List(ctx, list); err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("list the ClusterRegistrations: %w", err)
	}
	for i := range list.Items {
		if other := &list.Items[i]; other.Status.ClusterUID == w.cluster.uid && client.ObjectKeyFromObject(other) != w.req.Name {
			w.Plan.Warnings = append(w.Plan.Warnings, fmt.Sprintf("this cluster is registered as %s/%s already: one of the two will be served, "+
				"and the other says Duplicate", other.Namespace, other.Name))
		}
	}
	return nil
}

// onHub reads the Secret, and decides whether the token in it stays.
func (r *Registrar) onHub(ctx context.Context, w *Work) error {
	s := &corev1.Secret{}
	err := w.hub.client.Get(ctx, w.req.Name, s)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read Secret %s on the hub: %w", w.req.Name, err)
	}
	if err := w.account.Fits(s, w.cluster.uid); err != nil {
		return err
	}
	w.secret = s
	want := w.account.Secret(w.req.Labels, excerpt.Duration(w.req.Lifetime), w.cluster.uid)
	w.relabel = !contains(s.Labels, want.Labels) || !contains(s.Annotations, want.Annotations)
	config, err := kubeconfig.Parse(s.Data[account.SecretKey], account.Lenient())
	if err != nil {
		return nil // nothing of it stays
	}
	again, _, err := w.target.Kubeconfig("x")
	if err != nil || again.TargetFingerprint() != config.TargetFingerprint() {
		return nil
	}
	now := time.Now()
	of, _, isToken := config.Account()
	notes, noted := token.NotesOf(s.Annotations, config.Fingerprint(), now)
	if !isToken || of != w.account.Key() || !noted || now.After(notes.Issued.Add(notes.Expires.Sub(notes.Issued)/2)) {
		return nil
	}
	if w.req.Address == "" && r.answers(ctx, config) != nil {
		return nil
	}
	w.current = config
	return nil
}

// contains returns whether a map has everything that another one has.
func contains(there, want map[string]string) bool {
	for k, v := range want {
		if there[k] != v {
			return false
		}
	}
	return true
}

// answers returns why the cluster does not answer to a kubeconfig; nil if it does.
func (r *Registrar) answers(ctx context.Context, config *kubeconfig.Config) error {
	if failure := probe.Once(ctx, config, probe.Options{Rules: config.Rules(), UserAgent: "chandler"}).Err; failure != nil {
		return failure
	}
	return nil
}

// onCluster reads what there is of the account.
func (r *Registrar) onCluster(ctx context.Context, w *Work) error {
	err := w.cluster.client.Get(ctx, types.NamespacedName{Name: w.req.Role}, &rbacv1.ClusterRole{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("--role %s: the cluster has no ClusterRole of that name", w.req.Role)
	}
	if err != nil {
		return fmt.Errorf("read ClusterRole %s on the cluster: %w", w.req.Role, err)
	}
	for _, want := range w.account.Objects("") {
		there, err := read(ctx, w.cluster.client, want)
		if err != nil {
			return fmt.Errorf("%w on the cluster", err)
		}
		state, err := w.account.Compare(want, there)
		if err != nil {
			return err
		}
		w.objects = append(w.objects, there)
		w.Plan.Cluster = append(w.Plan.Cluster, account.Step{State: state, Object: account.Called(want)})
	}
	return w.account.Check(w.objects)
}

// read returns an object as it is; nil if it is not there.
func read(ctx context.Context, c client.Client, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(want.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(want), there)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", account.Called(want), err)
	}
	return there, nil
}

// steps completes the plan.
func (r *Registrar) steps(w *Work) {
	last := &w.Plan.Cluster[len(w.Plan.Cluster)-1]
	last.Note = "to ClusterRole " + w.req.Role
	if w.objects[1] == nil { // a ServiceAccount that is made anew has no token yet
		w.current = nil
	}
	step := account.Step{State: account.Missing, Object: "Secret " + w.req.Name.String(),
		Note: fmt.Sprintf("with a token for %s, which the hub renews", excerpt.Duration(w.req.Lifetime))}
	switch {
	case w.secret == nil:
	case w.current == nil:
		step.State = account.Differs
	case w.relabel:
		step.State, step.Note = account.Differs, "labels and annotations"
	default:
		step.State, step.Note = account.AsIs, "its token expires at "+expiry(w.current)
	}
	w.Plan.Hub = []account.Step{step}
}

// Export returns what would be made, for Git: what is on the cluster, and the Secret without its credential.
func Export(hubID string, req Request) (cluster []*unstructured.Unstructured, secret *corev1.Secret) {
	a := account.Of(hubID, "", req.Name, req.Role)
	secret = a.Secret(req.Labels, excerpt.Duration(req.Lifetime), "")
	secret.CreationTimestamp = metav1.Time{}
	return a.Objects(""), secret
}

func expiry(config *kubeconfig.Config) string {
	at, _ := config.Expiration()
	return at.UTC().Format(time.RFC3339)
}
