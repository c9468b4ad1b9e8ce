// SPDX-License-Identifier: Apache-2.0

package register

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/account"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/token"
)

// Apply does what a plan says. What it has not come to is done by the next run.
func (r *Registrar) Apply(ctx context.Context, w *Work) error {
	if err := r.makeAccount(ctx, w); err != nil {
		return err
	}
	secret := w.account.Secret(w.req.Labels, excerpt.Duration(w.req.Lifetime), w.cluster.uid)
	if w.current == nil {
		config, notes, err := r.newToken(ctx, w)
		if err != nil {
			return err
		}
		maps.Copy(secret.Annotations, notes.Annotations())
		secret.Data = map[string][]byte{account.SecretKey: config.Minimal()}
		w.current = config
	} else if !w.relabel {
		return nil
	}
	return r.writeSecret(ctx, w, secret)
}

// makeAccount makes what is missing of the account on the cluster.
func (r *Registrar) makeAccount(ctx context.Context, w *Work) error {
	var owner types.UID
	if n := w.objects[0]; n != nil && w.objects[1] != nil && len(w.objects[1].GetOwnerReferences()) > 0 || n != nil && w.objects[1] == nil {
		owner = n.GetUID() // what was made for Git has no owner, and gets none
	}
	for i, want := range w.account.Objects("") {
		if i > 0 {
			want = w.account.Objects(owner)[i]
		}
		step := w.Plan.Cluster[i]
		switch step.State {
		case account.AsIs:
			continue
		case account.Missing:
			// Create, and not apply: whoever has made it in this moment is not us.
			if err := w.cluster.client.Create(ctx, want, client.FieldOwner(fieldManager)); err != nil {
				if apierrors.IsAlreadyExists(err) {
					return fmt.Errorf("another user has just made %s on the cluster: look at it, and run the command again", step.Object)
				}
				return fmt.Errorf("create %s on the cluster: %w", step.Object, err)
			}
			if i == 0 {
				owner = want.GetUID()
			}
		case account.Differs:
			want.SetResourceVersion(w.objects[i].GetResourceVersion())
			if err := w.cluster.client.Update(ctx, want, client.FieldOwner(fieldManager)); err != nil {
				return fmt.Errorf("update %s on the cluster: %w", step.Object, err)
			}
		}
		r.say("%s %s on the cluster", step.Object, past(step.State))
	}
	return nil
}

func past(s account.State) string {
	if s == account.Missing {
		return "created"
	}
	return "updated"
}

func (r *Registrar) say(format string, args ...any) { fmt.Fprintf(r.Out, format+"\n", args...) }

// newToken asks the cluster for a token, and sees whether it is good for anything.
func (r *Registrar) newToken(ctx context.Context, w *Work) (*kubeconfig.Config, token.Notes, error) {
	seconds := int64(w.req.Lifetime / time.Second)
	issued := time.Now()
	answer := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	key := w.account.Key()
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := w.cluster.client.SubResource("token").Create(ctx, of, answer); err != nil {
		return nil, token.Notes{}, fmt.Errorf("ask the cluster for a token of ServiceAccount %s: %w", key, err)
	}
	config, _, err := w.target.Kubeconfig(answer.Status.Token)
	if err != nil {
		return nil, token.Notes{}, fmt.Errorf("the token of ServiceAccount %s: %w", key, err)
	}
	if got, _, ok := config.Account(); !ok || got != key {
		return nil, token.Notes{}, fmt.Errorf("the cluster gives something else than a token of ServiceAccount %s", key)
	}
	if w.req.Address == "" { // else it may be an address that only the hub reaches
		var last error
		err := until(ctx, 10*time.Second, func(ctx context.Context) (bool, error) { // the cluster may not know the new rights yet
			last = r.answers(ctx, config)
			return last == nil, nil
		})
		if err != nil {
			return nil, token.Notes{}, fmt.Errorf("the cluster at %s gives ServiceAccount %s a token, and does not answer to it: "+
				"%w", w.target.Server, key,
				errors.Join(last))
		}
	}
	return config, token.Notes{Issued: issued, Fingerprint: config.Fingerprint(),
		Expires: token.Expiry(issued, token.Of(config, answer.Status.ExpirationTimestamp.Time), w.req.Lifetime)}, nil
}

// writeSecret creates the Secret, or writes into the one that was read, if it is still as it was then.
func (r *Registrar) writeSecret(ctx context.Context, w *Work, s *corev1.Secret) error {
	name := "Secret " + w.req.Name.String()
	if w.secret == nil {
		if err := w.hub.client.Create(ctx, s, client.FieldOwner(fieldManager)); err != nil {
			return fmt.Errorf("create %s on the hub: %w", name, err)
		}
		r.say("%s created on the hub", name)
		return nil
	}
	patch, err := json.Marshal(map[string]any{"data": s.Data, "metadata": map[string]any{
		"uid": w.secret.UID, "resourceVersion": w.secret.ResourceVersion, "labels": s.Labels, "annotations": s.Annotations,
	}})
	if err != nil {
		return fmt.Errorf("write %s: the patch cannot be written", name)
	}
	if err := w.hub.client.Patch(ctx, s, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager)); err != nil {
		if apierrors.IsConflict(err) {
			return fmt.Errorf("%s has changed on the hub meanwhile: run the command again", name)
		}
		return fmt.Errorf("write %s on the hub: %w", name, err)
	}
	r.say("%s updated on the hub", name)
	return nil
}
