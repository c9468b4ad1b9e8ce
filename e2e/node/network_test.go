// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandler-hub/chandler/e2e/expect"
	"github.com/chandler-hub/chandler/test/node"
)

// asker is a pod that asks for others.
const asker = `
apiVersion: v1
kind: Pod
metadata: {name: asker, namespace: %s}
spec:
  containers: [{name: hello, image: local.test/hello:1, imagePullPolicy: Never, readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}}]
  terminationGracePeriodSeconds: 0
`

// isolated: the chart's NetworkPolicy keeps everybody but Flux from the hub's charts, and nobody from its metrics. That it lets
// through what the hub needs is what everything else shows, since it holds all the time.
func (in *installation) isolated(t *testing.T) {
	expect.NoError(t, in.Load(t.Context(), node.HelloImage("local.test/hello:1", filepath.Join(node.Dir(), "hello"))))
	charts, metrics := "http://chandler."+namespace+".svc.cluster.local/v2/", "http://chandler-metrics."+namespace+".svc.cluster.local:8080/"
	for _, from := range []string{"flux-system", "default"} {
		expect.Apply(t, in.Client, fmt.Sprintf(asker, from))
		expect.Soon(t, "somebody in "+from+" reaches the hub's metrics", func() error { return in.ask(t.Context(), from, metrics) })
	}
	expect.Soon(t, "Flux reaches the hub's charts", func() error { return in.ask(t.Context(), "flux-system", charts) })
	if err := in.ask(t.Context(), "default", charts); err == nil || !strings.Contains(err.Error(), "Timeout") {
		t.Errorf("somebody else asks for the hub's charts, and the answer is %v", err)
	}
	for _, from := range []string{"flux-system", "default"} {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = from, "asker"
		expect.NoError(t, in.Client.Delete(t.Context(), pod))
	}
}

// ask has the asker of a namespace ask for a URL. Any answer will do, but that there is none.
func (in *installation) ask(ctx context.Context, from, what string) error {
	pod := &corev1.Pod{}
	if err := in.Client.Get(ctx, client.ObjectKey{Namespace: from, Name: "asker"}, pod); err != nil {
		return err
	}
	if pod.Status.PodIP == "" {
		return errors.New("the asker has no address yet")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pod.Status.PodIP+":8080/?from="+url.QueryEscape(what), nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Timeout: 20 * time.Second}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode == http.StatusBadGateway {
		return fmt.Errorf("%s", body)
	}
	return err
}
