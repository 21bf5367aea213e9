package multus

import (
	"strings"
)

// peelPlugin takes libcni's `plugin type="t" name="n" failed (verb): `. Older
// libcni had no such wrapper.
func (f *Failure) peelPlugin() bool {
	inner := Failure{Text: f.Text}
	typ, ok := inner.cutQuoted("plugin type=", " ")
	if !ok {
		return false
	}
	if _, ok := inner.cutQuoted("name=", " "); !ok {
		inner.cut("name= ")
	}
	rest, ok := strings.CutPrefix(inner.Text, "failed (")
	if !ok {
		return false
	}
	verb, rest, ok := strings.Cut(rest, "): ")
	if !ok || len(verb) > 16 {
		return false
	}
	f.Text = rest
	f.Teardown = f.Teardown || verb == "delete" && !f.Reached(LayerMultus)
	f.add(LayerPlugin, typ)
	return true
}

// peelShim takes the thick plugin's shim.
func (f *Failure) peelShim() bool {
	if !f.cut("CmdAdd (shim): ", "CmdDel (shim): ", "CmdCheck (shim): ", "CmdStatus (shim): ", "CmdGC (shim): ") {
		return false
	}
	f.add(LayerShim, "")
	return true
}

// peelDaemon takes what the daemon wraps around Multus' error: the HTTP answer
// as the shim prints it, the request it echoes, and its own first words.
func (f *Failure) peelDaemon() bool {
	if rest, ok := strings.CutPrefix(f.Text, "CNI request failed with status "); ok {
		_, body, ok := strings.Cut(rest, ": '")
		if !ok {
			return false
		}
		f.Text = answerBody(body)
		f.add(LayerDaemon, "")
		return true
	}
	if strings.HasPrefix(f.Text, `ContainerID:"`) || strings.HasPrefix(f.Text, "&{ContainerID:") {
		// v4.0.x prints the request twice, one of them with its bytes as numbers.
		_, rest, ok := strings.Cut(f.Text, " ERRORED: ")
		if !ok {
			return false
		}
		f.Text = rest
		f.addOnce(LayerDaemon)
		return true
	}
	for _, verb := range []string{"configuring", "removing", "checking"} {
		rest, ok := strings.CutPrefix(f.Text, "error "+verb+" pod [")
		if !ok {
			continue
		}
		if _, rest, ok = strings.Cut(rest, "] networking: "); ok {
			f.Text = rest
			f.addOnce(LayerDaemon)
			return true
		}
	}
	return false
}

// answerBody takes the closing quote and the echoed StdinData off an HTTP
// answer. The newline before the quote comes from http.Error.
func answerBody(body string) string {
	if i := strings.LastIndex(body, "': StdinData: "); i >= 0 {
		body = body[:i]
	} else {
		body = strings.TrimSuffix(strings.TrimRight(body, " \r\n"), "'")
	}
	return strings.TrimRight(strings.TrimSuffix(strings.TrimRight(body, " \r\n"), `\n`), " \r\n")
}

func (f *Failure) addOnce(kind LayerKind) {
	if f.Innermost() != kind {
		f.add(kind, "")
	}
}

// peelMultus takes Multus' own prefix `Multus: [ns/pod/uid]: ` and that of a
// delegate, `[ns/pod/uid:net]: error adding container to network "net": `.
func (f *Failure) peelMultus() bool {
	text, own := strings.CutPrefix(f.Text, "Multus: ")
	scope, rest, bracketed := cutScope(text)
	if bracketed {
		f.Text = rest
		if _, net, ok := strings.Cut(scope, ":"); ok {
			f.cutAdding()
			f.add(LayerDelegate, net)
			return true
		}
		f.add(LayerMultus, "")
		return true
	}
	if own {
		f.Text = text
		f.add(LayerMultus, "")
		return true
	}
	return f.peelAdding()
}

// cutScope reads `[ns/pod/uid]: ` or `[ns/pod/uid:net]: ` off the front.
func cutScope(text string) (scope, rest string, ok bool) {
	const maxScope = 1024 // namespace, name and UID, a network's name
	if !strings.HasPrefix(text, "[") {
		return "", "", false
	}
	end := strings.Index(text[:min(len(text), maxScope)], "]: ")
	if end < 0 {
		return "", "", false
	}
	scope = text[1:end]
	if !strings.Contains(scope, "/") || strings.ContainsAny(scope, " \n") {
		return "", "", false
	}
	return scope, text[end+len("]: "):], true
}

// peelAdding takes `error adding container to network "net": `, which v3 wrote
// behind Multus' own prefix and v4 writes behind the delegate's.
func (f *Failure) peelAdding() bool {
	net, ok := f.cutAdding()
	if ok {
		f.add(LayerDelegate, net)
	}
	return ok
}

func (f *Failure) cutAdding() (network string, ok bool) {
	for _, verb := range []string{
		"error adding container to", "error deleting container from", "error checking container in",
		"Err adding pod to", // v3.2 and before
	} {
		if net, ok := f.cutQuoted(verb+" network ", ": "); ok {
			return net, true
		}
	}
	return "", false
}

// peelLegacyDelegate takes the words v3 and early v4 put between Multus and the
// delegate.
func (f *Failure) peelLegacyDelegate() bool {
	head, _, ok := strings.Cut(f.Text[:min(len(f.Text), 256)], ": ")
	if !ok {
		return false
	}
	rest := f.Text[len(head)+len(": "):]
	switch strings.ToLower(head) {
	case "delegateadd", "delegatecheck", "delegatedel", "conflistadd", "conflistcheck", "conflistdel", "confadd", "confcheck", "confdel":
	default:
		if !strings.HasPrefix(head, "error in getting result from ") && head != "Err in tearing down failed plugins" && !isInvoking(head) {
			return false
		}
	}
	f.Text = rest
	f.addOnceDelegate(head)
	return true
}

func isInvoking(head string) bool {
	return (strings.HasPrefix(head, "error invoking ") || strings.HasPrefix(head, "error in invoke ")) && strings.Contains(head, ` - "`)
}

// addOnceDelegate notes a delegate where no delegate layer told of it yet; the
// name in `error invoking X - "name"` is the conf's of a list, the plugin type
// of a single configuration.
func (f *Failure) addOnceDelegate(head string) {
	name := ""
	if _, quoted, ok := strings.Cut(head, ` - "`); ok {
		name = strings.TrimSuffix(quoted, `"`)
	}
	switch {
	case !f.Reached(LayerDelegate):
		f.add(LayerDelegate, name)
	case f.Network() == "" && f.Innermost() == LayerDelegate:
		f.Layers[len(f.Layers)-1].Name = name
	}
}

// anchors are the beginnings of layers that are looked for behind an unknown
// wrapper.
var anchors = [...]string{`plugin type="`, "CmdAdd (shim): ", "CmdDel (shim): ", "CNI request failed with status ", "Multus: [", "Multus: Err ", "error adding container to network "}

// resync skips the words of a wrapper that is not known, as a runtime of
// another make or year puts around the layers that are. Once Multus was
// reached nothing is skipped: from there on a delegate may say what it likes.
func (f *Failure) resync() bool {
	if f.Reached(LayerMultus) || f.Reached(LayerDelegate) {
		return false
	}
	const window = 4096 // no wrapper is longer
	text := f.Text[:min(len(f.Text), window)]
	first := -1
	for _, a := range anchors {
		if i := strings.Index(text, a); i > 0 && (first < 0 || i < first) {
			first = i
		}
	}
	if first < 0 {
		return false
	}
	probe := Failure{Text: f.Text[first:]}
	if !probe.peel() {
		return false
	}
	f.Text = f.Text[first:]
	return true
}
