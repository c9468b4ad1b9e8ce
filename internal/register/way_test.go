// SPDX-License-Identifier: Apache-2.0

package register

import (
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/hubscheme"
	"github.com/chandler-hub/chandler/internal/live"
)

// TestWayByTheHubsFlags: what the hub's flags allow is no warning, what they refuse is one, and of a hub that has published none the
// warning says so.
func TestWayByTheHubsFlags(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	cluster := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}}
	flags := func(allowed string) *corev1.ConfigMap {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "chandler-system", Name: hubconfig.ConfigMapName}, Data: (&hubconfig.Config{}).Published()}
		if _, ok := m.Data["allow-target-cidrs"]; !ok {
			t.Fatal("the hub does not publish allow-target-cidrs")
		}
		m.Data["allow-target-cidrs"] = allowed
		return m
	}
	for name, tc := range map[string]struct {
		published *corev1.ConfigMap
		want      string
	}{
		"Allowed": {flags("127.0.0.0/8"), ""},
		"Refused": {flags(""), "the hub refuses this, by the flags that it was started with: "},
		"Unknown": {nil, "the hub refuses this unless it was started with a flag that allows it (there is no ConfigMap chandler-system/chandler-hub "},
	} {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder().WithScheme(hubscheme.New())
			if tc.published != nil {
				b.WithObjects(tc.published)
			}
			r := &Registrar{Hub: live.Reader{Client: b.Build()}, HubNamespace: "chandler-system", Cluster: cluster}
			w := &Work{}
			if err := r.way(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(w.Plan.Warnings, "\n")
			if (got == "") != (tc.want == "") || !strings.HasPrefix(got, tc.want) {
				t.Errorf("it warns %q, want %q", got, tc.want)
			}
		})
	}
}
