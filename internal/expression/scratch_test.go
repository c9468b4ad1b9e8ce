package expression

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestScratch(t *testing.T) {
	rep := strings.Repeat
	deep := func(n int) string { return rep("[", n) + "1" + rep("]", n) }
	deepm := func(n int) string { return rep("{'a':", n) + "1" + rep("}", n) }
	deepe := func(n int) string { return rep("[", n) + rep("]", n) }
	deepopt := func(n int) string { return rep("optional.of(", n) + "1" + rep(")", n) }
	for _, c := range []struct{ n, s string }{
		{"a", "[" + rep(deep(85)+",", 300) + "1]"},
		{"b", "[" + rep(deepe(85)+",", 300) + "1]"},
		{"c", rep(deep(85)+" == "+deep(85)+"||", 150) + "true"},
		{"c2", rep(deepe(85)+" == "+deepe(85)+"||", 150) + "true"},
		{"d", rep(deepm(85)+" == "+deepm(85)+"||", 50) + "true"},
		{"e", rep(deepopt(85)+" == "+deepopt(85)+"||", 25) + "true"},
		{"f", binds(14, deep(80), deep(70)[:70]+"$"+rep("]", 70), "$")},
		{"f2", binds(14, deepe(80), rep("[", 70)+"$"+rep("]", 70), "$ == $")},
		{"g", "[" + rep(deepe(85)+".map(x,x),", 200) + "1]"},
		{"h", binds(14, deepe(80), rep("[", 70)+"$, $"+rep("]", 70), "["+rep("$,", 5000)+"$]")},
		{"h2", binds(14, deepe(80), rep("[", 70)+"$, $"+rep("]", 70), rep("$==$||", 5000)+"true")},
		{"i", rep(deepm(85)+" == "+deepm(85)+"||", 50) + "true"},
		{"j", binds(14, "dyn(1)", rep("[", 70)+"$, $"+rep("]", 70), rep("$+$==$||", 5000)+"true")},
		{"k", rep("(true ? "+deepe(80)+" : "+deepe(80)+") == [] || ", 300) + "true"},
		{"l", rep("{'a': "+deepe(80)+"}.map(k, k) == [] || ", 300) + "true"},
		{"m", rep(deepe(80)+".flatten() == [] || ", 300) + "true"},
		{"n", "[" + rep("[].map(x, x),", 4000) + "1]"},
		{"o", "[" + rep("'abc'.matches('a'),", 3000) + "1]"},
		{"p", "[" + rep("'abc'.matches('(a?){900}'),", 2000) + "1]"},
		{"q", rep("vars.a+", 90) + "1"},
		{"r", "["+rep(rep("vars.a+", 90) + "1,", 90)+"1]"},
		{"s", "["+rep(rep("vars.a.map(x,", 16) + "1"+rep(")", 16)+",", 250)+"1]"},
		{"t", "["+rep("math.greatest("+rep("vars.a,", 1000) + "1),", 8)+"1]"},
		{"u", "["+rep("vars.a.sortBy(x,", 8) + "1"+rep(")", 8)+"]"},
	} {
		if len(c.s) > 65500 { fmt.Println(c.n, "too long", len(c.s)); continue }
		var a, b runtime.MemStats
		runtime.ReadMemStats(&a)
		start := time.Now()
		err := evalOnce("<<"+c.s+">>", Input{Vars: map[string]any{"a": int64(1)}})
		runtime.ReadMemStats(&b)
		fmt.Printf("%-4s %12v %6d MB %.100v\n", c.n, time.Since(start), (b.TotalAlloc-a.TotalAlloc)>>20, err)
	}
}
