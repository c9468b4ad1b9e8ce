// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// hubIn is the lock of a hub in a namespace. Its API server gives every Lease the same creation time, none.
func hubIn(t *testing.T, leases *fake.Clientset, namespace string) *lock {
	t.Helper()
	me := fake.NewClientset()
	me.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{
			UserInfo: authenticationv1.UserInfo{Username: "system:serviceaccount:" + namespace + ":chandler", UID: "1"}}}, nil
	})
	me.PrependReactor("create", "subjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}, nil
	})
	s := &seniority{leases: leases.CoordinationV1(), reviews: me.AuthenticationV1(), rights: me.AuthorizationV1(), namespace: namespace,
		none: map[string]time.Time{}, log: logr.Discard()}
	l, err := s.lock()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// late is a client whose Lease is made after something else.
type late struct {
	coordinationv1client.LeaseInterface
	before func()
}

func (l late) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	l.before()
	return l.LeaseInterface.Create(ctx, lease, o)
}

type lateLeases struct {
	coordinationv1client.LeasesGetter
	before func()
}

func (l lateLeases) Leases(namespace string) coordinationv1client.LeaseInterface {
	return late{l.LeasesGetter.Leases(namespace), l.before}
}

// TestTwoAtOnce: of two hubs that have looked before there was a Lease, and whose Leases are of the same second, one leads.
func TestTwoAtOnce(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	leases := fake.NewClientset()
	a, b := hubIn(t, leases, "a"), hubIn(t, leases, "b")
	record := resourcelock.LeaderElectionRecord{HolderIdentity: "somebody", LeaseDurationSeconds: 15}
	second := make(chan error, 1)
	a.seniority.leases = lateLeases{leases.CoordinationV1(), func() {
		go func() { second <- b.Create(ctx, record) }()
		for ctx.Err() == nil {
			if _, err := leases.CoordinationV1().Leases("b").Get(ctx, "hub.chandler.dev", metav1.GetOptions{}); err == nil {
				break
			}
		}
		select { // b looks, if it does not wait
		case err := <-second:
			second <- err
		case <-time.After(300 * time.Millisecond):
		}
	}}
	if err := a.Create(ctx, record); err != nil {
		t.Errorf("the first by name does not lead: %v", err)
	}
	if err := <-second; err == nil || !strings.Contains(err.Error(), "the hub in namespace b does nothing") {
		t.Errorf("the second leads too: %v", err)
	}
	lease, err := leases.CoordinationV1().Leases("a").Get(ctx, "hub.chandler.dev", metav1.GetOptions{})
	if err != nil || len(lease.OwnerReferences) != 1 || lease.OwnerReferences[0].Name != "chandler" {
		t.Errorf("the Lease has owners %v: %v", lease.OwnerReferences, err)
	}
}

// TestManyForged: whoever has many namespaces, each with an old Lease, has the hub ask about each once in a while, and not whenever it looks.
func TestManyForged(t *testing.T) {
	leases, asked := fake.NewClientset(), 0
	l := hubIn(t, leases, "own")
	rights := fake.NewClientset()
	rights.PrependReactor("create", "subjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		asked++
		return true, &authorizationv1.SubjectAccessReview{}, nil
	})
	l.seniority.rights = rights.AuthorizationV1()
	now := metav1.NowMicro()
	for i := range 40 {
		forged := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("forged-%d", i), Name: "hub.chandler.dev",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: "default", UID: "1"}}}, Spec: coordinationv1.LeaseSpec{RenewTime: &now}}
		if err := leases.Tracker().Add(forged); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if refused, err := l.seniority.look(t.Context()); refused != "" || err != nil {
			t.Errorf("%q, %v", refused, err)
		}
	}
	if asked != 40 {
		t.Errorf("it has asked %d times about 40", asked)
	}
}
