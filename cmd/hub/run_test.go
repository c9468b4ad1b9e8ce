// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestLogger(t *testing.T) {
	log := func(args ...string) string {
		var out bytes.Buffer
		l := read(t, args...).logger(&out).WithValues("cluster", types.NamespacedName{Namespace: "tenants", Name: "one"})
		l.V(1).Info("detail")
		l.Info("news")
		l.Error(nil, "trouble")
		return out.String()
	}
	entry := map[string]any{}
	lines := strings.Split(strings.TrimSpace(log()), "\n")
	if err := json.Unmarshal([]byte(lines[0]), &entry); err != nil || len(lines) != 2 || entry["msg"] != "news" || entry["cluster"] != "tenants/one" {
		t.Errorf("got %q (%v)", lines, err)
	}
	if got := log("--log-level=debug"); !strings.Contains(got, `"detail"`) {
		t.Errorf("debug has no detail: %s", got)
	}
	if got := log("--log-level=error"); strings.Contains(got, "news") || !strings.Contains(got, "trouble") {
		t.Errorf("error has news, or no trouble: %s", got)
	}
	if got := log("--log-encoding=console"); !strings.Contains(got, "msg=news cluster=tenants/one") {
		t.Errorf("the console shows %s", got)
	}
}
