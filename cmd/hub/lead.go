// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/onehub"
)

const (
	// lookAgain is how often a hub looks whether another one was here first.
	lookAgain = 10 * time.Second
	// renewDeadline is controller-runtime's: a leader that has not renewed its Lease for so long gives up.
	renewDeadline = 10 * time.Second
	// remembered is for how long it counts that an account may not do a hub's work. Whoever has many namespaces may have as many Leases.
	remembered = 10 * time.Minute
	// manyAccounts are no fleet's: somebody writes other owners into his Leases again and again.
	manyAccounts = 1000
)

// seniority lets a hub work only if no hub of another namespace was on this management cluster before it (docs/adr/0030).
type seniority struct {
	leases    coordinationv1client.LeasesGetter
	reviews   authenticationv1client.SelfSubjectReviewsGetter
	rights    authorizationv1client.SubjectAccessReviewsGetter
	namespace string
	log       logr.Logger
	// led is told when this process has the Lease.
	led *tenure.Tenure

	mu      sync.Mutex
	refused string // why the hub does nothing; "" if it may work
	blind   bool   // it has been said that the hub may not look
	// none are accounts that may not do a hub's work, and when that was said.
	none map[string]time.Time
}

func newSeniority(config *rest.Config, namespace string, led *tenure.Tenure) (*seniority, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = renewDeadline / 2
	leases, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for Leases: %w", err)
	}
	reviews, err := authenticationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for reviews: %w", err)
	}
	rights, err := authorizationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for reviews of rights: %w", err)
	}
	return &seniority{leases: leases, reviews: reviews, rights: rights, namespace: namespace, none: map[string]time.Time{}, led: led,
		log: ctrl.Log.WithName("seniority")}, nil
}

// first returns the Lease of a hub that was here before this one.
func (s *seniority) first(ctx context.Context) (*coordinationv1.Lease, error) {
	list, err := s.leases.Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, hubconfig.LeaseName).String()})
	if err != nil {
		return nil, err
	}
	return onehub.First(s.namespace, list.Items, time.Now(), func(r *authorizationv1.SubjectAccessReview) (bool, error) {
		return s.may(ctx, r)
	})
}

// may asks the API server about the rights of an account.
func (s *seniority) may(ctx context.Context, r *authorizationv1.SubjectAccessReview) (bool, error) {
	s.mu.Lock()
	said, known := s.none[r.Spec.User]
	s.mu.Unlock()
	if known && time.Since(said) < remembered {
		return false, nil
	}
	answer, err := s.rights.SubjectAccessReviews().Create(ctx, r, metav1.CreateOptions{})
	if err != nil || answer.Status.Allowed {
		return err == nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.none) >= manyAccounts {
		clear(s.none)
	}
	s.none[r.Spec.User] = time.Now()
	return false, nil
}

// look returns why this hub must do nothing; "" if it may work. A hub that may not look works: it has the rights of an older version, and
// nothing else says that there are two.
func (s *seniority) look(ctx context.Context) (string, error) {
	first, err := s.first(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if apierrors.IsForbidden(err) {
		if !s.blind {
			s.log.Error(err, "this hub may not look for other hubs: apply config/rbac of its version")
		}
		s.blind, s.refused = true, ""
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for other hubs on this management cluster: %w", err)
	}
	refused := ""
	if first != nil {
		refused = onehub.Refused(s.namespace, first)
	}
	if refused != s.refused {
		if refused != "" {
			s.log.Error(errors.New(refused), "another hub was here first")
		} else {
			s.log.Info("the other hub is gone")
		}
	}
	s.refused = refused
	return refused, nil
}

// wait returns when this hub may work.
func (s *seniority) wait(ctx context.Context) error {
	for {
		refused, err := s.look(ctx)
		if err != nil || refused == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookAgain):
		}
	}
}

// why returns why this hub does nothing, as far as it has looked.
func (s *seniority) why() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Ready is a check of /readyz. A replica that was refused looks again: it may be that another one leads meanwhile.
func (s *seniority) Ready(r *http.Request) error {
	if s.why() == "" {
		return nil
	}
	refused, err := s.look(r.Context())
	if refused != "" {
		err = errors.New(refused)
	}
	return err
}

// own makes the hub's ServiceAccount the owner of its Lease, by which others know it for a hub's, and which takes the Lease along when the
// hub is uninstalled, by whatever tool.
func (s *seniority) own(ctx context.Context) error {
	owner := s.owner(ctx)
	if len(owner) == 0 {
		return nil
	}
	lease, err := s.leases.Leases(s.namespace).Get(ctx, hubconfig.LeaseName, metav1.GetOptions{})
	if err != nil || len(lease.OwnerReferences) == 1 && lease.OwnerReferences[0].UID == owner[0].UID {
		return err
	}
	lease.OwnerReferences = owner
	_, err = s.leases.Leases(s.namespace).Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// owner returns the ServiceAccount that the hub runs as; none if it runs as somebody else.
func (s *seniority) owner(ctx context.Context) []metav1.OwnerReference {
	me, err := s.reviews.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return nil // Kubernetes before 1.28
	}
	namespace, name, err := serviceaccount.SplitUsername(me.Status.UserInfo.Username)
	if err != nil || namespace != s.namespace || me.Status.UserInfo.UID == "" {
		return nil
	}
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceAccount", Name: name, UID: types.UID(me.Status.UserInfo.UID)}}
}

// lock is the Lease of replicas that agree who leads, of a hub that leads only if no other was here first.
type lock struct {
	*resourcelock.LeaseLock
	seniority *seniority

	// The elector calls the lock from one goroutine.
	leads, owned bool
	looked       time.Time
}

func (s *seniority) lock() (*lock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("who holds the Lease: %w", err)
	}
	return &lock{seniority: s, LeaseLock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: s.namespace, Name: hubconfig.LeaseName},
		Client:     s.leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}}, nil
}

type recordWriter func(context.Context, resourcelock.LeaderElectionRecord) error

// Create makes the Lease, with which this hub leads.
func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, r, l.makeLease)
}

// sameSecond is longer than what the creation times of two objects do not tell apart.
const sameSecond = 1100 * time.Millisecond

// makeLease makes the Lease, with its owner, and waits until any other that the API server gives the same time is there too.
func (l *lock) makeLease(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	lease := &coordinationv1.Lease{ObjectMeta: l.LeaseMeta, Spec: resourcelock.LeaderElectionRecordToLeaseSpec(&r)}
	lease.OwnerReferences = l.seniority.owner(ctx)
	if _, err := l.seniority.leases.Leases(l.seniority.namespace).Create(ctx, lease, metav1.CreateOptions{}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(sameSecond):
	}
	_, _, err := l.Get(ctx) // the lock remembers what it writes to
	return err
}

// Update takes the Lease over, renews it or gives it back.
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity == "" {
		l.leads = false
		return l.LeaseLock.Update(ctx, r)
	}
	return l.write(ctx, r, l.LeaseLock.Update)
}

func (l *lock) write(ctx context.Context, r resourcelock.LeaderElectionRecord, write recordWriter) error {
	if l.leads {
		if err := l.still(ctx); err != nil {
			return err
		}
		at := time.Now()
		if err := write(ctx, r); err != nil {
			return err
		}
		l.seniority.led.Renew(at)
		return nil
	}
	if err := l.seniority.wait(ctx); err != nil {
		return err
	}
	now := metav1.Now() // it may have waited for long
	r.AcquireTime, r.RenewTime = now, now
	if err := write(ctx, r); err != nil {
		return err
	}
	l.own(ctx)
	// Another hub may have come at the same moment: the older Lease leads.
	refused, err := l.seniority.look(ctx)
	if err == nil && refused != "" {
		err = errors.Join(errors.New(refused), l.LeaseLock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: r.LeaderTransitions, LeaseDurationSeconds: 1, AcquireTime: now, RenewTime: now}))
	}
	if err != nil {
		return err
	}
	l.leads, l.looked = true, now.Time
	l.seniority.led.Renew(now.Time)
	return nil
}

// own sees to the owner of the Lease.
func (l *lock) own(ctx context.Context) {
	err := l.seniority.own(ctx)
	if l.owned = err == nil; err != nil {
		l.seniority.log.Error(err, "other hubs do not know this one, and its Lease stays when it is uninstalled")
	}
	_, _, _ = l.Get(ctx) // the version that has an owner now
}

// still returns why a hub that leads must stop: the one that was here before it has come back.
func (l *lock) still(ctx context.Context) error {
	if time.Since(l.looked) < lookAgain && l.seniority.why() == "" {
		return nil
	}
	if !l.owned {
		l.own(ctx)
	}
	within, cancel := context.WithTimeout(ctx, renewDeadline/2) // the rest is for renewing the Lease
	defer cancel()
	refused, err := l.seniority.look(within)
	if err != nil {
		return nil // who cannot be asked now has not come back
	}
	l.looked = time.Now()
	if refused != "" {
		return errors.New(refused)
	}
	return nil
}
