package report_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/report"
)

func TestClean(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"plain":                                {"Add net1 [192.0.2.100/24] from downloads/vlan50", "Add net1 [192.0.2.100/24] from downloads/vlan50"},
		"empty":                                {"", ""},
		"newline and tab stay":                 {"a\n\tb", "a\n\tb"},
		"other languages stay":                 {"Übersicht 網絡 שלום 🙂", "Übersicht 網絡 שלום 🙂"},
		"a colour":                             {"\x1b[31mPASS\x1b[0m", `\x1b[31mPASS\x1b[0m`},
		"a window title (OSC)":                 {"\x1b]0;evil\x07", `\x1b]0;evil\x07`},
		"C1 introducers":                       {"\u009b31m \u009d0;x\u009c", `\x9b31m \x9d0;x\x9c`},
		"a raw C1 byte is no UTF-8":            {"\x9b31m", `\x9b31m`},
		"carriage return, backspace, NUL, DEL": {"ok\rFAIL\b\x00\x7f", `ok\x0dFAIL\x08\x00\x7f`},
		"a bidi override":                      {"abc\u202edef\u202c", `abc\u202edef\u202c`},
		"bidi marks and isolates":              {"\u200e\u200f\u061c\u2066\u2069", `\u200e\u200f\u061c\u2066\u2069`},
		"line separators":                      {"a\u2028b\u2029", `a\u2028b\u2029`},
		"broken UTF-8":                         {"a\xff\xc3b", `a\xff\xc3b`},
		"a real replacement character stays":   {"a\ufffdb", "a\ufffdb"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := report.Clean(test.text); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestLine(t *testing.T) {
	if got, want := report.Line("a\nPASS\tb\r\x1b"), `a\nPASS b\x0d\x1b`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"", "plain", "\x1b]0;x\a", "\u009b1m", "\xff\xfe", "a\u202eb", "\ufffd", "a\nb\tc", "\r\n", "\xc2", "\xc2\x9b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := report.Clean(text)
		if !utf8.ValidString(got) {
			t.Errorf("Clean(%q) = %q is no UTF-8", text, got)
		}
		if at := strings.IndexFunc(got, steers); at >= 0 {
			t.Errorf("Clean(%q) = %q steers at %d", text, got, at)
		}
		if again := report.Clean(got); again != got {
			t.Errorf("Clean(%q) = %q, and cleaned again %q", text, got, again)
		}
		if utf8.ValidString(text) && strings.IndexFunc(text, steers) < 0 && got != text {
			t.Errorf("harmless text was changed: %q to %q", text, got)
		}
		if line := report.Line(text); strings.ContainsAny(line, "\n\t\r") {
			t.Errorf("Line(%q) = %q has more than one line", text, line)
		}
	})
}

// steers are the runes that no output may hold, told otherwise than by the code
// that is tested.
func steers(r rune) bool {
	return r != '\n' && r != '\t' && (r < ' ' || r == 0x7f || r >= 0x80 && r <= 0x9f) ||
		strings.ContainsRune("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029", r)
}

// hostileText is put into every string of a result.
const hostileText = "x\x1b]0;owned\a\u202e\u009b2J\r\xff"

// Every string of a result, also one that is added later, reaches neither text
// nor document raw.
func TestHostileResult(t *testing.T) {
	result := passed()
	fill(reflect.ValueOf(&result.Verdict).Elem())
	fill(reflect.ValueOf(&result.Configuration).Elem())
	fill(reflect.ValueOf(&result.UID).Elem())
	fill(reflect.ValueOf(&result.Attempt.AttachReadyBy).Elem())
	hostile := evidence.Ref{Namespace: hostileText, Name: hostileText + "\nPASS"}
	document := report.Result(hostile, result)

	var out bytes.Buffer
	report.Text{Out: &out}.Verdict(document)
	report.Text{Out: &out, Wide: true}.Verdict(document)
	if at := strings.IndexFunc(out.String(), steers); at >= 0 || !strings.Contains(out.String(), `x\x1b]0;owned\x07`) {
		t.Errorf("text steers at %d: %q", at, out.String())
	}
	if strings.Contains(out.String(), "\nPASS") {
		t.Errorf("a name forged a line: %q", out.String())
	}
	visit(reflect.ValueOf(document), func(text string) {
		if strings.IndexFunc(text, steers) >= 0 || !utf8.ValidString(text) {
			t.Errorf("a string of the document steers: %q", text)
		}
	})
	if result.Configuration.Node != hostileText {
		t.Error("the evidence itself was changed")
	}
}

// fill puts hostile text into every string below v.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostileText)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for _, field := range v.Fields() {
			fill(field)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	default:
	}
}

// visit gives every string below v.
func visit(v reflect.Value, each func(string)) {
	switch v.Kind() {
	case reflect.String:
		each(v.String())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			visit(v.Elem(), each)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			if v.Type() != reflect.TypeFor[time.Time]() {
				visit(field, each)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			visit(v.Index(i), each)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			visit(key, each)
			visit(v.MapIndex(key), each)
		}
	default:
	}
}

func TestHostileProgress(t *testing.T) {
	var out bytes.Buffer
	note := canary.Note{Time: noon, Step: canary.StepGate, Text: hostileText + "\nPASS", Passing: true}
	report.Lines{Out: &out}.Note(note)
	report.Events{Out: &out}.Note(note)
	live := report.NewLive(&out, func() int { return 200 }, func() time.Time { return noon })
	live.Note(note)
	live.Close()
	text := strings.NewReplacer("\r\x1b[2K", "").Replace(out.String())
	if at := strings.IndexFunc(text, steers); at >= 0 || strings.Contains(text, "\nPASS") {
		t.Errorf("progress steers at %d: %q", at, text)
	}
}
