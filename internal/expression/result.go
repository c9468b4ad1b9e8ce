// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/chandler-hub/chandler/internal/jsontype"
)

// toJSON returns the result of a template that is one expression, and about how large it is, in bytes.
func toJSON(v ref.Val) (out any, size int, err error) {
	if o, ok := v.(*types.Optional); ok && !o.HasValue() {
		return Absent, 0, nil
	}
	w := writer{left: MaxText}
	out, err = w.value(v, 0)
	if s, ok := out.(string); ok {
		return out, len(s), err
	}
	return out, MaxText - w.left, err
}

// toText returns the result of an expression in a text.
func toText(v ref.Val) (string, error) {
	if o, ok := v.(*types.Optional); ok {
		if !o.HasValue() {
			return "", errors.New("an optional without a value cannot be inserted into text; use orValue")
		}
		return toText(o.GetValue())
	}
	w := writer{left: MaxText}
	switch v.(type) {
	case traits.Lister:
		return "", errors.New("a list cannot be inserted into text; use join, or let the expression be the whole string")
	case traits.Mapper, object:
		return "", errors.New("a map cannot be inserted into text; let the expression be the whole string")
	}
	out, err := w.value(v, 0)
	if err != nil {
		return "", err
	}
	switch out := out.(type) {
	case string:
		return out, nil
	case bool:
		return strconv.FormatBool(out), nil
	case int64:
		return strconv.FormatInt(out, 10), nil
	case float64:
		return number(out), nil
	}
	return "", errors.New("null cannot be inserted into text")
}

// number returns a number as JSON has it, but whole ones without an exponent.
func number(f float64) string {
	if f == 0 {
		return "0"
	}
	if f == math.Trunc(f) {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	out, _ := json.Marshal(f) // the caller has refused what JSON cannot hold
	return string(out)
}

// writer makes JSON values of CEL values. All of them are new, so that nothing is shared with the input.
type writer struct{ left int }

// item is what each value of a list or a map counts, beside its text.
const item = 16

func (w *writer) spend(n int) error {
	if w.left -= n; w.left < 0 {
		return errTooLarge
	}
	return nil
}

func (w *writer) value(v ref.Val, depth int) (any, error) {
	if depth > MaxNesting {
		return nil, fmt.Errorf("a value is nested deeper than the limit of %d", MaxNesting)
	}
	if err := w.spend(item); err != nil && depth > 0 {
		return nil, err
	}
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		if v > math.MaxInt64 {
			return nil, fmt.Errorf("%d is too large for a whole number in JSON", uint64(v))
		}
		return int64(v), nil
	case types.Double:
		if f := float64(v); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f, nil
		}
		return nil, fmt.Errorf("%v is not a number that JSON can hold", float64(v))
	case traits.Mapper:
		return w.mapping(v, depth)
	case traits.Lister:
		return w.list(v, depth)
	case object:
		return w.object(v, depth)
	case *types.Err: // of a field of an object
		return nil, v.Unwrap()
	case *types.Optional:
		if !v.HasValue() {
			return nil, errors.New("an optional without a value cannot be part of a list or map; use orValue, or ? before it")
		}
		return w.value(v.GetValue(), depth+1)
	}
	s, ok := text(v)
	if !ok {
		return nil, fmt.Errorf("a value of type %s cannot be a result", v.Type().TypeName())
	}
	return s, w.text(s, depth)
}

// text returns the text of a value that JSON has as a string.
func text(v ref.Val) (string, bool) {
	switch v := v.(type) {
	case types.String:
		return string(v), true
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(v), true
	case types.Timestamp, types.Duration:
		s, ok := v.ConvertToType(types.StringType).(types.String)
		return string(s), ok
	}
	// IPs, CIDRs, URLs, quantities and versions.
	s, ok := v.Value().(fmt.Stringer)
	if !ok {
		return "", false
	}
	return s.String(), true
}

// text pays for a text. Alone it may be as large as the limit, in a list or map it counts with the rest.
func (w *writer) text(s string, depth int) error {
	if depth == 0 && len(s) <= MaxText {
		return nil
	}
	return w.spend(len(s))
}

func (w *writer) list(l traits.Lister, depth int) (any, error) {
	out := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		v, err := w.value(it.Next(), depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (w *writer) mapping(m traits.Mapper, depth int) (any, error) {
	out := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		k := it.Next()
		key, ok := k.(types.String)
		if !ok {
			return nil, fmt.Errorf("a key of a map is of type %s, and must be %s", k.Type().TypeName(), jsontype.Text)
		}
		if err := w.spend(len(key)); err != nil {
			return nil, err
		}
		e, _ := m.Find(k)
		v, err := w.value(e, depth+1)
		if err != nil {
			return nil, err
		}
		out[string(key)] = v
	}
	return out, nil
}

func (w *writer) object(o object, depth int) (any, error) {
	out := map[string]any{}
	for _, name := range o.shape.names {
		v, err := w.value(o.Get(types.String(name)), depth+1)
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}
