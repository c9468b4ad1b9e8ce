// SPDX-License-Identifier: Apache-2.0

// Package credential reads the kubeconfig that the registration controller has published.
package credential

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/match"
)

// TeamFingerprint returns what the token of a Team for a cluster depends on: the Team, the endpoint and the cluster, and the
// delivery that brings its ServiceAccount.
func TeamFingerprint(reg *hubv1.ClusterRegistration, from match.Reach, rights *hubv1.AddonDelivery) string {
	target := ""
	if reg.Status.Credential != nil {
		target = reg.Status.Credential.TargetFingerprint
	}
	return identity.Hash(32, "team", from.Team.Namespace, from.Team.Name, target, string(reg.Status.ClusterID()), string(rights.UID))
}

// LostTime is after how long to look again for a published kubeconfig that is gone, or is not the one in use. It may be back before the
// registration controller has looked, which has nothing to tell then.
const LostTime = time.Minute

// Read reads and checks the published kubeconfig of a registration again. It returns nil if the Secret has changed
// since, or is gone. Then the registration controller checks it first, and publishes it when it is valid again.
func Read(ctx context.Context, live client.Reader, config *hubconfig.Config, reg *hubv1.ClusterRegistration) (*kubeconfig.Config, error) {
	_, parsed, err := Secret(ctx, live, config, reg)
	return parsed, err
}

// Secret is Read, and returns the Secret too.
func Secret(ctx context.Context, live client.Reader, config *hubconfig.Config, reg *hubv1.ClusterRegistration) (*corev1.Secret,
	*kubeconfig.Config, error) {
	published := reg.Status.Credential
	if published == nil || published.SecretName == "" {
		return nil, nil, nil
	}
	secret := &corev1.Secret{}
	if err := live.Get(ctx, types.NamespacedName{Namespace: reg.Namespace, Name: published.SecretName}, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil, nil
		}
		return nil, nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	rules := config.RulesFor(reg)
	rules.Context = published.Context
	parsed, err := kubeconfig.Parse(secret.Data[published.Key], rules)
	if err != nil || parsed.Fingerprint() != published.Fingerprint {
		return nil, nil, nil
	}
	return secret, parsed, nil
}
