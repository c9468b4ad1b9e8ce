// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
)

// tokenRequest completes "may not …" in a message.
const tokenRequest = "request a token of the ServiceAccount"

// maxToken bounds a token, in bytes. Those of Kubernetes have about one kilobyte.
const maxToken = 16 << 10

// Token asks a cluster for a token of a ServiceAccount that expires after a lifetime (TokenRequest). The API server may
// give it another one. It is bound as Once is: to opts.Total, and to addresses that the rules allow.
func Token(ctx context.Context, cfg *kubeconfig.Config, account types.NamespacedName, lifetime time.Duration,
	opts Options) (token string, expires time.Time, failure *Failure) {
	opts = opts.withDefaults()
	bounded, cancel := context.WithTimeout(ctx, opts.Total)
	defer cancel()
	a := &attempt{ctx: bounded, opts: opts, server: cfg.Server()}
	defer a.closeAll()
	if failure = a.connect(cfg); failure != nil {
		return "", time.Time{}, failure
	}
	seconds := int64(lifetime / time.Second)
	body, err := json.Marshal(authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenRequest"},
		Spec:     authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	})
	if err != nil {
		return "", time.Time{}, &Failure{Reason: ReasonNotReady, Message: "the request cannot be written"}
	}
	path := "/api/v1/namespaces/" + url.PathEscape(account.Namespace) + "/serviceaccounts/" + url.PathEscape(account.Name) + "/token"
	request, err := http.NewRequestWithContext(a.trace(bounded), http.MethodPost, a.server+path, bytes.NewReader(body))
	if err != nil {
		return "", time.Time{}, &Failure{Reason: ReasonDialFailed, Message: "the server's URL cannot be used"}
	}
	request.Header.Set("Accept", acceptJSON)
	request.Header.Set("Content-Type", acceptJSON)
	var answer struct { // nothing else of it: a list of small objects takes a hundred times the memory of its text
		Status struct {
			Token               string      `json:"token"`
			ExpirationTimestamp metav1.Time `json:"expirationTimestamp"`
		} `json:"status"`
	}
	if failure = a.send(request, tokenRequest, &answer); failure != nil {
		return "", time.Time{}, failure
	}
	if answer.Status.Token == "" || len(answer.Status.Token) > maxToken || answer.Status.ExpirationTimestamp.IsZero() {
		return "", time.Time{}, &Failure{Reason: ReasonNotKubernetes,
			Message: "the answer to a TokenRequest holds no token, or does not say when it expires"}
	}
	return answer.Status.Token, answer.Status.ExpirationTimestamp.Time, nil
}
