// Package report renders verdicts and progress. Every string from the cluster
// is hostile and passes Clean on its way in.
package report

import (
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

// Clean escapes what could steer a terminal or reorder text: C0 controls but
// newline and tab, DEL, C1 controls, bidi controls, and bytes that are no UTF-8.
// Escaping the ESC and the C1 introducers disarms every sequence behind them.
func Clean(text string) string {
	if strings.IndexFunc(text, hostile) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case !hostile(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += size
	}
	return b.String()
}

// Line is Clean on one line: newlines and tabs become visible too.
func Line(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", " ").Replace(Clean(text))
}

func hostile(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true // bidi marks, embeddings, overrides and isolates
	case r == 0x2028, r == 0x2029:
		return true // line separators that only some programs take for one
	}
	return false
}

// Harmless makes every string of a document harmless, in place: the machine
// formats print what they are given.
func Harmless(document any) { harmless(reflect.ValueOf(document)) }

func harmless(v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			harmless(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			harmless(field)
		}
	case reflect.Slice:
		for i := range v.Len() {
			harmless(v.Index(i))
		}
	case reflect.Map:
		harmlessMap(v)
	case reflect.String:
		if v.CanSet() {
			v.SetString(Clean(v.String()))
		}
	default:
	}
}

// harmlessMap puts a new map in the place of one: what lies in a map cannot be
// changed there, and the map may be shared with the evidence.
func harmlessMap(v reflect.Value) {
	if v.IsNil() || !v.CanSet() {
		return
	}
	clean := reflect.MakeMap(v.Type())
	for key, value := range v.Seq2() {
		k, e := reflect.New(key.Type()).Elem(), reflect.New(value.Type()).Elem()
		k.Set(key)
		e.Set(value)
		harmless(k)
		harmless(e)
		clean.SetMapIndex(k, e)
	}
	v.Set(clean)
}
