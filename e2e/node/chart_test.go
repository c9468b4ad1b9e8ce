// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// askForChart asks the hub's Service whether it is a registry, as Flux does first, over and over, and returns what went wrong. Each request is a
// connection of its own, as Flux's are.
func askForChart(ctx context.Context) (failures []string) {
	c := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for n := 1; ctx.Err() == nil; n++ {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://chandler."+namespace+".svc.cluster.local/v2/", nil)
		if err != nil {
			return []string{err.Error()}
		}
		resp, err := c.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				err = fmt.Errorf("it answers %s", resp.Status)
			}
		}
		if err != nil && ctx.Err() == nil {
			failures = append(failures, fmt.Sprintf("request %d at %s: %v", n, time.Now().Format("15:04:05.000"), err))
		}
		time.Sleep(50 * time.Millisecond)
	}
	return failures
}
