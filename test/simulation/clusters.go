// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"regexp"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-hub/chandler/internal/kubeconfig"
	"github.com/chandler-hub/chandler/internal/probe"
)

// cluster is a workload cluster: it keeps what was applied to it.
type cluster struct {
	name, namespace string
	provider        string // Secret, Kamaji or Hand
	address         string
	// life grows when the cluster is rebuilt, and token when its credentials are rotated.
	life, token int
	// holds is true if it answers the hub, and not Flux.
	down, hung, holds bool
	// refuses is true if it gives no tokens.
	refuses bool
	// mute is when it did last not answer to what its registration says.
	mute time.Time
	// silent is since when the cluster that it leads to does not answer at all; zero if that answers.
	silent time.Time
	// leadsTo is where its registration leads, and turned since when.
	leadsTo *cluster
	turned  time.Time
	// drained is since when somebody drains it; zero if nobody does.
	drained time.Time
	// gone is true when its origin has been deleted, and it with it.
	gone bool
	// unregistered is true if somebody has deleted its registration while that said that its Secret is missing. By that
	// the cluster is unregistered, as the hub says, until the Secret exists again.
	unregistered bool
	// led are those whose registration leads here, or did. twin is the cluster whose second registration it is, if it is nothing else. See
	// registrations.go.
	led  []*cluster
	twin *cluster
	// own are labels that its registration, of this UID, had before it came to have an origin: they stay.
	own    map[string]string
	ownUID any
	// leaves is the UID of the registration that the hub has deleted: if it has no deliveries any more when it has gone, it begins anew.
	leaves any
	// annotated are the variables in the annotation that its origin had last.
	annotated string
	// adopted is when its registration, which was written by hand, has come to be of an origin.
	adopted time.Time
	// labels are those that its origin had last.
	labels map[string]string
	// seen are the labels that the registration had when the origin went; nil while there is an origin.
	seen map[string]string
	// workloads are what runs there, by their names.
	workloads map[string]*workload
}

func (c *cluster) uid() types.UID {
	return types.UID(fmt.Sprintf("11111111-0000-4000-8000-%s%04d", hexOf(c.name), c.life))
}

func hexOf(s string) string {
	out := fmt.Sprintf("%x", s)
	for len(out) < 8 {
		out += "0"
	}
	return out[:8]
}

// authority is a CA certificate, the same in each run: names of objects are digests of what it is in.
var authority = sync.OnceValue(func() string {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	must(err)
	var b bytes.Buffer
	must(pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return base64.StdEncoding.EncodeToString(b.Bytes())
})

// bearer is the token that a cluster accepts now.
func (c *cluster) bearer() string { return fmt.Sprintf("token-of-%s-%d-%d", c.name, c.life, c.token) }

// kubeconfig is what its origin's Secret holds.
func (c *cluster) kubeconfig() string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://%s:6443", certificate-authority-data: %s}}]
users: [{name: u, user: {token: %s}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
`, c.address, authority(), c.bearer())
}

var (
	serverLine = regexp.MustCompile(`server: "?https://([0-9.]+):6443`)
	tokenLine  = regexp.MustCompile(`token: "?([a-z0-9.-]+)`)
)

// reach returns the cluster that a kubeconfig leads to, if it answers to it, and the Team that it is reached as; nil for its admin.
func (w *World) reach(raw string) (*cluster, *team, error) {
	address, token := serverLine.FindStringSubmatch(raw), tokenIn(raw)
	if address == nil || token == "" {
		return nil, nil, fmt.Errorf("this is no kubeconfig")
	}
	return w.dial(address[1], token)
}

// tokenIn returns the token in a kubeconfig; "" if there is none.
func tokenIn(raw string) string {
	if m := tokenLine.FindStringSubmatch(raw); m != nil {
		return m[1]
	}
	return ""
}

func (w *World) dial(address, token string) (*cluster, *team, error) {
	given, ofTeam := w.tokens[token]
	for _, c := range w.clusters {
		if c.address != address || c.twin != nil {
			continue
		}
		switch {
		case c.down || c.gone:
			return nil, nil, fmt.Errorf("dial tcp %s:6443: connection refused", address)
		case c.hung:
			return nil, nil, fmt.Errorf("context deadline exceeded")
		case ofTeam && w.valid(given, c):
			return c, given.team, nil
		case c.bearer() != token:
			return nil, nil, fmt.Errorf("Unauthorized")
		}
		return c, nil, nil
	}
	return nil, nil, fmt.Errorf("dial tcp %s:6443: no route to host", address)
}

// probeOnce is what a renewed token is tried with.
func (w *World) probeOnce(ctx context.Context, cfg *kubeconfig.Config, _ probe.Options) probe.Result {
	return w.probe(ctx, cfg)
}

// probe is what the pool asks clusters with.
func (w *World) probe(_ context.Context, cfg *kubeconfig.Config) probe.Result {
	rest := cfg.RESTConfig()
	c, _, err := w.dial(cfg.Host(), rest.BearerToken)
	now := w.clock.Now()
	if err != nil {
		reason := probe.ReasonConnectionRefused
		switch err.Error() {
		case "Unauthorized":
			reason = probe.ReasonUnauthorized
		case "context deadline exceeded":
			reason = probe.ReasonTimedOut
		}
		return probe.Result{Time: now, Err: &probe.Failure{Reason: reason, Message: err.Error()}}
	}
	return probe.Result{Time: now, Version: "v1.34.1", ClusterUID: c.uid(), Nodes: 3, NodesKnown: true}
}
