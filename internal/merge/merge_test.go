// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"encoding/json"
	"reflect"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/chandler-hub/chandler/internal/merge"
	"github.com/chandler-hub/chandler/internal/must"
)

func doc(t testing.TB, text string) map[string]any {
	t.Helper()
	raw := must.Get(yaml.YAMLToJSON([]byte(text))).Or(t)
	out := map[string]any{}
	must.Do(t, utiljson.Unmarshal(raw, &out))
	return out
}

func inValues(path []string) bool { return len(path) > 1 && path[0] == "values" }

func TestMerge(t *testing.T) {
	cases := map[string]struct{ target, patch, want string }{
		"AddAndReplace":             {`{a: 1, b: {c: 2}}`, `{a: 3, b: {d: 4}}`, `{a: 3, b: {c: 2, d: 4}}`},
		"NullRemoves":               {`{a: 1, b: {c: 2}}`, `{a: null, b: {c: null}}`, `{b: {}}`},
		"NullOfNothing":             {`{}`, `{a: null, b: {c: null, d: 1}}`, `{b: {d: 1}}`},
		"NullIsKeptInValues":        {`{values: {a: 1}}`, `{values: {a: null, b: {c: null}}}`, `{values: {a: null, b: {c: null}}}`},
		"ValuesThemselvesCanGo":     {`{values: {a: 1}, interval: 1m}`, `{values: null}`, `{interval: 1m}`},
		"ListsAreReplaced":          {`{a: [1, 2]}`, `{a: [3]}`, `{a: [3]}`},
		"ObjectOverScalar":          {`{a: 1}`, `{a: {b: 2, c: null}}`, `{a: {b: 2}}`},
		"ScalarOverObject":          {`{a: {b: 1}}`, `{a: 2}`, `{a: 2}`},
		"NullsInAListStay":          {`{a: []}`, `{a: [null, {b: null}]}`, `{a: [null, {b: null}]}`},
		"LargeNumbers":              {`{a: 1}`, `{a: 9007199254740993}`, `{a: 9007199254740993}`},
		"ANullThatTheTargetHasStay": {`{a: null}`, `{b: 1}`, `{a: null, b: 1}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, patch := doc(t, tc.target), doc(t, tc.patch)
			merge.Merge(got, patch, merge.Options{KeepNull: inValues})
			must.Equal(t, doc(t, tc.want), got)
			if d := cmp.Diff(doc(t, tc.patch), patch); d != "" {
				t.Errorf("the patch was changed:\n%s", d)
			}
		})
	}
}

func TestPatch(t *testing.T) {
	type op = merge.Operation
	value := func(o op, v any) op { o.Value, o.HasValue = v, true; return o }
	cases := map[string]struct {
		in   string
		ops  []op
		want string
		err  string
	}{
		"Append":       {`{values: {t: [1]}}`, []op{value(op{Op: "add", Path: "/values/t/-"}, int64(2))}, `{values: {t: [1, 2]}}`, ""},
		"Remove":       {`{values: {t: [1, 2], u: null}}`, []op{{Op: "remove", Path: "/values/t/0"}}, `{values: {t: [2], u: null}}`, ""},
		"RemoveAKey":   {`{values: {a: 1, b: 2}}`, []op{{Op: "remove", Path: "/values/a"}}, `{values: {b: 2}}`, ""},
		"Escapes":      {`{l: {a/b: 1, c~d: 2}}`, []op{value(op{Op: "replace", Path: "/l/a~1b"}, "x"), {Op: "remove", Path: "/l/c~0d"}}, `{l: {a/b: x}}`, ""},
		"Move":         {`{a: {b: 1}}`, []op{{Op: "move", From: "/a/b", Path: "/c"}}, `{a: {}, c: 1}`, ""},
		"NullValue":    {`{a: 1}`, []op{value(op{Op: "add", Path: "/a"}, nil)}, `{a: null}`, ""},
		"LargeNumbers": {`{a: 9007199254740993}`, []op{value(op{Op: "add", Path: "/b"}, int64(9007199254740995))}, `{a: 9007199254740993, b: 9007199254740995}`, ""},
		"TestFails":    {`{a: secret}`, []op{value(op{Op: "test", Path: "/a"}, "x")}, "", "patches[0]: test /a: the value there is another one"},
		"Missing":      {`{a: 1}`, []op{{Op: "remove", Path: "/a"}, {Op: "remove", Path: "/b/c"}}, "", "patches[1]: remove /b/c: there is nothing at that path"},
		"AddBelowNothing": {`{a: 1}`, []op{value(op{Op: "add", Path: "/b/c"}, "x")}, "",
			"patches[0]: add /b/c: there is no /b; add it before, by {op: add, path: /b, value: {}}"},
		"AppendToNothing": {`{a: {b~c: {}}}`, []op{value(op{Op: "add", Path: "/a/b~0c/list/-"}, "x")}, "",
			"patches[0]: add /a/b~0c/list/-: there is no /a/b~0c/list; add it before, by {op: add, path: /a/b~0c/list, value: []}"},
		"SlashInName": {`{metadata: {annotations: {}}}`, []op{value(op{Op: "add", Path: "/metadata/annotations/example.org/a"}, "x")}, "",
			"patches[0]: add /metadata/annotations/example.org/a: there is no /metadata/annotations/example.org; a / within a name is written ~1: /metadata/annotations/example.org~1a"},
		"BeyondTheEnd": {`{a: [1]}`, []op{value(op{Op: "add", Path: "/a/3"}, "x")}, "", "patches[0]: add /a/3: there is nothing at that path"},
		"NoSlash":      {`{}`, []op{value(op{Op: "add", Path: "a"}, "x")}, "", `patches[0]: path "a" must name a field, such as /values/tolerations/-`},
		"NoValue":      {`{}`, []op{{Op: "add", Path: "/a"}}, "", "patches[0]: add needs a value; a null is written by merging it"},
		"NoFrom":       {`{}`, []op{{Op: "copy", Path: "/a"}}, "", "patches[0]: copy needs from"},
		"WholeGone":    {`{a: 1}`, []op{value(op{Op: "replace", Path: "/"}, "x")}, "", "patches[0]: path \"/\" must name a field, such as /values/tolerations/-"},
		"UnknownOp":    {`{}`, []op{{Op: "drop", Path: "/a"}}, "", `patches[0]: op "drop" is none of add, remove, replace, move, copy, test`},
		"CopyBombed":   {`{a: ` + string(make200k()) + `}`, bomb(), "", "patches[5]: copy /b: copies more than 1048576 bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := merge.NewPatch(tc.ops)
			in := doc(t, tc.in)
			var got map[string]any
			if err == nil {
				got, err = p.Apply(in, merge.Options{})
			}
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Fatalf("want %q, got %v", tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			must.Equal(t, doc(t, tc.want), got)
			if d := cmp.Diff(doc(t, tc.in), in); d != "" {
				t.Errorf("the document was changed:\n%s", d)
			}
		})
	}
}

func make200k() []byte {
	b := make([]byte, 200_000)
	for i := range b {
		b[i] = 'x'
	}
	return b
}

func bomb() []merge.Operation {
	var ops []merge.Operation
	for range 20 {
		ops = append(ops, merge.Operation{Op: "copy", From: "/a", Path: "/b"})
	}
	return ops
}

func TestTrace(t *testing.T) {
	base := doc(t, `{interval: 1m, values: {a: 1, deep: {b: 2, c: 3}, list: [1]}}`)
	trace := merge.NewTrace(base, "base")
	merge.Merge(base, doc(t, `{values: {a: 2, deep: {b: 5}, new: {x: 1}}, interval: null}`), merge.Options{KeepNull: inValues, Layer: "eu", Trace: trace})
	p, err := merge.NewPatch([]merge.Operation{{Op: "add", Path: "/values/list/-", Value: int64(2), HasValue: true}, {Op: "remove", Path: "/values/deep/c"}})
	if err != nil {
		t.Fatal(err)
	}
	must.Get(p.Apply(base, merge.Options{Layer: "patched", Trace: trace})).Or(t)
	got := map[string]string{}
	for _, f := range trace.Fields() {
		raw, _ := json.Marshal(f)
		got[string(raw)] = trace.Layer(f)
	}
	want := map[string]string{
		`["values","a"]`: "eu", `["values","deep","b"]`: "eu", `["values","list"]`: "patched", `["values","new","x"]`: "eu",
	}
	must.Equal(t, want, got)
	if l := trace.Layer([]string{"values", "list", "0"}); l != "patched" {
		t.Errorf("an item of a list is the list's: %q", l)
	}
}

// FuzzMerge holds the merge to a library that does RFC 7386 on bytes, and to its own promises.
func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"a":1,"values":{"x":null}}`), []byte(`{"a":null,"values":{"x":{"y":null}}}`))
	f.Add([]byte(`{"a":{"b":[1,2]}}`), []byte(`{"a":{"b":{"c":1}}}`))
	f.Add([]byte(`{}`), []byte(`{"a":{"b":{"c":{}}}}`))
	f.Fuzz(func(t *testing.T, target, patch []byte) {
		a, b := map[string]any{}, map[string]any{}
		if utiljson.Unmarshal(target, &a) != nil || utiljson.Unmarshal(patch, &b) != nil || a == nil || b == nil {
			t.Skip("not two objects")
		}
		before, _ := json.Marshal(b)
		mine, _ := utilCopy(a)
		merge.Merge(mine, b, merge.Options{})
		if after, _ := json.Marshal(b); string(after) != string(before) {
			t.Fatal("the patch was changed")
		}
		again, _ := utilCopy(mine)
		merge.Merge(again, b, merge.Options{})
		if !reflect.DeepEqual(again, mine) {
			t.Fatalf("merging twice differs: %v and %v", mine, again)
		}
		if hasNull(a) {
			return // the library takes nulls away that were in the target
		}
		rawA, _ := json.Marshal(a)
		want, err := jsonpatch.MergePatch(rawA, before)
		if err != nil {
			return
		}
		theirs := map[string]any{}
		must.Do(t, utiljson.Unmarshal(want, &theirs))
		if !reflect.DeepEqual(mine, theirs) {
			t.Fatalf("%s + %s: got %v, want %v", rawA, before, mine, theirs)
		}
	})
}

// FuzzPatch: whatever the operations, no panic, and the document is not changed.
func FuzzPatch(f *testing.F) {
	f.Add([]byte(`{"a":[1,2]}`), "add", "/a/-", "", []byte(`3`))
	f.Add([]byte(`{"a":{"b":1}}`), "move", "/c", "/a", []byte(``))
	f.Add([]byte(`{"a":{"b":1}}`), "move", "/a/b/c", "/a", []byte(``))
	f.Add([]byte(`{"a":[null]}`), "remove", "/a/0", "", []byte(``))
	f.Fuzz(func(t *testing.T, target []byte, op, path, from string, value []byte) {
		in := map[string]any{}
		if utiljson.Unmarshal(target, &in) != nil || in == nil {
			t.Skip("not an object")
		}
		o := merge.Operation{Op: op, Path: path, From: from}
		o.HasValue = utiljson.Unmarshal(value, &o.Value) == nil
		p, err := merge.NewPatch([]merge.Operation{o})
		if err != nil {
			return
		}
		before, _ := json.Marshal(in)
		_, _ = p.Apply(in, merge.Options{Layer: "x", Trace: merge.NewTrace(in, "base")})
		if after, _ := json.Marshal(in); string(after) != string(before) {
			t.Fatal("the document was changed")
		}
	})
}

func utilCopy(in map[string]any) (map[string]any, error) {
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, utiljson.Unmarshal(raw, &out)
}

func hasNull(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, x := range v {
			if hasNull(x) {
				return true
			}
		}
	case []any:
		for _, x := range v {
			if hasNull(x) {
				return true
			}
		}
	}
	return false
}
