// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// fixed is the input of tests: a small one of each kind.
func fixed() Input {
	return Input{
		Cluster: &Cluster{
			Name: "eu-1", Namespace: "fleet", Provider: "aws", UID: "6f", KubernetesVersion: "v1.32.1", HubEndpoint: "https://hub:443",
			Labels:      map[string]string{"region": "eu", "tier": "gold"},
			Annotations: map[string]string{"owner": "team-a"},
			Version:     Version{Major: 1, Minor: 32, Git: "v1.32.1"},
			APIServer:   Endpoint{Host: "10.0.0.1", Port: 6443},
			PodCIDRs:    []string{"10.1.0.0/16"}, ServiceCIDRs: []string{"10.2.0.0/16"},
			Nodes: 3,
		},
		Origin: map[string]any{"name": "base", "namespace": "platform"},
		Vars: map[string]any{
			"domain": "example.com", "replicas": int64(3), "ratio": 0.5, "debug": true, "nothing": nil, "text": "été",
			"zones": []any{"b", "a", "c"},
			"pools": map[string]any{"small": int64(1), "large": int64(5), "medium": 2.5},
			"deep":  map[string]any{"a": map[string]any{"b": []any{map[string]any{"c": "d"}}}},
		},
	}
}

// seeds are templates of all kinds, right and wrong.
var seeds = []string{
	"", "plain", "<<<", "<<<<", "a << b", ">>", "<<>>", "<< >>", "<< 1 >>", " << 1 >> ", "<<<< 1 >>", "<<<<< 1 >>",
	"${var} {{ .Values.x }} << cluster.name >>", "é<< cluster.nam >>", "<< 'a >> b' + \"<<\" >>", "<< r'\\' >>", "<< '''a'b\n>>''' >>",
	"<< // it's\n 1 >>", "<< vars.?x.orValue([]).map(v, v + 1) >>", "<< cluster.labels[?\"region\"].orValue('x') >>",
	"<< has(vars.x) ? vars.x : null >>", "<< [1, 2.5, 3u, b'x', null, {'a': [optional.none()]}] >>", "<< {?'a': vars.?a} >>",
	"<< vars.zones.sort().join('-') + string(cluster.nodes) >>", "<< vars.pools.transformMap(k, v, v > 1, v * 2) >>",
	"<< vars.zones.transformMapEntry(i, z, {z: i}) >>", "<< vars.zones.sortBy(z, z).first().value() >>", "<< vars.zones.map(a, vars.zones.map(b, a + b)).flatten() >>",
	"<< cel.bind(a, [], cel.bind(b, a + [1], [a, b, a + b])) >>", "<< cel.bind(a, vars.zones, [a] + [a]).distinct() >>",
	"<< ip('10.0.0.1').family() + 1 >>", "<< cidr(cluster.podCIDRs[0]).containsIP('10.1.2.3') >>", "<< url('https://a:1/b?c=d').getQuery() >>",
	"<< quantity('1e9').add(quantity('1Gi')).asApproximateFloat() >>", "<< semver(cluster.version.git, true).isLessThan(semver('2.0.0')) >>",
	"<< 'a1b2'.findAll('[0-9]').map(x, int(x)) >>", "<< regex.replace('a-b', '(a)-(b)', '\\\\2\\\\1') >>", "<< regex.extract('ab', 'a(b)').orValue('') >>",
	"<< '%s %d %.2f %x'.format(['a', 1, 1.5, 255]) >>", "<< base64.encode(b'x') + string(base64.decode('eA==')) >>",
	"<< math.greatest(vars.replicas, 2) % 2 == 1 && !vars.debug || vars.ratio < 1 >>", "<< sets.contains(vars.zones, ['a']) >>",
	"<< timestamp('2024-01-01T00:00:00Z').getHours('+02:00') >>", "<< duration('90s') + duration('1h') >>", "<< dyn(cluster).name == cluster.name >>",
	"<< optional.of(1).optMap(x, x + 1).optFlatMap(x, optional.of(x)).or(optional.none()).hasValue() >>", "<< {1: 2}[1] + {true: 1}[true] >>",
	"<< vars['dom' + 'ain'] >>", "<< 'domain' in vars && vars.exists(k, k == 'x') >>", "<< -9223372036854775808 / -1 >>", "<< 1.0 / 0.0 >>",
	"<< [[1, 2], [3]].map(l, l.map(x, x * 2)).flatten().reverse().slice(0, 2) >>", "<< strings.quote(vars.text.reverse().upperAscii()) >>",
	"<< lists.range(5).exists_one(x, x == 3) >>", "<< type(vars.replicas) == int >>", "<< cluster >>", "<< vars >>", "<< {cluster.name: origin} >>",
	"<< vars.deep.a.b[0].c + vars.?nope.?a[?0].orValue('') >>", "<< (vars.debug ? vars.deep : vars.pools).map(k, k) >>", "<< vars.deep['a' + ''].map(k, k) >>",
}

// FuzzCompile looks for templates that panic, take too long, change the input, or give another result the second time.
func FuzzCompile(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		start := time.Now()
		template, err := Compile(s)
		if err != nil {
			e := err.(*Error) //nolint:errorlint // Compile promises it, and wraps nothing around it
			if e.Column < 1 || e.Column > utf8.RuneCountInString(s)+1 || e.Message == "" {
				t.Fatalf("%q: %#v", s, e)
			}
			return
		}
		in := fixed()
		out, err := template.Eval(in)
		if took := time.Since(start); took > 10*time.Second {
			t.Fatalf("%q took %v", s, took)
		}
		if !reflect.DeepEqual(in, fixed()) {
			t.Fatalf("%q changed its input", s)
		}
		again, errAgain := template.Eval(in)
		if (err == nil) != (errAgain == nil) || !reflect.DeepEqual(out, again) {
			t.Fatalf("%q gave %v and %v", s, out, again)
		}
		if err != nil {
			if strings.Contains(err.Error(), "expression.") && !strings.Contains(s, "expression.") {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		if out != Absent {
			if _, err := json.Marshal(out); err != nil || !isJSON(out) {
				t.Fatalf("%q gave %#v: %v", s, out, err)
			}
		}
		if text, ok := out.(string); template.Type() == Text && (!ok || len(text) > MaxText) {
			t.Fatalf("%q gave %#v", s, out)
		}
	})
}

// isJSON returns whether a value is made of nothing but what Eval says.
func isJSON(v any) bool {
	switch v := v.(type) {
	case nil, bool, int64, float64, string:
		return true
	case []any:
		for _, e := range v {
			if !isJSON(e) {
				return false
			}
		}
		return v != nil
	case map[string]any:
		for _, e := range v {
			if !isJSON(e) {
				return false
			}
		}
		return v != nil
	}
	return false
}

// FuzzEscape looks for texts that do not come back.
func FuzzEscape(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Add("\xff<<\xff<")
	f.Fuzz(func(t *testing.T, s string) {
		escaped := Escape(s)
		if len(escaped) > MaxTemplate {
			t.Skip()
		}
		template, err := Compile(escaped)
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if got, ok := template.Literal(); !ok || got != s {
			t.Fatalf("%q came back as %q, %v", s, got, ok)
		}
		if Has(s) != strings.Contains(s, "<<") {
			t.Fatal(s)
		}
	})
}
