// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

const scrape = `
# TYPE clusters gauge
clusters{state="Ready",provider="Kamaji"} 1
clusters{state="Dead",provider="Kamaji"} 0
# TYPE plain gauge
plain 1
# TYPE took_seconds histogram
took_seconds_bucket{outcome="good",le="1"} 1
took_seconds_bucket{outcome="good",le="+Inf"} 1
took_seconds_sum{outcome="good"} 1
took_seconds_count{outcome="good"} 1
`

func TestCheck(t *testing.T) {
	known, err := parseScrape(scrape)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		expr   string
		labels []string
		want   string
	}{
		"good":               {`sum by (state) (clusters{provider!="None"}) > 0`, []string{"state"}, ""},
		"good histogram":     {`histogram_quantile(0.9, sum by (le, outcome) (rate(took_seconds_bucket[5m])))`, []string{"outcome"}, ""},
		"good target":        {`plain and on (instance) clusters`, []string{"instance"}, ""},
		"chosen in Grafana":  {`clusters{state=~"$state"}`, nil, ""},
		"no parse":           {`sum by (state (clusters)`, nil, "parse error"},
		"no metric":          {`sum(cluster)`, nil, "there is no metric cluster"},
		"no label":           {`clusters{stat="Ready"}`, nil, "has no label stat"},
		"no value":           {`clusters{state="Raedy"}`, nil, `no clusters has state="Raedy"`},
		"no such group":      {`sum by (stat) (clusters)`, nil, "has no label stat"},
		"lost in a sum":      {`sum by (state) (clusters)`, []string{"provider"}, "the result has no label provider"},
		"lost in a quantile": {`histogram_quantile(0.9, sum by (le) (rate(took_seconds_bucket[5m])))`, []string{"outcome"}, "the result has no label outcome"},
		"no label to join":   {`clusters * on (stat) plain`, nil, "has no label stat"},
		"nothing is left":    {`absent(clusters)`, []string{"state"}, "the result has no label state"},
	} {
		t.Run(name, func(t *testing.T) {
			err := known.check(query{"q", tc.expr, tc.labels})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestRead(t *testing.T) {
	const one = `
spec:
  groups:
    - rules:
        - alert: A
          expr: clusters > 0
          for: FOR
          labels: {severity: warning}
          annotations: {summary: 'TEXT', runbook_url: "https://example.org/#a"}
`
	for name, tc := range map[string]struct{ length, text, want string }{
		"good":         {"10m", "{{ $value | humanize }} of {{ $labels.state }}", ""},
		"no duration":  {"10", "x", "not a valid duration"},
		"no template":  {"10m", "{{ $labels.state", "unclosed action"},
		"no function":  {"10m", "{{ $value | humanise }}", "not defined"},
		"no summary":   {"10m", "", "lacks a severity"},
		"other values": {"10m", "{{ $labels.a }}{{ .Other }}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rules([]byte(strings.NewReplacer("FOR", tc.length, "TEXT", tc.text).Replace(one)))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	q, err := dashboard([]byte(`{"templating":{"list":[{"name":"s","type":"query","query":"label_values(clusters, state)"}]},"panels":[{"title":"P","targets":[{"expr":"rate(plain[$__rate_interval])","legendFormat":"{{a}} {{ b }}"}],"panels":[{"title":"Q","targets":[{"expr":"x"}]}]}]}`))
	if err != nil || len(q) != 3 || q[0].expr != "clusters" || q[0].labels[0] != "state" || q[1].expr != "rate(plain[5m])" || strings.Join(q[1].labels, ",") != "a,b" {
		t.Errorf("got %+v (%v)", q, err)
	}
}
