// SPDX-License-Identifier: Apache-2.0

package rolloutview

import (
	"errors"
	"fmt"
	"time"

	hubv1 "github.com/chandler-hub/chandler/api/v1alpha1"
	"github.com/chandler-hub/chandler/internal/excerpt"
	"github.com/chandler-hub/chandler/internal/status"
)

// PauseCluster sets spec.pause of a registration. until is a time or a duration, or empty.
func PauseCluster(reg *hubv1.ClusterRegistration, until, reason string, now time.Time) (*Order, error) {
	says := func(format string, args ...any) string {
		return excerpt.Line(fmt.Sprintf("ClusterRegistration %s/%s: ", reg.Namespace, reg.Name) + fmt.Sprintf(format, args...))
	}
	if status.Goes(reg) {
		return nil, errors.New(says("it is being unregistered"))
	}
	pause := spec(reason)
	text := fmt.Sprintf("until you resume it: chandler resume cluster %s -n %s", reg.Name, reg.Namespace)
	if until != "" {
		end, err := EndOf(until, now)
		if err != nil {
			return nil, errors.New(says("%s", err))
		}
		at := end.UTC().Format(time.RFC3339)
		pause["until"], text = at, "until "+at
	}
	o := &Order{
		Patch: map[string]any{"spec": map[string]any{"pause": pause}},
		Says:  says("paused; nothing is made, changed or removed there %s. What runs stays", text),
	}
	if p := reg.Spec.Pause; p != nil {
		was := ""
		if p.Until != nil {
			was = " until " + p.Until.UTC().Format(time.RFC3339)
		}
		if p.Reason != "" {
			was += ": " + p.Reason
		}
		o.Notes = append(o.Notes, excerpt.Line("it was paused already"+was))
	}
	return o, nil
}

// ResumeCluster removes spec.pause of a registration.
func ResumeCluster(reg *hubv1.ClusterRegistration, _ time.Time) (*Order, error) {
	name := fmt.Sprintf("ClusterRegistration %s/%s: ", reg.Namespace, reg.Name)
	if reg.Spec.Pause == nil {
		return nil, errors.New(name + "it is not paused")
	}
	return &Order{
		Patch: map[string]any{"spec": map[string]any{"pause": nil}},
		Says:  name + "the pause is over; what changed meanwhile is delivered now. What a user suspended by hand stays suspended",
	}, nil
}
