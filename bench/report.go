// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Parameters are what a run is asked for.
type Parameters struct {
	Clusters int     `json:"clusters"`
	Addons   int     `json:"addons"`
	Dead     float64 `json:"dead"`
	Flux     bool    `json:"flux"`
	// Rollout measures rollouts, and nothing else; Sets is how many of them at the same time.
	Rollout bool `json:"rollout,omitempty"`
	Sets    int  `json:"sets,omitempty"`
	// ProbeInterval is the hub's --probe-interval.
	ProbeInterval metav1.Duration `json:"probe_interval"`
}

// Result is what a run measured. A field's tags say what it is, and what is to be reached.
type Result struct {
	Parameters
	// Commit and Date say of which hub, and when, if the run is recorded.
	Commit string `json:"commit,omitempty"`
	Date   string `json:"date,omitempty"`

	CPUs                    int     `json:"cpus"`
	Objects                 int     `json:"flux_objects"`
	RawPerSecond            float64 `json:"raw_per_s" what:"Flux objects a second of a bare client" shown:"true"`
	FanoutPerSecond         float64 `json:"fanout_per_s" what:"of the hub" shown:"true"`
	FanoutRatio             float64 `json:"fanout_ratio" what:"the hub's over the bare client's" atLeast:"0.6 at 5 add-ons, 0.65 at 10"`
	WritesRatio             float64 `json:"writes_ratio" what:"the same ratio of all writes" atLeast:"0.8"`
	ReplayPerSecond         float64 `json:"replay_per_s,omitempty" what:"Flux objects of a bare client that sends as many requests of each kind as the hub"`
	ReplayRatio             float64 `json:"replay_ratio,omitempty" what:"the hub's over that: what is missing is the hub's own"`
	FanoutAPI               float64 `json:"fanout_api_cpu,omitempty" what:"the API server's part of the machine's processors meanwhile"`
	FanoutHub               float64 `json:"fanout_hub_cpu,omitempty" what:"the hub's"`
	NewClusterP50           float64 `json:"new_cluster_ms_p50" what:"label to last Flux object, one cluster at a time" shown:"true"`
	NewClusterP99           float64 `json:"new_cluster_ms_p99" what:"the same" atMost:"1000"`
	NewCluster10P50         float64 `json:"new_cluster_10ps_ms_p50" what:"with ten clusters a second"`
	NewCluster10P99         float64 `json:"new_cluster_10ps_ms_p99" what:"the same, with ten clusters a second" atMost:"1000"`
	ReplayCluster10P50      float64 `json:"replay_10ps_ms_p50,omitempty" what:"of a bare client that sends as many requests of each kind for them at the same pace"`
	ReplayCluster10P99      float64 `json:"replay_10ps_ms_p99,omitempty" what:"the same"`
	RawChangesPerSecond     float64 `json:"raw_changes_per_s" what:"objects a bare client changes in a second"`
	ChangeWritesRatio       float64 `json:"change_writes_ratio" what:"as writes_ratio, for one add-on changed everywhere" atLeast:"0.8"`
	ChangeSeconds           float64 `json:"change_s" what:"how long that takes" shown:"true"`
	WritesPerChangedCluster float64 `json:"writes_per_changed_cluster" what:"without the set's own" atMost:"3"`
	SetWrites               float64 `json:"set_writes" what:"the set's own: its revision, and its status about once a second"`
	IdleWrites              float64 `json:"idle_writes" what:"while Flux writes 20 statuses a second (-noise)" atMost:"0"`
	IdleCPU                 float64 `json:"idle_cpu_ms_per_event" what:"what an event of it costs the hub"`
	ProbeCPU                float64 `json:"probe_cpu_ms" what:"what a probe costs the hub"`
	RestartSeconds          float64 `json:"restart_s" what:"until a restarted hub has looked at everything" atMost:"20"`
	RestartWrites           float64 `json:"restart_writes" what:"meanwhile" atMost:"0"`
	RestartCPU              float64 `json:"restart_cpu_ms_per_object,omitempty" what:"processor time of the hub for that, for each Flux object"`
	RestartReady            float64 `json:"restart_ready_s,omitempty" what:"from the start of that hub until it says that it is ready: it has read what it watches"`
	RestartFirst            float64 `json:"restart_first_s,omitempty" what:"from its start to the last object of a cluster labelled once ready" atMost:"10"`
	RestartPeak             float64 `json:"restart_peak_ratio,omitempty" what:"most memory of a restart over that before" atMost:"1.3"`
	TakeOverSeconds         float64 `json:"take_over_s,omitempty" what:"from another replica's lease to the last object of a cluster labelled before" atMost:"5"`
	ResidentMiB             float64 `json:"rss_mib" what:"memory of the hub" shown:"true"`
	KiBPerObject            float64 `json:"kib_per_object" what:"live heap for each further Flux object" atMost:"6"`
	RSSKiBPerObject         float64 `json:"rss_kib_per_object" what:"the same of resident memory"`
	HealthyDelayRatio       float64 `json:"healthy_delay_ratio" what:"new_cluster_ms_p50 with dead clusters over without" atMost:"1.1"`
	LeaveSeconds            float64 `json:"leave_s,omitempty" what:"until a fifth of the fleet, unregistered at once, is gone"`
	LeaveRequests           float64 `json:"leave_requests,omitempty" what:"requests for each cluster of it: the same in every fleet"`
	LeaveLists              float64 `json:"leave_lists,omitempty" what:"lists for each of them, of anything but registrations"`
	LeaveCPU                float64 `json:"leave_cpu_ms,omitempty" what:"what each costs the hub"`
	StatusWrites            float64 `json:"status_writes_per_delivery" what:"until all is Ready" atMost:"3"`
}

// wanted returns what is to be reached for a field, and whether it was.
func wanted(tag reflect.StructTag, value float64, addons int) (text string, met bool) {
	bound := 0.0
	if most, ok := tag.Lookup("atMost"); ok {
		_, _ = fmt.Sscan(most, &bound)
		return "at most " + most, value <= bound
	}
	least, ok := tag.Lookup("atLeast")
	if !ok {
		return "", true
	}
	_, _ = fmt.Sscan(least, &bound)
	if strings.Contains(least, "at 10") && addons >= 10 {
		bound = 0.65
	}
	return fmt.Sprintf("at least %g", bound), value >= bound
}

// Write prints a table for people, and one line of JSON.
func (r *Result) Write(out io.Writer) error { return write(out, r, r.Addons) }

// line prints a result as one line of JSON.
func (r *Result) line(out io.Writer) error { return json.NewEncoder(out).Encode(r) }

// write prints the fields of a result that say what they are, and the result as one line of JSON.
func write(out io.Writer, result any, addons int) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "FIELD\tVALUE\tTO REACH\tMET\tWHAT\n")
	v := reflect.ValueOf(result).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		what, ok := f.Tag.Lookup("what")
		if !ok {
			continue
		}
		value := v.Field(i).Float()
		reach, met := wanted(f.Tag, value, addons)
		mark := ""
		if reach != "" {
			mark = map[bool]string{true: "yes", false: "NO"}[met]
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		_, _ = fmt.Fprintf(w, "%s\t%.4g\t%s\t%s\t%s\n", name, value, reach, mark, what)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}
