// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/chandler-hub/chandler/internal/render/flux"
)

// TestProxyCredentialOfAnOlderHub: a Team's kubeconfig copy that an older hub wrote has the credential of a proxy. It is taken out when the token would be
// renewed. The copy and all else in it stay, and one without a credential is not written.
func TestProxyCredentialOfAnOlderHub(t *testing.T) {
	const open, shut = "http://192.0.2.9:3128", "http://platform:hunter2@192.0.2.9:3128"
	for name, was := range map[string]string{"Written": shut, "TakenOut": open} {
		t.Run(name, func(t *testing.T) {
			m := newFixture(t)
			behind := func(proxy string) {
				m.admin = strings.Replace(adminConfig, "insecure-skip-tls-verify", `proxy-url: "`+proxy+`", insecure-skip-tls-verify`, 1)
				config := parse(t, []byte(m.admin))
				m.reg.Status.Credential.Fingerprint, m.reg.Status.Credential.TargetFingerprint = config.Fingerprint(), config.TargetFingerprint()
			}
			behind(open)
			older := m.written(t, 9*time.Hour)
			want := older.Data[flux.KubeconfigKey]
			older.Data[flux.KubeconfigKey] = bytes.ReplaceAll(want, []byte(open), []byte(was))
			older.ResourceVersion, older.UID = "7", "older"
			m.objects = append(m.objects, older)
			m.asked = nil
			behind(shut)
			copied, again, _ := m.reconcile(t)
			if copied == nil || !bytes.Equal(copied.Data[flux.KubeconfigKey], want) || !bytes.Contains(want, []byte("the-teams")) {
				t.Fatalf("the copy is %+v", copied)
			}
			if copied.UID != older.UID || len(copied.Finalizers) == 0 || len(m.asked) > 0 || again != firstRetry {
				t.Errorf("the copy is %+v; asked %v, again in %s", copied.ObjectMeta, m.asked, again)
			}
			if wrote := copied.ResourceVersion != "7"; wrote != (was == shut) {
				t.Errorf("it is written: %t", wrote)
			}
		})
	}
}
