// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-hub/chandler/internal/eventview"
)

// TestEventTimes: the page and `chandler events` tell one time and one order for the same events, whichever fields they have.
func TestEventTimes(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	series := corev1.Event{Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(ago(time.Hour)), Count: 3}}
	series.Name, series.LastTimestamp = "series", metav1.NewTime(ago(time.Minute))
	late := corev1.Event{EventTime: metav1.NewMicroTime(ago(30 * time.Second))}
	late.Name, late.LastTimestamp = "late", metav1.NewTime(ago(2*time.Hour))
	created := corev1.Event{}
	created.Name, created.CreationTimestamp = "created", metav1.NewTime(ago(10*time.Minute))
	in := []corev1.Event{series, created, late}
	got := Events(in, now)
	eventview.Sort(in)
	for i := range got {
		e := &in[len(in)-1-i]
		if want := eventview.At(e); !got[i].Time.At.Equal(want) || got[i].Count != eventview.Count(e) {
			t.Errorf("%s: the page says %s and %d, the command says %s and %d", e.Name, got[i].Time.At, got[i].Count, want, eventview.Count(e))
		}
	}
}
