// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// A watch of the hub is logged when it begins, because it may never end.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
  - {level: Metadata, users: ["` + HubUser + `", "` + SecondHubUser + `"], omitStages: [RequestReceived]}
  - {level: None, verbs: [get, list, watch]}
  - {level: Metadata, omitStages: [RequestReceived, ResponseStarted]}
`

// audit returns the arguments that have the API server log every mutating request, and every request of the hub.
func (c *Cluster) audit() ([]string, error) {
	policy := filepath.Join(c.dir, "audit-policy.yaml")
	c.auditLog = filepath.Join(c.dir, "audit.log")
	return []string{
		"--audit-policy-file=" + policy, "--audit-log-path=" + c.auditLog,
		"--audit-log-mode=blocking", // in the log before the request has been answered
		"--audit-log-maxsize=1000",
	}, os.WriteFile(policy, []byte(auditPolicy), 0o600)
}

// Writes returns the mutating requests of a user agent since a time. It leaves out leases and events, which hold no
// state.
func (c *Cluster) Writes(userAgent string, since time.Time) ([]auditv1.Event, error) {
	return c.requests(func(e *auditv1.Event) bool {
		return e.UserAgent == userAgent && !e.RequestReceivedTimestamp.Time.Before(since) &&
			!slices.Contains([]string{"get", "list", "watch"}, e.Verb) && !slices.Contains([]string{"leases", "events"}, e.ObjectRef.Resource)
	})
}

// HubRequests returns every request for an object that the hub made.
func (c *Cluster) HubRequests() ([]auditv1.Event, error) { return c.RequestsOf(HubUser) }

// RequestsOf returns every request for an object that a user made.
func (c *Cluster) RequestsOf(user string) ([]auditv1.Event, error) {
	return c.requests(func(e *auditv1.Event) bool { return e.User.Username == user })
}

// DeniedByRBAC returns whether a request was denied for lack of rights, either at once, or because it would have
// created the object that it was to change. A rejection by a namespace that is being deleted does not count.
func DeniedByRBAC(e *auditv1.Event) bool {
	return e.Annotations["authorization.k8s.io/decision"] == "forbid" ||
		e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusForbidden &&
			strings.Contains(e.ResponseStatus.Message, "cannot create resource")
}

// requests returns the requests for objects that are wanted.
func (c *Cluster) requests(wanted func(*auditv1.Event) bool) ([]auditv1.Event, error) {
	f, err := os.Open(c.auditLog)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer func() { _ = f.Close() }()
	var out []auditv1.Event
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the line that is being written just now
		}
		if e.ObjectRef != nil && wanted(&e) {
			out = append(out, e)
		}
	}
	return out, lines.Err()
}
