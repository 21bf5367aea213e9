package verdict

import (
	"slices"
	"strings"
)

func containsAny(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// says finds words in a text. A * in them stands for one word of the text that
// names something, so that both sides of it must belong to one sentence.
func says(text, words string) bool {
	before, after, gap := strings.Cut(words, "*")
	if !gap {
		return strings.Contains(text, words)
	}
	for rest := text; ; {
		_, found, ok := strings.Cut(rest, before)
		if !ok {
			return false
		}
		name := strings.IndexAny(found, " \t\n")
		if name < 0 {
			return false
		}
		// What follows may begin within the word, as its punctuation does.
		if strings.Index(found[:min(len(found), name+len(after))], after) > 0 {
			return true
		}
		rest = found
	}
}

func saysAny(text string, words []string) bool {
	for _, w := range words {
		if says(text, w) {
			return true
		}
	}
	return false
}

// hasWord finds a word that is not part of a longer one.
func hasWord(text, word string) bool {
	return behindWord(text, word, func(string) bool { return true })
}

// saysLast finds words after which no other comes in their sentence, but for one
// of those given.
func saysLast(text, words string, then []string) bool {
	return behindWord(text, words, func(rest string) bool {
		next := strings.TrimLeft(rest, " ")
		return next == "" || !isWordByte(next[0]) || slices.ContainsFunc(then, func(word string) bool {
			after, found := strings.CutPrefix(next, word)
			return found && (after == "" || !isWordByte(after[0]))
		})
	})
}

// behindWord asks of what stands behind each place of a word, until one is right.
func behindWord(text, word string, right func(rest string) bool) bool {
	if word == "" {
		return false
	}
	for rest := text; ; {
		i := strings.Index(rest, word)
		if i < 0 {
			return false
		}
		before := i == 0 || !isWordByte(rest[i-1])
		end := i + len(word)
		if before && (end == len(rest) || !isWordByte(rest[end])) && right(rest[end:]) {
			return true
		}
		rest = rest[end:]
	}
}

func isWordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-'
}
