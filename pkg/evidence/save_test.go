package evidence

import (
	"testing"

	"sigs.k8s.io/yaml"
)

// Whatever a container prints or a client writes can be saved and read again.
func TestYAMLTakesAnyCharacter(t *testing.T) {
	for _, r := range []rune{0, 0x07, 0x1b, '\t', '\n', '\r', 0x7f, 0x80, 0x85, 0x9b, 0x9f, 0xa0, 0x202e, 0x2028, 0xfeff, 0xfffd, 0xfffe, 0xffff, 0x1f600} {
		want := "before" + string(r) + "after \\u009b \"quoted\""
		text, err := YAML(map[string]string{"log": want})
		if err != nil {
			t.Errorf("%U: %v", r, err)
			continue
		}
		var got map[string]string
		if err := yaml.UnmarshalStrict(text, &got); err != nil || got["log"] != want {
			t.Errorf("%U: got %q, %v, from:\n%s", r, got["log"], err, text)
		}
	}
}
