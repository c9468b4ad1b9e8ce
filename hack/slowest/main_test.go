// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestShow(t *testing.T) {
	in := strings.Join([]string{
		`{"Action":"start","Package":"example.org/a"}`,
		`{"Action":"output","Package":"example.org/a","Test":"TestGood","Output":"what a good test says\n"}`,
		`{"Action":"pass","Package":"example.org/a","Test":"TestGood","Elapsed":3}`,
		`{"Action":"output","Package":"example.org/a","Test":"TestBad/part","Output":"why it failed\n"}`,
		`{"Action":"fail","Package":"example.org/a","Test":"TestBad/part","Elapsed":9}`,
		`{"Action":"output","Package":"example.org/a","Test":"TestBad","Output":"--- FAIL: TestBad\n"}`,
		`{"Action":"fail","Package":"example.org/a","Test":"TestBad","Elapsed":9.5}`,
		`{"Action":"pass","Package":"example.org/a","Test":"TestQuick","Elapsed":0.1}`,
		`{"Action":"output","Package":"example.org/a","Test":"TestHangs","Output":"panic: test timed out\n"}`,
		`{"Action":"output","Package":"example.org/c","Output":"PASS\n"}`,
		`{"Action":"output","Package":"example.org/a","Output":"FAIL\texample.org/a\t12s\n"}`,
		`{"Action":"fail","Package":"example.org/a","Elapsed":12}`,
		`example.org/b: it does not compile`, ``,
	}, "\n")
	var out bytes.Buffer
	show(strings.NewReader(in), &out, time.Now())
	want := "why it failed\n--- FAIL: TestBad\nFAIL\texample.org/a\t12s\npanic: test timed out\nexample.org/b: it does not compile\nthe slowest tests of 0s:\n" +
		"     9.5s  a TestBad\n     3.0s  a TestGood\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
