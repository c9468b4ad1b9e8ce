// SPDX-License-Identifier: Apache-2.0

// Package register registers and unregisters clusters for the command line. It reads and writes the hub's API server and
// the cluster's. What is made and in which order is decided in package account.
package register

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/internal/account"
	"github.com/chandler-hub/chandler/internal/live"
)

// fieldManager owns what the commands apply. It is the user's, and so not the hub's.
const fieldManager = "chandler-register"

// Registrar works on one cluster.
type Registrar struct {
	// Hub reads from the hub's API server, and knows the hub's flags. HubConfig is how that server is reached.
	Hub       live.Reader
	HubConfig *rest.Config
	// HubNamespace is where the hub publishes its flags.
	HubNamespace string
	// Cluster is how the cluster is reached, with the rights of an administrator; nil if nobody has said.
	Cluster *rest.Config
	// Out is where progress goes.
	Out io.Writer
	// Wait is how long the commands wait for the hub, and for the cluster.
	Wait time.Duration
}

// pause is the time between two looks at what is waited for.
const pause = 500 * time.Millisecond

// patience is how long one answer of a cluster may take, unless somebody says otherwise.
const patience = 15 * time.Second

// server is what an API server says of itself to anybody whom it lets in.
type server struct {
	client  client.Client
	version string
	clock   time.Time
	// uid is that of kube-system; "" if the caller may not read it.
	uid types.UID
}

// ask asks an API server who it is.
func ask(ctx context.Context, config *rest.Config) (*server, error) {
	config = rest.CopyConfig(config)
	config.Timeout = cmp.Or(config.Timeout, patience)
	c, err := connect(ctx, config)
	if err != nil {
		return nil, err
	}
	s := &server{client: c}
	if s.version, s.clock, err = versionOf(ctx, config); err != nil {
		return nil, err
	}
	system := &corev1.Namespace{}
	switch err := c.Get(ctx, types.NamespacedName{Name: "kube-system"}, system); {
	case err == nil:
		s.uid = system.UID
	case !apierrors.IsForbidden(err):
		return nil, fmt.Errorf("read Namespace kube-system: %w", err)
	}
	return s, nil
}

func connect(ctx context.Context, config *rest.Config) (client.Client, error) {
	within, err := live.Within(ctx, config)
	if err != nil {
		return nil, err
	}
	return live.Connect(within)
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 10

// versionOf returns the version of an API server, and what its clock says; the zero time if it does not say.
func versionOf(ctx context.Context, config *rest.Config) (string, time.Time, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return "", time.Time{}, err
	}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", time.Time{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), nil)
	if err != nil {
		return "", time.Time{}, err
	}
	once := *c // a redirect would carry the credential on
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := once.Do(req)
	if err != nil {
		return "", time.Time{}, shortened(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", time.Time{}, fmt.Errorf("the server answers %s to GET /version: is the credential right, and is it an API "+
			"server?", resp.Status)
	}
	var answer struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&answer); err != nil {
		return "", time.Time{}, errors.New("the server's answer to GET /version is not that of an API server")
	}
	if err := account.CheckVersion(answer.GitVersion); err != nil {
		return "", time.Time{}, err
	}
	clock, _ := http.ParseTime(resp.Header.Get("Date"))
	return answer.GitVersion, clock, nil
}

// target returns how the hub is to reach the cluster: as the caller does, or by another address.
func target(config *rest.Config, address string) (account.Target, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return account.Target{}, fmt.Errorf("read the files that the kubeconfig names: %w", err)
	}
	t := account.Target{Server: config.Host, CA: config.CAData, TLSServerName: config.ServerName, Insecure: config.Insecure}
	if address != "" {
		t.Server = address
	} else if config.Proxy != nil {
		base, _, err := rest.DefaultServerUrlFor(config)
		if err != nil {
			return account.Target{}, err
		}
		proxy, err := config.Proxy(&http.Request{URL: base})
		if err == nil && proxy != nil {
			t.ProxyURL = proxy.String()
		}
	}
	return t, nil
}

// until looks again and again whether something is so, until it is, it fails, or the time is over.
func until(ctx context.Context, wait time.Duration, look func(context.Context) (bool, error)) error {
	if wait > 0 { // 0 is without an end
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		if done, err := look(ctx); done || err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
