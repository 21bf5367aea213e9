package multus

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"plain words\n\tstay":                       "plain words\n\tstay",
		"\x1b[2J\x1b[1;1H\x1b[32mPASS\x1b[0m\rword": "PASSword",
		"a\x1b]0;title\x07b\x1b]8;;x\x1b\\c":        "abc",
		"half \x1b[":                                "half [",
		"never ends \x1b]" + strings.Repeat("x", 9): "never ends ]xxxxxxxxx",
		"C1 \u009b31m and DEL \x7f.":                "C1 31m and DEL .",
		"bidi \u202ekcab\u202c \u2066x\u2069":       "bidi kcab x",
		"ümläut 字":                                  "ümläut 字",
		"\x1b":                                      "",
	} {
		if got := Plain(text); got != want {
			t.Errorf("%q gave %q, want %q", text, got, want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("\x1b[31mred\x1b]0;x\x07\u202e")
	f.Fuzz(func(t *testing.T, text string) {
		got := Plain(text)
		if strings.IndexFunc(got, isControl) >= 0 || len(got) > len(text) {
			t.Errorf("%q gave %q", text, got)
		}
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("%q gave broken UTF-8 %q", text, got)
		}
	})
}
