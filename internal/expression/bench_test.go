// SPDX-License-Identifier: Apache-2.0

package expression

import "testing"

func BenchmarkEval(b *testing.B) {
	in := Input{Cluster: &Cluster{Name: "eu-1"}, Vars: map[string]any{"domain": "example.com"}}
	t, err := Compile(`<< cluster.name + "." + vars.domain >>`)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := t.Eval(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(`<< cluster.name + "." + vars.domain >>`); err != nil {
			b.Fatal(err)
		}
	}
}
