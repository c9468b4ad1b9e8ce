// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"reflect"
	"sync"
	"testing"

	"github.com/chandler-hub/chandler/internal/must"
)

type (
	list = []any
	dict = map[string]any
)

func TestEval(t *testing.T) {
	for _, test := range []struct {
		text string
		typ  Type
		want any
	}{
		{"plain", Text, "plain"},
		{"", Text, ""},
		{"a <<< b", Text, "a << b"},
		{"${x} {{ .Values.y }} << cluster.name >>", Text, "${x} {{ .Values.y }} eu-1"},
		// One expression keeps its type.
		{"<< cluster.name >>", String, "eu-1"},
		{" << cluster.name >>", Text, " eu-1"},
		{"<< cluster.nodes >>", Int, int64(3)},
		{"<< cluster.nodes > 2 >>", Bool, true},
		{"<< 1.5 >>", Double, 1.5},
		{"<< 2u >>", Int, int64(2)},
		{"<< null >>", Dyn, nil},
		{"<< b'abc' >>", String, "YWJj"},
		{"<< duration('90s') >>", String, "90s"},
		{"<< timestamp('2024-01-02T03:04:05Z') >>", String, "2024-01-02T03:04:05Z"},
		{"<< cluster.podCIDRs >>", List, list{"10.1.0.0/16"}},
		{"<< cluster.labels >>", Map, dict{"region": "eu", "tier": "gold"}},
		{"<< vars.replicas >>", Dyn, int64(3)},
		{"<< vars.nothing >>", Dyn, nil},
		{"<< vars.deep >>", Dyn, dict{"a": dict{"b": list{dict{"c": "d"}}}}},
		{"<< [1, 'a', null, 1.5] >>", List, list{int64(1), "a", nil, 1.5}},
		{"<< {'a': {'b': [true]}} >>", Map, dict{"a": dict{"b": list{true}}}},
		// The cluster.
		{"<< [cluster.namespace, cluster.provider, cluster.uid, cluster.kubernetesVersion, cluster.hubEndpoint] >>", List, list{"fleet", "aws", "6f", "v1.32.1", "https://hub:443"}},
		{"<< cluster.version.major * 100 + cluster.version.minor >>", Int, int64(132)},
		{"<< cluster.version >>", Map, dict{"major": int64(1), "minor": int64(32), "git": "v1.32.1"}},
		{"https://<< cluster.apiServer.host >>:<< cluster.apiServer.port >>", Text, "https://10.0.0.1:6443"},
		{"<< cluster.annotations.owner + cluster.serviceCIDRs[0] >>", String, "team-a10.2.0.0/16"},
		{"<< dyn(cluster).version.git == cluster.version.git && dyn(cluster) == cluster >>", Bool, true},
		{"<< has(cluster.provider) && !has({'a': 1}.b) >>", Bool, true},
		// Optionals.
		{"<< vars.?host.orValue('x') >>", Dyn, "x"},
		{"<< cluster.labels[?'region'].orValue('x') >>", String, "eu"},
		{"<< cluster.labels[?'zone'].orValue('x') >>", String, "x"},
		{"<< vars.?domain >>", Dyn, "example.com"},
		{"<< vars.?host >>", Dyn, Absent},
		{"<< optional.none() >>", Dyn, Absent},
		{"<< {?'a': vars.?host, ?'b': vars.?domain} >>", Map, dict{"b": "example.com"}},
		{"<< [?vars.?host, ?vars.?domain] >>", List, list{"example.com"}},
		{"<< vars.?deep.?a.?b[?0].c.orValue('') >>", Dyn, "d"},
		{"<< vars.?domain.optMap(d, 'x.' + d).optFlatMap(d, optional.of(d + '.')) >>", Dyn, "x.example.com."},
		{"<< vars.?host.optMap(d, 'x.' + d).or(vars.?domain).value() >>", Dyn, "example.com"},
		{"<< cluster.labels[?'zone'].orValue(vars.domain) >>", Dyn, "example.com"},
		{"<< vars.debug ? 'a' : vars.replicas >>", Dyn, "a"},
		{"<< cel.bind(a, vars.zones[?0].orValue(''), a) >>", Dyn, "b"},
		// Numbers.
		{"<< vars.replicas + 1 >>", Int, int64(4)},
		{"<< vars.ratio * 2.0 >>", Double, 1.0},
		{"<< vars.replicas > 2.5 && vars.ratio < 1 && 1 < 1.5 >>", Bool, true},
		{"<< vars.pools.map(k, vars.pools[k]) == [5, 2.5, 1] >>", Bool, true},
		{"<< math.greatest(vars.replicas, 5) >>", Dyn, int64(5)},
		// Loops, over maps in the order of the keys.
		{"<< vars.pools.map(k, k) >>", List, list{"large", "medium", "small"}},
		{"<< vars.pools.transformList(k, v, k + string(v)) >>", List, list{"large5", "medium2.5", "small1"}},
		{"<< vars.zones.transformMapEntry(i, z, {z: i}) >>", Map, dict{"b": int64(0), "a": int64(1), "c": int64(2)}},
		{"<< vars.zones.filter(z, z != 'a').map(z, 'zone-' + z) >>", List, list{"zone-b", "zone-c"}},
		{"<< vars.zones.sort().join(',') >>", String, "a,b,c"},
		{"<< [3, 1, 2].sortBy(n, -n) >>", List, list{int64(3), int64(2), int64(1)}},
		{"<< [[1], [2, 3]].flatten() + lists.range(2) >>", List, list{int64(1), int64(2), int64(3), int64(0), int64(1)}},
		{"<< cel.bind(a, [], [a + [1], a + [2], a]) >>", List, list{list{int64(1)}, list{int64(2)}, list{}}},
		{"<< vars.zones.exists_one(z, z == 'a') && vars.zones.all(i, z, i < 3 && z < 'd') >>", Bool, true},
		// Functions.
		{"<< 'a-%s-%d'.format([vars.domain, 3]) >>", String, "a-example.com-3"},
		{"<< vars.domain.matches('^[a-z.]+$') >>", Bool, true},
		{"<< vars.domain.matches('^' + 'ex') >>", Bool, true},
		{"<< vars.domain.replace('.', '-').split('-') >>", List, list{"example", "com"}},
		{"<< 'a1b22'.findAll('[0-9]+') + ['a1b22'.find('[0-9]+')] >>", List, list{"1", "22", "1"}},
		{"<< regex.replace('Some_Name', '[^a-zA-Z]', '-').lowerAscii() >>", String, "some-name"},
		{"<< base64.encode(b'x') >>", String, "eA=="},
		{"<< ip(cluster.apiServer.host) >>", String, "10.0.0.1"},
		{"<< cidr('10.1.2.3/16').masked() >>", String, "10.1.0.0/16"},
		{"<< cidr(cluster.podCIDRs[0]).containsIP('10.1.2.3') >>", Bool, true},
		{"<< quantity('1.5Gi').add(quantity('512Mi')) >>", String, "2Gi"},
		{"<< semver(cluster.version.git, true).isGreaterThan(semver('1.30.0')) >>", Bool, true},
		{"<< [semver('1.2.3'), url('https://a/b')] >>", List, list{"1.2.3", "https://a/b"}},
		{"<< timestamp('2024-01-01T23:30:00Z').getHours('+01:00') >>", Int, int64(0)},
		{"<< sets.contains(vars.zones, ['a', 'b']) >>", Bool, true},
		// Text.
		{"<<vars.domain>><<cluster.nodes>>", Text, "example.com3"},
		{"-<< true >>-<< 3 >>-<< 3.0 >>-<< 0.25 >>-<< 1e15 >>-<< 1e22 >>-<< 1e-7 >>-", Text, "-true-3-3-0.25-1000000000000000-10000000000000000000000-1e-7-"},
		{"-<< vars.?domain >>-<< b'x' >>-<< ip('::1') >>-<< duration('1s') >>-", Text, "-example.com-eA==-::1-1s-"},
		{"a: << cluster.name >>\nb: |\n  << '''x\n  y''' >>\n", Text, "a: eu-1\nb: |\n  x\n  y\n"},
	} {
		template, err := Compile(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if template.Type() != test.typ {
			t.Errorf("%s is of type %s, want %s", test.text, template.Type(), test.typ)
		}
		got, err := template.Eval(fixed())
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %#v, %v, want %#v", test.text, got, err, test.want)
		}
	}
}

func TestLiterals(t *testing.T) {
	for text, want := range map[string][]string{
		"":                             {""},
		"plain":                        {"plain"},
		"a<<<b":                        {"a<<b"},
		"<< cluster.name >>":           {"", ""},
		"a-<< cluster.name >>":         {"a-", ""},
		"<< cluster.name >>-b":         {"", "-b"},
		"a<<<-<< '>>' >><< '<<' >>-c-": {"a<<-", "", "-c-"},
	} {
		compiled, err := Compile(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got := compiled.Literals(); !reflect.DeepEqual(got, want) {
			t.Errorf("%q has texts %q, want %q", text, got, want)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"<< cluster.nam >>", "column 11: undefined field 'nam'; did you mean \"name\"?"},
		{"été-<< cluster.nam >>", "column 15: undefined field 'nam'; did you mean \"name\"?"},
		{"a\n<< 'é' +\n  cluster.nam >>", "column 21: undefined field 'nam'; did you mean \"name\"?"},
		{"<< 1 >> << cluster.version.mayor >>", "column 27: undefined field 'mayor'; did you mean \"major\"?"},
		{"<< cluster.?nam >>", "column 11: undefined field 'nam'; did you mean \"name\"?"},
		{"<< foo.x >>", `column 4: there is no variable "foo": there are cluster, origin and vars`},
		{"<< env('x') >>", `column 7: there is no function "env"`},
		{"<< vars.x.upper() >>", `column 16: there is no function "upper"`},
		{"<< cluster.nodes + 'x' >>", "column 18: found no matching overload for '+' applied to '(int, string)'"},
		{"<< cluster.name in 'x' >>", "column 17: found no matching overload for 'in' applied to '(string, string)'"},
		{"<< true ? 1 : 'x' >>", "column 9: ? : gives either type int or type string: make both of one type"},
		{"<< 1 ? 2 : 3 >>", "column 6: what is before ? must be true or false, and is of type int"},
		{"<< 1 + >>", "column 8: syntax error: the expression ends too early"},
		{"<< (1 >>", "column 7: syntax error: missing ')' at the end"},
		{"<< a b >>", "column 6: syntax error: extraneous input 'b'"},
		{"<< 'x'.matches('(') >>", "column 16: invalid regular expression: error parsing regexp: missing closing ): `(`"},
		{"<< {[1]: 2} >>", "column 5: a key of a map cannot be of type list(int)"},
		{"<< {null: 2} >>", "column 5: a key of a map cannot be of type null"},
		{"<< vars.l.map(vars, vars) >>", `column 14: "vars" cannot be the name of a variable here: it would hide the one that is always there`},
		{"<< cel.bind(cluster, 1, cluster) >>", `column 12: "cluster" cannot be the name of a variable here: it would hide the one that is always there`},
		{"<< int >>", "column 3: the expression gives a type and not a value"},
		{"<< google.protobuf.Struct{} >>", `column 26: there is no variable "google.protobuf.Struct": there are cluster, origin and vars`},
	} {
		_, err := Compile(test.text)
		if err == nil || err.Error() != test.want {
			t.Errorf("%q: got %v, want %s", test.text, err, test.want)
		}
	}
}

func TestEvalErrors(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"<< vars.host >>", `vars has no "host"`},
		{"<< vars['host'] >>", `vars has no "host"`},
		{"x<< vars.deep.a.x >>", `vars.deep.a has no "x"`},
		{"<< vars.domain.x >>", `vars.domain is not a map, and has no "x"`},
		{"<< vars.?host.orValue('') == '' ? origin.x : '' >>", `origin has no "x"`},
		{"<< has(vars.x) || origin.x >>", `origin has no "x"`},
		{"<< cluster.labels.zone >>", `cluster.labels has no "zone"`},
		{"<< vars[origin.name] >>", `no such key: "base"; it reads origin.name, vars`},
		{"<< vars.zones[3] >>", "index out of bounds: 3; it reads vars.zones"},
		{"<< vars.replicas + 'x' >>", "found no matching overload for '+' applied to '(int, string)'; it reads vars.replicas"},
		{"<< string(vars.nothing) >>", "found no matching overload for 'string' applied to '(null)'; it reads vars.nothing"},
		{"<< vars.replicas ? 1 : 2 >>", "a value is of the wrong type for its operator: && || ! and ?: take true or false; it reads vars.replicas"},
		{"<< vars.domain.map(x, x) >>", "only a list or a map can be looped over; it reads vars.domain"},
		{"<< vars.zones[vars.pools] >>", "a value is of the wrong type for an index or a key; it reads vars.pools, vars.zones"},
		{"<< 1 / 0 >>", "division by zero"},
		{"<< 1.0 / 0.0 >>", "+Inf is not a number that JSON can hold"},
		{"x<< 0.0 / 0.0 >>", "NaN is not a number that JSON can hold"},
		{"<< 9223372036854775808u >>", "9223372036854775808 is too large for a whole number in JSON"},
		{"<< int(cluster.labels[?'zone'].orValue('x')) >>", "type conversion error from 'string' to 'int'; it reads cluster.labels.zone"},
		{"<< 'replicas' in vars ? int('x') : 0 >>", "type conversion error from 'string' to 'int'; it reads vars.replicas"},
		{"<< origin.map(k, int(k)) >>", "type conversion error from 'string' to 'int'; it reads origin"},
		{"<< {1: 2} >>", "a key of a map is of type int, and must be a text"},
		{"<< {vars.zones: 2} >>", "a key of a map cannot be of type list; it reads vars.zones"},
		{"<< [int] >>", "a value of type type cannot be a result"},
		{"<< [vars.?host] >>", "an optional without a value cannot be part of a list or map; use orValue, or ? before it; it reads vars.host"},
		{"x<< vars.?host >>", "an optional without a value cannot be inserted into text; use orValue; it reads vars.host"},
		{"x<< vars.nothing >>", "null cannot be inserted into text; it reads vars.nothing"},
		{"x<< vars.zones >>", "a list cannot be inserted into text; use join, or let the expression be the whole string; it reads vars.zones"},
		{"x<< cluster.labels >>", "a map cannot be inserted into text; let the expression be the whole string; it reads cluster.labels"},
		{"x<< cluster >>", "a map cannot be inserted into text; let the expression be the whole string; it reads cluster"},
		{"<< timestamp('2024-01-01T00:00:00Z').getHours('Europe/Berlin') >>", `"Europe/Berlin" is not supported as a time zone: write an offset such as +02:00`},
		{"<< int(cluster.labels.region) + vars.replicas + int(cluster.labels.region) >>",
			"type conversion error from 'string' to 'int'; it reads cluster.labels.region, vars.replicas"},
		{"<< int('x') >>", "type conversion error from 'string' to 'int'"},
		{"<< duration('x') >>", "type conversion error from 'string' to 'duration'"},
	} {
		template, err := Compile(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		out, err := template.Eval(fixed())
		if err == nil || err.Error() != test.want || out != nil {
			t.Errorf("%s: got %v, %v, want %s", test.text, out, err, test.want)
		}
	}
}

func compiled(t *testing.T, text string) *Template {
	t.Helper()
	return must.Get(Compile(text)).Or(t)
}

func TestNothingKnown(t *testing.T) {
	for text, want := range map[string]string{
		"<< cluster.name >>": "no cluster is known here; it reads cluster.name",
		"<< vars.x >>":       `vars has no "x"`,
		"<< origin.x >>":     `origin has no "x"`,
	} {
		template := compiled(t, text)
		if _, err := template.Eval(Input{}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// A result is the caller's: what is done to it does not reach the input, nor another result.
func TestResultsAreCopies(t *testing.T) {
	for _, text := range []string{"<< vars.deep >>", "<< vars.deep.a.b >>", "<< vars >>", "<< cluster.labels >>", "<< [vars.zones, vars.zones] >>", "<< cluster >>"} {
		template := compiled(t, text)
		in := fixed()
		first, _ := template.Eval(in)
		second, _ := template.Eval(in)
		spoil(first)
		if !reflect.DeepEqual(in, fixed()) {
			t.Errorf("%s shares memory with its input", text)
		}
		if third, _ := template.Eval(in); !reflect.DeepEqual(second, third) {
			t.Errorf("%s shares memory with another result", text)
		}
	}
}

func spoil(v any) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			spoil(v[i])
			v[i] = "spoilt"
		}
	case map[string]any:
		for k := range v {
			spoil(v[k])
			v[k] = "spoilt"
		}
		v["spoilt"] = true
	}
}

func TestConcurrentUse(t *testing.T) {
	template := compiled(t, "<< vars.zones.map(z, z + cluster.name).join('') >> << 'x1'.matches('[0-9]') >> << cel.bind(a, [], a + [1]).size() >>")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				if out, err := template.Eval(fixed()); out != "beu-1aeu-1ceu-1 true 1" {
					t.Errorf("got %v, %v", out, err)
					return
				}
			}
		})
	}
	group.Wait()
}
