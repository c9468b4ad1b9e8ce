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
		`{"Action":"pass","Package":"example.org/b","Test":"TestLong/on_one/it_arrives","Elapsed":100}`,
		`{"Action":"pass","Package":"example.org/b","Test":"TestLong/on_one/it_leaves","Elapsed":20}`,
		`{"Action":"pass","Package":"example.org/b","Test":"TestLong/on_one","Elapsed":120.5}`,
		`{"Action":"pass","Package":"example.org/b","Test":"TestLong/at_the_end","Elapsed":10}`,
		`{"Action":"pass","Package":"example.org/b","Test":"TestLong/and_then","Elapsed":5}`,
		`{"Action":"pass","Package":"example.org/b","Test":"TestLong","Elapsed":151}`,
		`{"Action":"output","Package":"example.org/a","Test":"TestHangs","Output":"panic: test timed out\n"}`,
		`{"Action":"output","Package":"example.org/c","Output":"PASS\n"}`,
		`{"Action":"output","Package":"example.org/a","Output":"FAIL\texample.org/a\t12s\n"}`,
		`{"Action":"fail","Package":"example.org/a","Elapsed":12}`,
		`example.org/b: it does not compile`, ``,
	}, "\n")
	var out bytes.Buffer
	show(strings.NewReader(in), &out, time.Now())
	want := `why it failed
--- FAIL: TestBad
FAIL	example.org/a	12s
panic: test timed out
example.org/b: it does not compile

the slowest tests of 0s, and the slowest steps of each:
  151.0 s           b TestLong
           100.0 s    on one/it arrives
            20.0 s    on one/it leaves
            10.0 s    at the end
    9.5 s           a TestBad
             9.0 s    part
    3.0 s           a TestGood
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
