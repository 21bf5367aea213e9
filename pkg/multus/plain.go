package multus

import (
	"strings"
	"unicode/utf8"
)

// Plain takes terminal sequences and control characters out of a text, so that
// they cannot hide or change the words that are looked for. It is for matching
// alone: what is shown to people keeps its raw form until it is rendered.
func Plain(text string) string {
	if strings.IndexFunc(text, isControl) < 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		if n := sequenceLength(text[i:]); n > 0 {
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if !isControl(r) {
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return b.String()
}

// isControl: C0 but newline and tab, DEL, C1 and the overrides of text
// direction.
func isControl(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < ' ', r >= 0x7f && r <= 0x9f:
		return true
	}
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f
}

// sequenceLength measures the terminal sequence a text begins with: CSI up to
// its final byte, OSC and its kin up to BEL or ST. 0 where it begins with none,
// or with one that does not end soon.
func sequenceLength(text string) int {
	const longest = 256
	if len(text) < 2 || text[0] != 0x1b {
		return 0
	}
	limit := min(len(text), longest)
	switch text[1] {
	case '[':
		for i := 2; i < limit; i++ {
			if text[i] >= 0x40 && text[i] <= 0x7e {
				return i + 1
			}
		}
	case ']', 'P', '^', '_', 'X':
		for i := 2; i < limit; i++ {
			if text[i] == 0x07 {
				return i + 1
			}
			if text[i] == 0x1b && i+1 < limit && text[i+1] == '\\' {
				return i + 2
			}
		}
	}
	return 0
}
