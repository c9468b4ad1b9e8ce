// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the image has no time zones

	"github.com/robfig/cron/v3"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
)

// window is a checked window.
type window struct {
	opens    cron.Schedule
	duration time.Duration
	zone     *time.Location
}

// newWindow checks a window. Its error begins with the field. The schedule is read as in a CronJob.
func newWindow(in hubv1.RolloutWindow) (window, error) {
	zone, err := time.LoadLocation(in.TimeZone) // "" is UTC
	if err != nil || strings.EqualFold(in.TimeZone, "Local") {
		return window{}, fmt.Errorf("timeZone: %q is not known; write a name of the IANA database, such as Europe/Berlin", in.TimeZone)
	}
	if strings.Contains(in.Schedule, "TZ") {
		return window{}, fmt.Errorf("schedule: %q names a time zone; write it as timeZone", in.Schedule)
	}
	opens, err := cron.ParseStandard(in.Schedule)
	if err != nil {
		return window{}, fmt.Errorf("schedule: %q: %w", in.Schedule, err)
	}
	if opens.Next(time.Unix(0, 0)).IsZero() {
		return window{}, fmt.Errorf("schedule: %q never comes", in.Schedule)
	}
	if in.Duration.Duration <= 0 {
		return window{}, fmt.Errorf("duration: %s is not longer than nothing", in.Duration.Duration)
	}
	return window{opens: opens, duration: in.Duration.Duration, zone: zone}, nil
}

// open returns whether a window is open at a time, and when that changes next. Without windows, it is always open, and the
// time is zero.
func open(windows []window, now time.Time) (isOpen bool, until time.Time) {
	var next time.Time
	for _, w := range windows {
		// The last opening that still counts, if there is any, comes after this.
		opened := w.opens.Next(now.Add(-w.duration).In(w.zone))
		if opened.IsZero() {
			continue
		}
		if !opened.After(now) {
			isOpen = true
			for again := opened; !again.IsZero() && !again.After(now); again = w.opens.Next(again) {
				opened = again
			}
			if closes := opened.Add(w.duration); closes.After(until) {
				until = closes
			}
		} else if next.IsZero() || opened.Before(next) {
			next = opened
		}
	}
	switch {
	case len(windows) == 0:
		return true, time.Time{}
	case isOpen:
		return true, until.UTC()
	}
	return false, next.UTC()
}
