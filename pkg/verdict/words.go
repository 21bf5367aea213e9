package verdict

import "strings"

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
		if before && (end == len(rest) || !isWordByte(rest[end])) {
			return true
		}
		rest = rest[end:]
	}
}

func isWordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-'
}
