// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/identity"
	"github.com/chandler-hub/chandler/internal/ui/uitest"
	"github.com/chandler-hub/chandler/internal/ui/view"
)

// told is the cluster of a company whose story is told.
const told = "payments/dev-eu-central-1-a"

// company serves the fleet of a company. Its hub keeps what the page of one cluster and those of the sets are about.
func company(t *testing.T) *served {
	t.Helper()
	f := uitest.Company()
	var objects []client.Object
	for _, s := range f.Sets {
		objects = append(objects, s.DeepCopy())
		for _, r := range uitest.Revisions(s) {
			objects = append(objects, r)
		}
	}
	for _, reg := range f.Registrations {
		key := client.ObjectKeyFromObject(reg)
		if key.String() != told {
			continue
		}
		objects = append(objects, reg.DeepCopy(), happened("ClusterRegistration", key, 41*time.Hour, "Reachable", "https://10.91.4.12:6443 answers as Kubernetes v1.34.2"))
		objects = append(objects, delivered(f, key)...)
	}
	return serve(t, f, objects...)
}

// delivered is what is delivered to a cluster, with the last event of each delivery.
func delivered(f *view.Fleet, key types.NamespacedName) (out []client.Object) {
	for _, d := range f.Deliveries {
		if d.Spec.RegistrationRef.Key() != key {
			continue
		}
		d = d.DeepCopy()
		d.Labels = map[string]string{hubv1.ClusterLabel: key.Name, hubv1.ClusterKeyLabel: identity.ClusterKey("chandler", key)}
		event := happened("AddonDelivery", client.ObjectKeyFromObject(d), 20*time.Hour, "Delivered", "all add-ons are Ready")
		if at := d.Status.ReadyTime; at != nil {
			event.LastTimestamp = *at
		}
		for i := range d.Status.Addons {
			a := &d.Status.Addons[i]
			release := &helmv2.HelmRelease{}
			release.Namespace, release.Name, release.Labels = d.Namespace, a.Object, d.Labels
			release.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "UpgradeSucceeded", Message: "Helm upgrade succeeded"}}
			if out = append(out, release); a.State == hubv1.AddonFailed {
				release.Status.Conditions[0].Status, release.Status.Conditions[0].Reason, release.Status.Conditions[0].Message = "False", "UpgradeFailed", a.Message
				event.Type, event.Reason, event.Message, event.LastTimestamp, event.Count = "Warning", "AddonsFailed", a.Name+": "+a.Message, *a.Since, 4
			}
		}
		out = append(out, d, event)
	}
	return out
}

func happened(kind string, about types.NamespacedName, ago time.Duration, reason, message string) *corev1.Event {
	e := &corev1.Event{Type: "Normal", Reason: reason, Message: message, LastTimestamp: metav1.NewTime(uitest.Now.Add(-ago))}
	e.Namespace, e.Name = about.Namespace, about.Name
	e.InvolvedObject = corev1.ObjectReference{Kind: kind, Namespace: about.Namespace, Name: about.Name}
	return e
}

// TestServeByHand serves a company for somebody who changes the page: CHANDLER_UI=60s go test ./internal/ui -run ByHand -v
func TestServeByHand(t *testing.T) {
	d, err := time.ParseDuration(os.Getenv("CHANDLER_UI"))
	if err != nil {
		t.Skip("CHANDLER_UI says for how long")
	}
	fmt.Println(company(t).server.URL())
	time.Sleep(d)
}
