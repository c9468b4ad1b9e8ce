// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/index"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/origin"
	"github.com/chandler-hub/chandler/internal/probe"
	"github.com/chandler-hub/chandler/internal/render/flux"
	"github.com/chandler-hub/chandler/internal/status"
	"github.com/chandler-hub/chandler/internal/teardown"
)

// candidate is one kubeconfig that passed every check.
type candidate struct {
	key     string
	context string // of the kubeconfig, if its origin names one
	config  *kubeconfig.Config
	// former is true for the copy of the kubeconfig in use, when the cluster refuses what the Secret says now.
	former bool
}

// poolKey is the pool's key of a registration's candidate. The copy in use has one of its own, with a space, which no key of a Secret has:
// what the Secret says is probed beside the copy.
func (c candidate) poolKey(of types.NamespacedName) string {
	if c.former {
		return probeKey(of, "in use")
	}
	return probeKey(of, c.key)
}

// resolution is the result of the search for a kubeconfig.
type resolution struct {
	secret     string
	candidates []candidate
	// fromSpec is true if spec.kubeConfig names the Secret, or did when the cluster answered to what the hub goes on with.
	fromSpec bool
	// refused says why the other keys that could have held it do not pass.
	refused []string
	// waiting is true if the origin is not ready to give one yet: that is no failure.
	waiting bool
	// unread is the error of reading the Secret, or its kubeconfig copy, if the API server did not answer: the hub tries again.
	unread error
}

// resolve finds the kubeconfig and sets KubeConfigValid. If it fails it returns no candidates, and whatever runs on
// the cluster is left alone.
func (r *Reconciler) resolve(ctx context.Context, reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured,
	verdict origin.Verdict) resolution {
	source, reason, err := kubeConfigSource(reg, obj, verdict)
	var found resolution
	if err == nil {
		found, reason, err = r.read(ctx, reg, source)
	} else {
		r.secrets.drop(client.ObjectKeyFromObject(reg))
	}
	if err != nil {
		found.waiting = reason == hubv1.KubeConfigNotReadyReason
		status.Set(reg, hubv1.KubeConfigValidCondition, metav1.ConditionFalse, reason, err.Error(), r.Clock.Now())
		if len(found.candidates) == 0 {
			return r.fromCopy(ctx, reg, found)
		}
		return found
	}
	// Without either, it is the last known way in.
	found.fromSpec = reg.Spec.KubeConfig != nil || obj == nil && reg.Status.Credential != nil && reg.Status.Credential.FromSpec
	if said := r.refusals(reg, found); len(said) > 0 {
		status.Set(reg, hubv1.KubeConfigValidCondition, metav1.ConditionFalse, hubv1.CredentialRefusedReason,
			strings.Join(said, status.Separator)+"; the kubeconfig in use stays in use", r.Clock.Now())
		return r.withFormer(ctx, reg, found)
	}
	keys := make([]string, len(found.candidates))
	for i, c := range found.candidates {
		keys[i] = c.key
	}
	status.Set(reg, hubv1.KubeConfigValidCondition, metav1.ConditionTrue, hubv1.SucceededReason,
		fmt.Sprintf("Secret %q, key %s", source.Secret, status.List(keys, 4)), r.Clock.Now())
	return found
}

// refusals returns how the cluster refuses each credential of the Secret in use; none if one of them is not refused, or is the one in use.
func (r *Reconciler) refusals(reg *hubv1.ClusterRegistration, found resolution) []string {
	of, inUse := client.ObjectKeyFromObject(reg), reg.Status.Credential
	if inUse == nil || inUse.SecretName != found.secret {
		return nil
	}
	var said []string
	for _, c := range found.candidates {
		is := c.config.Fingerprint()
		if is == inUse.Fingerprint {
			return nil
		}
		result, fingerprint, ok := r.Pool.Result(c.poolKey(of))
		if !ok || fingerprint != is || result.Err == nil || !probe.Refuses(result.Err.Reason) {
			return nil
		}
		said = append(said, fmt.Sprintf("Secret %q, key %s: %s", found.secret, c.key, result.Err.Message))
	}
	return said
}

// withFormer adds the copy of the kubeconfig in use to the candidates, as the last of them: a cluster that refuses what the Secret says now
// may accept the copy still.
func (r *Reconciler) withFormer(ctx context.Context, reg *hubv1.ClusterRegistration, found resolution) resolution {
	copied := r.fromCopy(ctx, reg, resolution{})
	for _, c := range copied.candidates {
		c.former = true
		found.candidates = append(found.candidates, c)
	}
	found.unread = copied.unread
	return found
}

// fromCopy goes on with the kubeconfig that Flux uses when its source has gone or has changed for the worse: the
// cluster is still probed, even by a hub that has just started. If the Secret went before its last credentials were
// copied for Flux, they are lost: what Flux has then is older, and for the same server.
func (r *Reconciler) fromCopy(ctx context.Context, reg *hubv1.ClusterRegistration, found resolution) resolution {
	credential := reg.Status.Credential
	if credential == nil {
		return found
	}
	copies, err := r.copiesOf(ctx, reg)
	if err != nil {
		found.unread = cmp.Or(found.unread, err)
		return found
	}
	for _, key := range copies {
		copied := &corev1.Secret{}
		if err := r.Live.Get(ctx, key, copied); apierrors.IsNotFound(err) {
			continue
		} else if err != nil { // no event tells when it can be read
			found.unread = cmp.Or(found.unread, fmt.Errorf("read the kubeconfig copy %s: %w", key, err))
			continue
		}
		config, err := kubeconfig.Parse(copied.Data[flux.KubeconfigKey], r.Config.RulesFor(reg))
		if err == nil && config.Fingerprint() == copied.Annotations[hubv1.FingerprintAnnotation] &&
			config.TargetFingerprint() == credential.TargetFingerprint {
			found.secret, found.candidates = credential.SecretName, []candidate{{key: credential.Key, context: credential.Context, config: config}}
			found.fromSpec = credential.FromSpec
			return found
		}
	}
	return found
}

// copiesOf returns the names of a registration's kubeconfig copies. Those with the credential in use come first.
func (r *Reconciler) copiesOf(ctx context.Context, reg *hubv1.ClusterRegistration) ([]types.NamespacedName, error) {
	of := client.ObjectKeyFromObject(reg)
	kept, err := index.Copies(ctx, r.Client, "Secret", identity.ClusterKey(r.Config.HubID, of))
	var current, older []types.NamespacedName
	for i := range kept {
		m := &kept[i]
		switch {
		case m.Labels[hubv1.CopyLabel] != "true": // it has a Team's token
		case m.Name != identity.KubeconfigCopy(r.Config.HubID, of) || !r.Config.IsPlatform(m.Namespace) && m.Namespace != reg.Namespace:
		case m.Annotations[hubv1.FingerprintAnnotation] == reg.Status.Credential.Fingerprint:
			current = append(current, client.ObjectKeyFromObject(m))
		default:
			older = append(older, client.ObjectKeyFromObject(m))
		}
	}
	slices.SortFunc(older, func(a, b types.NamespacedName) int { return cmp.Compare(a.Namespace, b.Namespace) }) // the same one each time
	return append(current, older...), err
}

// kubeConfigSource says where the kubeconfig is, or why that is not known, with a reason.
func kubeConfigSource(reg *hubv1.ClusterRegistration, obj *unstructured.Unstructured, verdict origin.Verdict) (origin.Source,
	string, error) {
	if kc := reg.Spec.KubeConfig; kc != nil && kc.SecretRef != nil {
		return origin.Source{Secret: kc.SecretRef.Name, Key: kc.SecretRef.Key}, "", nil
	}
	ref := reg.Spec.OriginRef
	if ref == nil {
		return origin.Source{}, hubv1.KubeConfigSourceMissingReason,
			errors.New("write spec.kubeConfig.secretRef: there is no origin to take the kubeconfig from")
	}
	kind, err := origin.KindOf(*ref)
	if err != nil {
		return origin.Source{}, hubv1.OriginKindNotInstalledReason, err
	}
	if obj == nil {
		if c := reg.Status.Credential; c != nil && !reg.DeletionTimestamp.IsZero() {
			return origin.Source{Secret: c.SecretName, Key: c.Key, Context: c.Context}, "", nil // to clean up, the last known way in will do
		}
		if verdict.Origin == teardown.OriginGone {
			return origin.Source{}, hubv1.OriginNotFoundReason,
				fmt.Errorf("%s %q does not exist; what runs on the cluster is left alone", kind.Kind, ref.Name)
		}
		return origin.Source{}, hubv1.OriginKindNotInstalledReason,
			fmt.Errorf("kind %s is not installed on this management cluster; what runs on the cluster is left alone", kind.GroupKind)
	}
	if verdict.Reason != "" {
		return origin.Source{}, verdict.Reason,
			fmt.Errorf("%s; what runs on the cluster is left alone, and the kubeconfig in use stays in use", verdict.Refused)
	}
	source, err := kind.KubeConfig(obj)
	if err != nil {
		return origin.Source{}, hubv1.KubeConfigNotReadyReason, err
	}
	return verdict.Keyed(source), "", nil
}

// read reads and checks the Secret. Only its metadata is cached. Its bytes are read again when they have changed.
func (r *Reconciler) read(ctx context.Context, reg *hubv1.ClusterRegistration, source origin.Source) (resolution, string, error) {
	of, key := client.ObjectKeyFromObject(reg), types.NamespacedName{Namespace: reg.Namespace, Name: source.Secret}
	rules := r.Config.RulesFor(reg)
	rules.Context = source.Context
	unread := func(err error) (resolution, string, error) {
		if apierrors.IsNotFound(err) {
			r.secrets.drop(of)
			return resolution{}, hubv1.SecretNotFoundReason, fmt.Errorf("Secret %q is not in namespace %q", source.Secret, reg.Namespace)
		}
		err = fmt.Errorf("read Secret %q: %w", source.Secret, err)
		return resolution{unread: err}, hubv1.FailedReason, err
	}
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := r.Client.Get(ctx, key, meta); err != nil {
		return unread(err)
	}
	as := viewOf(key, source, rules)
	if cached, ok := r.secrets.get(of, as, meta); ok {
		return cached.resolution, cached.reason, cached.err
	}
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, key, secret); err != nil {
		return unread(err)
	}
	found, reason, err := check(secret, source, rules)
	r.secrets.put(of, as, &secret.ObjectMeta, parsed{found, reason, err})
	return found, reason, err
}

// check parses the keys of a Secret that may hold the kubeconfig. It fails if none of them passes.
func check(secret *corev1.Secret, source origin.Source, rules kubeconfig.Rules) (resolution, string, error) {
	found := resolution{secret: secret.Name}
	keys, err := kubeconfig.Keys(secret.Data, source.Key, source.Candidates)
	if err != nil {
		return found, reasonOf(err), fmt.Errorf("Secret %q: %w", secret.Name, err)
	}
	var lastErr error
	for _, key := range keys {
		config, err := kubeconfig.Parse(secret.Data[key], rules)
		if err != nil {
			// The last one is what people mean when they say "the kubeconfig": for Kamaji, admin.conf.
			found.refused = append(found.refused, fmt.Sprintf("key %s is refused: %s", key, err))
			lastErr = fmt.Errorf("Secret %q, key %q: %w", secret.Name, key, err)
			continue
		}
		found.candidates = append(found.candidates, candidate{key: key, context: source.Context, config: config})
	}
	if len(found.candidates) == 0 {
		return found, reasonOf(lastErr), lastErr
	}
	return found, "", nil
}

func reasonOf(err error) string {
	var refused *kubeconfig.Error
	if errors.As(err, &refused) {
		return refused.Reason
	}
	return hubv1.FailedReason
}
