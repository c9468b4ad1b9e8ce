// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/chandler-hub/chandler/controllers/recorder"
)

// The API server rejects an event whose note is too long, and nobody would hear of it.
func TestNotesFit(t *testing.T) {
	for name, note := range map[string]string{
		"short": "it is 100% Ready", "as long as may be": strings.Repeat("a", 1024), "too long": strings.Repeat("a", 1025),
		"a condition's": strings.Repeat("a", 2048), "of two bytes each": strings.Repeat("é", 1000), "of four": strings.Repeat("🚢", 2000),
		"not UTF-8": strings.Repeat("a\xff", 600),
	} {
		fake := events.NewFakeRecorder(1)
		recorder.Bounded(fake).Eventf(&corev1.Secret{}, nil, corev1.EventTypeWarning, "Reason", "Act", "%s", note)
		sent := strings.TrimPrefix(<-fake.Events, "Warning Reason ")
		if len(sent) > recorder.MaxNote {
			t.Errorf("%s: %d bytes are sent", name, len(sent))
		}
		if len(note) <= recorder.MaxNote && sent != note {
			t.Errorf("%s: it was changed: %q", name, sent)
		}
		if len(note) > recorder.MaxNote && (!strings.Contains(sent, "more characters)") || len(sent) < recorder.MaxNote-utf8.UTFMax) {
			t.Errorf("%s: %d bytes are sent, and they end with %q", name, len(sent), sent[max(0, len(sent)-40):])
		}
	}
}
