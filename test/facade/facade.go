// SPDX-License-Identifier: Apache-2.0

// Package facade makes many clusters of one API server, for tests and measurements that need more clusters than a machine can run.
package facade

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/chandler-hub/chandler/internal/identity"
)

// Facade is one API server that looks like many clusters. Each has a path and a kube-system namespace with a UID of its own,
// because the hub serves one registration of each cluster. Everything else is the API server's answer.
type Facade struct {
	server *httptest.Server

	mu   sync.Mutex
	dead map[string]bool
}

// New returns a Facade before the API server that target names, with target's rights. Close stops it.
func New(target *rest.Config) (*Facade, error) {
	transport, err := rest.TransportFor(target)
	if err != nil {
		return nil, err
	}
	to, err := url.Parse(target.Host)
	if err != nil {
		return nil, err
	}
	f := &Facade{dead: map[string]bool{}}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			name, path := split(r.In.URL.Path)
			r.SetURL(to)
			r.Out.URL.Path, r.Out.URL.RawPath = path, ""
			r.Out.Header.Del("Authorization") // the hub's token means nothing there: the transport has the administrator's
			r.Out.Header.Set(clusterHeader, name)
		},
		ModifyResponse: ownUID,
	}
	f.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _ := split(r.URL.Path)
		f.mu.Lock()
		dead := f.dead[name]
		f.mu.Unlock()
		if dead {
			<-r.Context().Done() // for as long as the client has patience
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	return f, nil
}

const clusterHeader = "X-Facade-Cluster"

// split splits /NAME/rest.
func split(path string) (name, rest string) {
	name, rest, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return name, "/" + rest
}

// ownUID replaces the UID of the namespace kube-system by that of the cluster that was asked.
func ownUID(r *http.Response) error {
	if !strings.HasSuffix(r.Request.URL.Path, "/namespaces/kube-system") || r.StatusCode != http.StatusOK {
		return nil
	}
	ns := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&ns); err != nil {
		return err
	}
	_ = r.Body.Close()
	meta, ok := ns["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("kube-system has no metadata")
	}
	meta["uid"] = identity.Hash(32, r.Request.Header.Get(clusterHeader))
	raw, err := json.Marshal(ns)
	if err != nil {
		return err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	r.Header.Set("Content-Length", fmt.Sprint(len(raw)))
	return nil
}

// Kill makes clusters hang from now on.
func (f *Facade) Kill(names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		f.dead[name] = true
	}
}

// KubeConfig returns a kubeconfig for the cluster of a name.
func (f *Facade) KubeConfig(name string) ([]byte, error) {
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{
		Server:                   f.server.URL + "/" + name,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw}),
	}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "facade"}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	return clientcmd.Write(*c)
}

// Close stops the facade, and cuts off who is connected.
func (f *Facade) Close() {
	f.server.CloseClientConnections()
	f.server.Close()
}
