// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - {level: None, verbs: [get, list, watch]}
  - {level: Metadata}
`

// audit returns the arguments that have the API server log every mutating request.
func (c *Cluster) audit() ([]string, error) {
	policy := filepath.Join(c.dir, "audit-policy.yaml")
	c.auditLog = filepath.Join(c.dir, "audit.log")
	return []string{
		"--audit-policy-file=" + policy, "--audit-log-path=" + c.auditLog,
		"--audit-log-mode=blocking", // in the log before the request has been answered
		"--audit-log-maxsize=1000",
	}, os.WriteFile(policy, []byte(auditPolicy), 0o600)
}

// Writes returns the mutating requests of a user agent since a time, but for leases and events, which say nothing of state.
func (c *Cluster) Writes(userAgent string, since time.Time) ([]auditv1.Event, error) {
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
		if e.UserAgent != userAgent || e.ObjectRef == nil || e.RequestReceivedTimestamp.Time.Before(since) {
			continue
		}
		if slices.Contains([]string{"leases", "events"}, e.ObjectRef.Resource) {
			continue
		}
		out = append(out, e)
	}
	return out, lines.Err()
}
