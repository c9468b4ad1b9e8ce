// SPDX-License-Identifier: Apache-2.0

// Command promcheck checks alert rules and dashboards against a scrape of a real hub, with Prometheus' own parser.
// Each expression must parse, and each metric, label and label value that it names must exist in the scrape. It is a
// module of its own, so that the hub does not depend on Prometheus.
//
//	go run . SCRAPE FILE...
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "promcheck SCRAPE FILE...: a scrape of /metrics, and PrometheusRules (.yaml) or dashboards (.json)")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(scrape string, files []string) error {
	raw, err := os.ReadFile(scrape)
	if err != nil {
		return err
	}
	known, err := parseScrape(string(raw))
	if err != nil {
		return fmt.Errorf("%s: %w", scrape, err)
	}
	var errs []error
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		queries, err := read(filepath.Ext(file), raw)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		}
		if len(queries) == 0 {
			errs = append(errs, fmt.Errorf("%s has no query", file))
		}
		for _, q := range queries {
			if err := known.check(q); err != nil {
				errs = append(errs, fmt.Errorf("%s: %s: %w", file, q.name, err))
			}
		}
		fmt.Printf("%s: %d queries\n", file, len(queries))
	}
	return errors.Join(errs...)
}

// query is an expression, and the labels of its result that the text beside it uses.
type query struct {
	name, expr string
	labels     []string
}

func read(kind string, raw []byte) ([]query, error) {
	if kind == ".json" {
		return dashboard(raw)
	}
	return rules(raw)
}

type panel struct {
	Title   string
	Targets []struct{ Expr, LegendFormat string }
	Panels  []panel
}

func dashboard(raw []byte) ([]query, error) {
	var d struct {
		Panels     []panel
		Templating struct {
			List []struct{ Name, Type, Query string }
		}
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	var out []query
	for _, v := range d.Templating.List {
		if inner, ok := strings.CutPrefix(v.Query, "label_values("); v.Type == "query" && ok {
			metric, label, _ := strings.Cut(strings.TrimSuffix(inner, ")"), ",")
			out = append(out, query{"variable " + v.Name, metric, []string{strings.TrimSpace(label)}})
		}
	}
	var add func([]panel)
	add = func(panels []panel) {
		for _, p := range panels {
			for _, t := range p.Targets {
				// Grafana fills in these: an interval, and the values that somebody chose. Any value is valid here.
				expr := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h").Replace(t.Expr)
				out = append(out, query{"panel " + p.Title, expr, between(t.LegendFormat, "{{", "}}")})
			}
			add(p.Panels)
		}
	}
	add(d.Panels)
	return out, nil
}

// between returns the text between two marks.
func between(text, left, right string) []string {
	var out []string
	for {
		_, rest, ok := strings.Cut(text, left)
		if !ok {
			return out
		}
		name, rest, ok := strings.Cut(rest, right)
		if !ok {
			return out
		}
		out, text = append(out, strings.TrimSpace(name)), rest
	}
}

func rules(raw []byte) ([]query, error) {
	var r struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr, For    string
					Labels, Annotations map[string]string
				}
			}
		}
	}
	if err := yaml.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	var out []query
	var errs []error
	for _, g := range r.Spec.Groups {
		for _, rule := range g.Rules {
			q := query{name: "alert " + rule.Alert, expr: rule.Expr}
			if rule.For != "" {
				if _, err := model.ParseDuration(rule.For); err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", rule.Alert, err))
				}
			}
			if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || !strings.Contains(rule.Annotations["runbook_url"], "#") {
				errs = append(errs, fmt.Errorf("%s lacks a severity, a summary or a runbook", rule.Alert))
			}
			for _, text := range rule.Annotations {
				labels, err := templated(text)
				if err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", rule.Alert, err))
				}
				q.labels = append(q.labels, labels...)
			}
			out = append(out, q)
		}
	}
	return out, errors.Join(errs...)
}

// templated expands an annotation as Prometheus does, and returns the labels that it uses.
func templated(text string) ([]string, error) {
	human := func(any) string { return "" }
	t, err := template.New("").Option("missingkey=zero").Funcs(template.FuncMap{
		"humanize": human, "humanizePercentage": human, "humanizeDuration": human,
	}).Parse("{{$labels := .Labels}}{{$value := .Value}}" + text)
	if err != nil {
		return nil, err
	}
	if err := t.Execute(&strings.Builder{}, map[string]any{"Labels": map[string]string{}, "Value": 1.0}); err != nil {
		return nil, err
	}
	var out []string
	for _, action := range between(text, "{{", "}}") {
		for _, word := range strings.Fields(action) {
			if label, ok := strings.CutPrefix(word, "$labels."); ok {
				out = append(out, label)
			}
		}
	}
	return out, nil
}
