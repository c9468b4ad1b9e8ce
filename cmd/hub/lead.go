// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/chandler-hub/chandler/controllers/tenure"
	"github.com/chandler-hub/chandler/internal/hubconfig"
	"github.com/chandler-hub/chandler/internal/pressure"
)

const (
	// leaseDuration is how long another process waits for a leader that is silent, and renewDeadline how long a leader goes on that cannot
	// renew its Lease. They are those of Flux's controllers (fluxcd/pkg/runtime/leaderelection): the ten seconds of controller-runtime are
	// less than an API server may take that has much to do.
	leaseDuration, renewDeadline = 35 * time.Second, 30 * time.Second
)

// lock is the one Lease of the hubs of a management cluster (docs/adr/0030). The replicas of an installation stand in for each other; a
// second installation waits, is not Ready, and says why. The elector calls the lock from one goroutine.
type lock struct {
	leases       coordinationv1client.LeaseInterface
	installation string // the namespace of this hub
	identity     string
	log          logr.Logger
	led          *tenure.Tenure // is told when this process has the Lease

	lease *coordinationv1.Lease // as last read or written
	// waits is why this hub does nothing; nil or "" if it leads or stands in for its own installation.
	waits atomic.Pointer[string]
}

// errNoLease is the error of a write that was not sent.
var errNoLease = errors.New("nothing is written: this hub does not have its Lease, or has not renewed it for so long that another one " +
	"may lead")

// onlyLeading sends a write only while this process has its Lease. A process that stood still, in a virtual machine that was suspended,
// goes on before it knows that another one leads, and would undo what that one has done. Requests that change nothing pass.
func onlyLeading(leads func() bool) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if !pressure.IsWrite(req) || leads() {
				return next.RoundTrip(req)
			}
			if req.Body != nil {
				_ = req.Body.Close()
			}
			return nil, errNoLease
		})
	}
}

func newLock(config *rest.Config, installation string, led *tenure.Tenure) (*lock, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	// Two renewals that take that long, and the pause between them, are shorter than what a leader goes on without one.
	config.Timeout = renewDeadline * 2 / 5
	c, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for Leases: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("who holds the Lease: %w", err)
	}
	return &lock{leases: c.Leases(hubconfig.LeaseNamespace), installation: installation, led: led, log: ctrl.Log.WithName("lease"),
		identity: host + "_" + string(uuid.NewUUID())}, nil
}

// Get implements resourcelock.Interface. The Lease of another installation counts as held until that hub has not written the Lease for an
// hour, even if the hub has released the Lease: the elector waits for the duration in the record, from the last change that it saw.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	lease, err := l.leases.Get(ctx, hubconfig.LeaseName, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	l.lease = lease
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
	raw, err := json.Marshal(record)
	if err != nil {
		return nil, nil, fmt.Errorf("read Lease %s: %w", l.Describe(), err)
	}
	other := lease.Labels[hubconfig.InstallationLabel]
	if other == l.installation {
		other = ""
	}
	l.wait(other)
	if record.HolderIdentity != l.identity {
		l.led.Lose()
	}
	if other != "" {
		record.HolderIdentity, record.LeaseDurationSeconds = "the hub in namespace "+other, int(hubconfig.Silence/time.Second)
	}
	return record, raw, nil
}

// wait notes that another installation has the Lease, or none.
func (l *lock) wait(other string) {
	why := ""
	if other != "" {
		why = fmt.Sprintf("the hub in namespace %s does nothing: another one is installed on this management cluster, in namespace %s, and "+
			"has Lease %s. Two would undo each other's work: uninstall one of them (docs/uninstall.md). If that one is gone: "+
			"kubectl -n %s delete lease %s", l.installation, other, l.Describe(), hubconfig.LeaseNamespace, hubconfig.LeaseName)
	}
	if before := l.waits.Swap(&why); why != "" && (before == nil || *before != why) {
		l.log.Error(errors.New(why), "this hub waits")
	}
}

// Ready is a check of /readyz.
func (l *lock) Ready(*http.Request) error {
	if why := l.waits.Load(); why != nil && *why != "" {
		return errors.New(*why)
	}
	return nil
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	at, lease := time.Now(), l.filled(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: hubconfig.LeaseName}}, r)
	written, err := l.leases.Create(ctx, lease, metav1.CreateOptions{})
	return l.wrote(written, at, err)
}

// Update implements resourcelock.Interface: it takes the Lease over, renews it or gives it back. The API server refuses that if another
// process has written the Lease since this one read it.
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if l.lease == nil {
		return errors.New("the Lease has not been read")
	}
	at, lease := time.Now(), l.filled(l.lease.DeepCopy(), r)
	written, err := l.leases.Update(ctx, lease, metav1.UpdateOptions{})
	return l.wrote(written, at, err)
}

// filled writes the record into a Lease, and the installation of this hub as a label. It returns the Lease.
func (l *lock) filled(lease *coordinationv1.Lease, r resourcelock.LeaderElectionRecord) *coordinationv1.Lease {
	lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&r)
	metav1.SetMetaDataLabel(&lease.ObjectMeta, hubconfig.InstallationLabel, l.installation)
	return lease
}

// wrote notes the API server's answer to a write that began at a time.
func (l *lock) wrote(lease *coordinationv1.Lease, at time.Time, err error) error {
	if err != nil {
		return err
	}
	l.lease = lease
	l.wait("")
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder == l.identity {
		l.led.Renew(at)
	}
	return nil
}

// RecordEvent implements resourcelock.Interface: the Lease and the log say who leads.
func (l *lock) RecordEvent(string) {}

// Identity implements resourcelock.Interface.
func (l *lock) Identity() string { return l.identity }

// Describe implements resourcelock.Interface.
func (l *lock) Describe() string { return hubconfig.LeaseNamespace + "/" + hubconfig.LeaseName }
