// SPDX-License-Identifier: Apache-2.0

// Package recorder sends the events of the controllers, so that the API server takes them.
package recorder

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/chandler-hub/chandler/internal/excerpt"
)

// MaxNote is the longest note of an event in bytes. The API server rejects a longer one (Kubernetes' NoteLengthLimit in
// pkg/apis/core/validation), and what happened would not be told. A condition's message may be twice as long.
const MaxNote = 1024

// Bounded returns a recorder that shortens notes to what the API server takes, and says how much it leaves out.
func Bounded(r events.EventRecorder) events.EventRecorder { return bounded{r} }

type bounded struct{ events.EventRecorder }

// Eventf implements events.EventRecorder.
func (b bounded) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	text := strings.ToValidUTF8(fmt.Sprintf(note, args...), "\uFFFD") // as JSON has it, so that its bytes count
	b.EventRecorder.Eventf(regarding, related, eventtype, reason, action, "%s", within(text, MaxNote))
}

// within returns the beginning of s in at most n bytes.
func within(s string, n int) string {
	out := s
	for characters := n; len(out) > n; characters -= max(1, (len(out)-n)/utf8.UTFMax) {
		out = excerpt.Of(s, characters)
	}
	return out
}
