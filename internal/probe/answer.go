// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"regexp"

	"k8s.io/apimachinery/pkg/types"
)

// maxBody bounds a response's body, in bytes: a namespace with all the annotations that Kubernetes allows, or one node in
// full from a server that cannot send metadata alone.
const maxBody = 1 << 20

// What a server sends ends up in a status, so it must look like what it should be.
var (
	gitVersion = regexp.MustCompile(`^v[0-9]{1,4}\.[0-9]{1,4}[0-9A-Za-z.+_-]{0,54}$`)
	uid        = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)
)

// Metadata is enough; older and other servers may send the object itself.
const (
	acceptJSON     = "application/json"
	acceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	acceptList     = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

// ask fills result with the answers. It asks what Flux asks first of a cluster for each object, and without a deadline: the ping, the
// discovery of a group, a read that the API server takes from its storage, and a write. A cluster that holds one of these holds Flux's
// workers, also if it answers all others from its caches. Of the ping, the discovery and the write, any answer will do.
func (a *attempt) ask(result *Result) *Failure {
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if failure := a.get(a.ctx, "/version", acceptJSON, "read /version", &version); failure != nil {
		return failure
	}
	if !gitVersion.MatchString(version.GitVersion) {
		return &Failure{Reason: ReasonNotKubernetes, Message: "the answer to /version holds no version of Kubernetes"}
	}
	result.Version = version.GitVersion

	if failure := a.answers(http.MethodGet, "/apis/apps/v1", nil); failure != nil {
		return failure
	}

	// Without a resourceVersion, the API server reads it from its storage.
	var namespace struct {
		Metadata struct {
			Name string    `json:"name"`
			UID  types.UID `json:"uid"`
		} `json:"metadata"`
	}
	failure := a.get(a.ctx, "/api/v1/namespaces/kube-system", acceptMetadata, "get the namespace kube-system", &namespace)
	if failure != nil {
		return failure
	}
	if namespace.Metadata.Name != "kube-system" || !uid.MatchString(string(namespace.Metadata.UID)) {
		return &Failure{Reason: ReasonNotKubernetes, Message: "the answer for the namespace kube-system is not a namespace"}
	}
	if failure = a.answers(http.MethodPost, leases+"?dryRun=All", []byte(lease)); failure != nil {
		return failure
	}
	result.ClusterUID = namespace.Metadata.UID
	result.Nodes, result.NodesKnown = a.countNodes()
	return a.answers(http.MethodHead, "/livez/ping", nil)
}

// What the probe pretends to write. Kubernetes' own controllers write Leases there all the time, so hardly a webhook is in the way of it:
// one that hangs must not keep the hub from mending the add-on that the webhook is of.
const (
	leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	lease  = `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"namespace":"kube-system","name":"chandler-probe"},"spec":{}}`
)

// answers returns a failure if the server does not answer a request in time. The answer may be any: a credential need not have the right,
// and a webhook may refuse.
func (a *attempt) answers(method, path string, body []byte) *Failure {
	request, err := http.NewRequestWithContext(a.trace(a.ctx), method, a.server+path, bytes.NewReader(body))
	if err != nil {
		return &Failure{Reason: ReasonDialFailed, Message: "the server's URL cannot be used"}
	}
	request.Close = method == http.MethodHead // it is the last. net/http would log what a server sends after the answer to it
	request.Header.Set("Accept", acceptJSON)
	if body != nil {
		request.Header.Set("Content-Type", acceptJSON)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return a.requestFailure(err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err = io.Copy(io.Discard, io.LimitReader(response.Body, maxBody)); err != nil { // else the next request needs another connection
		return a.requestFailure(err)
	}
	return nil
}

// countNodes asks for one node and the number of the others. Any failure just means that the number is not known, so it may
// take only a part of the time.
func (a *attempt) countNodes() (int32, bool) {
	ctx, cancel := context.WithTimeout(a.ctx, a.opts.Total/4)
	defer cancel()
	var list struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Continue  string `json:"continue"`
			Remaining *int64 `json:"remainingItemCount"`
		} `json:"metadata"`
		Items []node `json:"items"`
	}
	if a.get(ctx, "/api/v1/nodes?limit=1", acceptList, "list nodes", &list) != nil {
		return 0, false
	}
	if list.Kind != "PartialObjectMetadataList" && list.Kind != "NodeList" {
		return 0, false
	}
	count := int64(len(list.Items))
	switch remaining := list.Metadata.Remaining; {
	case count > 1 && (remaining != nil || list.Metadata.Continue != ""):
		return 0, false // a server without limits sends all; one that has them sends what it was asked for
	case remaining != nil && *remaining >= 0 && *remaining < math.MaxInt32-count:
		count += *remaining
	case remaining != nil || list.Metadata.Continue != "":
		return 0, false
	}
	return int32(count), true //nolint:gosec // a body of 1 MiB holds fewer items, and remaining is bounded above
}

// node is one item of a list of nodes. A list of them takes no memory, however long it is.
type node struct{}

// UnmarshalJSON reads nothing of the node.
func (*node) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(text, []byte("{")) {
		return errNoNode
	}
	return nil
}

var errNoNode = errors.New("not a node")

// get requests path and decodes the answer into into. what completes "may not …" in a message.
func (a *attempt) get(ctx context.Context, path, accept, what string, into any) *Failure {
	request, err := http.NewRequestWithContext(a.trace(ctx), http.MethodGet, a.server+path, http.NoBody)
	if err != nil {
		return &Failure{Reason: ReasonDialFailed, Message: "the server's URL cannot be used"}
	}
	request.Header.Set("Accept", accept)
	return a.send(request, what, into)
}

// send sends a request and decodes the answer.
func (a *attempt) send(request *http.Request, what string, into any) *Failure {
	response, err := a.client.Do(request)
	if err != nil {
		return a.requestFailure(err)
	}
	defer func() { _ = response.Body.Close() }()
	if failure := statusFailure(response.StatusCode, what); failure != nil {
		return failure // the body is not read: it is the server's text
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return a.requestFailure(err)
	}
	if len(body) > maxBody {
		return &Failure{Reason: ReasonNotKubernetes, Message: "the answer is too large"}
	}
	if json.Unmarshal(body, into) != nil { // its text quotes the body
		return &Failure{Reason: ReasonNotKubernetes, Message: "the answer is not JSON as Kubernetes sends it"}
	}
	return nil
}
