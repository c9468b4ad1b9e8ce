// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// targetLabels are the labels that Prometheus adds to every series that it scrapes.
var targetLabels = []string{"instance", "job"}

// scraped is the content of a scrape: the values of each label, by the name of the series.
type scraped map[string]map[string][]string

func parseScrape(text string) (scraped, error) {
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	out := scraped{}
	for name, f := range families {
		for _, m := range f.Metric {
			pairs := map[string]string{}
			for _, l := range m.Label {
				pairs[l.GetName()] = l.GetValue()
			}
			if m.Histogram == nil && m.Summary == nil {
				out.add(name, pairs)
				continue
			}
			out.add(name+"_count", pairs)
			out.add(name+"_sum", pairs)
			pairs["le"] = "+Inf"
			out.add(name+"_bucket", pairs)
		}
	}
	return out, nil
}

func (s scraped) add(name string, pairs map[string]string) {
	if s[name] == nil {
		s[name] = map[string][]string{}
	}
	for label, value := range pairs {
		s[name][label] = append(s[name][label], value)
	}
}

// check checks a query against a scrape.
func (s scraped) check(q query) error {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(q.expr)
	if err != nil {
		return err
	}
	var errs []error
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			errs = append(errs, s.selector(n))
		case *parser.AggregateExpr:
			errs = append(errs, lacking(s.labels(n.Expr), n.Grouping, n.Expr.String()))
		case *parser.BinaryExpr:
			if m := n.VectorMatching; m != nil {
				errs = append(errs, lacking(s.labels(n.LHS), m.MatchingLabels, n.LHS.String()),
					lacking(s.labels(n.RHS), m.MatchingLabels, n.RHS.String()))
			}
		}
		return nil
	})
	errs = append(errs, lacking(s.labels(expr), q.labels, "the result"))
	return errors.Join(errs...)
}

// selector checks that a metric exists, with the labels that it is selected by and, unless the matcher is negative,
// with such values.
func (s scraped) selector(v *parser.VectorSelector) error {
	there, ok := s[v.Name]
	if !ok {
		return fmt.Errorf("there is no metric %s", v.Name)
	}
	for _, m := range v.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			continue
		}
		values, ok := there[m.Name]
		wanted := (m.Type == labels.MatchEqual || m.Type == labels.MatchRegexp) && !strings.HasPrefix(m.Value, "$")
		switch {
		case !ok:
			return fmt.Errorf("metric %s has no label %s", v.Name, m.Name)
		case wanted && !slices.ContainsFunc(values, m.Matches):
			return fmt.Errorf("no %s has %s", v.Name, m)
		}
	}
	return nil
}

func lacking(there, wanted []string, of string) error {
	for _, l := range wanted {
		if !slices.Contains(there, l) {
			return fmt.Errorf("%s has no label %s", of, l)
		}
	}
	return nil
}

// labels returns the labels of an expression's result.
func (s scraped) labels(expr parser.Expr) []string {
	switch e := expr.(type) {
	case *parser.VectorSelector:
		out := slices.Clone(targetLabels)
		for l := range s[e.Name] {
			out = append(out, l)
		}
		return out
	case *parser.MatrixSelector:
		return s.labels(e.VectorSelector)
	case *parser.ParenExpr:
		return s.labels(e.Expr)
	case *parser.AggregateExpr:
		if e.Without {
			return slices.DeleteFunc(s.labels(e.Expr), func(l string) bool { return slices.Contains(e.Grouping, l) })
		}
		return e.Grouping
	case *parser.BinaryExpr:
		switch m := e.VectorMatching; {
		case m == nil && e.LHS.Type() != parser.ValueTypeVector:
			return s.labels(e.RHS)
		case m == nil, m.Card != parser.CardOneToOne, len(m.MatchingLabels) == 0, !m.On:
			return s.labels(e.LHS)
		default:
			return m.MatchingLabels
		}
	case *parser.Call:
		var out []string
		for _, a := range e.Args {
			out = append(out, s.labels(a)...)
		}
		switch e.Func.Name {
		case "absent", "vector", "time":
			return nil
		case "histogram_quantile":
			return slices.DeleteFunc(out, func(l string) bool { return l == "le" })
		}
		return out
	}
	return nil
}
