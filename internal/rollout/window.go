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
	if strings.HasPrefix(in.Schedule, "@every") {
		return window{}, fmt.Errorf("schedule: %q says how often, and not when; write five fields, as in a CronJob", in.Schedule)
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

// open returns whether a window is open at a time, and otherwise when the next one opens; zero if none does any more. Without
// windows, it is always open. It looks at one opening of each window, however many there are: each author of a set says
// how often one opens, and for how long.
func open(windows []window, now time.Time) (isOpen bool, opens time.Time) {
	for _, w := range windows {
		// The first opening that still counts, if there is any, comes after this.
		opened := w.opens.Next(now.Add(-w.duration).In(w.zone))
		switch {
		case opened.IsZero():
		case !opened.After(now):
			return true, time.Time{}
		case opens.IsZero() || opened.Before(opens):
			opens = opened.UTC()
		}
	}
	return len(windows) == 0, opens
}

// closes returns when the last of the windows that are open at a time closes. It looks for the last opening by halves, since
// there may be any number of them.
func closes(windows []window, now time.Time) time.Time {
	var out time.Time
	for _, w := range windows {
		before := func(t time.Time) (opened time.Time, is bool) {
			opened = w.opens.Next(t.In(w.zone))
			return opened, !opened.IsZero() && !opened.After(now)
		}
		from, to := now.Add(-w.duration), now
		opened, isOpen := before(from)
		if !isOpen {
			continue
		}
		for to.Sub(from) > time.Second {
			half := from.Add(to.Sub(from) / 2)
			if later, is := before(half); is {
				from, opened = half, later
			} else {
				to = half
			}
		}
		if end := opened.Add(w.duration); end.After(out) {
			out = end.UTC()
		}
	}
	return out
}
