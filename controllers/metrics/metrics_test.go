// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/controllers/metrics"
)

const expiry = "chandler_registration_credential_expiry_timestamp_seconds"

func registration(namespace, name string, expires *metav1.Time) *hubv1.ClusterRegistration {
	return &hubv1.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Status:     hubv1.ClusterRegistrationStatus{Credential: &hubv1.CredentialStatus{SecretName: "s", Key: "value", ExpirationTime: expires}},
	}
}

func TestCredentialExpiry(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := hubv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	at := metav1.NewTime(time.Unix(1_800_000_000, 0))
	one, never := registration("tenants", "one", &at), registration("tenants", "never", nil)
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(one, never,
		&hubv1.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "new"}}).Build()
	collector := &metrics.Collector{Reader: c}
	const want = `# HELP ` + expiry + ` When the kubeconfig that is in use for a cluster expires, in seconds since 1970. None where nothing says when.
# TYPE ` + expiry + ` gauge
` + expiry + `{name="one",namespace="tenants"} 1.8e+09
`
	if err := testutil.CollectAndCompare(collector, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(collector); err != nil || len(problems) > 0 {
		t.Errorf("%v (%v)", problems, err)
	}
	if err := c.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if n := testutil.CollectAndCount(collector); n != 0 {
		t.Errorf("%d metrics are left of a registration that is gone", n)
	}
}

// notStarted is a cache before the manager has started it.
type notStarted struct{ client.Reader }

func (notStarted) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("the cache is not started")
}

func TestNoCacheYet(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&metrics.Collector{Reader: notStarted{}})
	if got, err := registry.Gather(); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v: what is not known breaks nobody's scrape", got, err)
	}
}
