package multus

import (
	"strconv"
	"strings"
)

// LayerKind says who wrote a part of a failure message.
type LayerKind int

// The layers from outside to inside. A message shows those it passed through:
// thin Multus has neither shim nor daemon, a runtime's own trouble ends at the
// runtime.
const (
	LayerKubelet LayerKind = iota + 1
	LayerRuntime
	// LayerPlugin is libcni's note of the plugin it called.
	LayerPlugin
	LayerShim
	LayerDaemon
	// LayerMultus is Multus' own part, before any delegate.
	LayerMultus
	// LayerDelegate is the call of one delegate.
	LayerDelegate
)

// Layer is one part of a failure message.
type Layer struct {
	Kind LayerKind
	// Name is the plugin type of LayerPlugin, the CNI conf's network name of
	// LayerDelegate, the runtime's name of LayerRuntime, the gRPC code of
	// LayerKubelet.
	Name string
}

// The runtimes that messages tell apart.
const (
	Containerd = "containerd"
	CRIO       = "cri-o"
	Dockershim = "dockershim"
)

// Failure is one failure message, taken apart.
type Failure struct {
	// Combined: kubelet folded several events; the text is the newest one's.
	Combined bool
	// Teardown: the sandbox was being removed, not made.
	Teardown bool
	// Layers go from the outermost to the innermost.
	Layers []Layer
	// Text is what the innermost layer said.
	Text string
}

// maxLayers bounds the work on a message made to be parsed for ever; the
// deepest real one has about twelve.
const maxLayers = 40

// ParseFailure takes a kubelet event's message apart, layer by layer. It never
// fails: what is not understood stays in Text.
func ParseFailure(message string) Failure {
	f := Failure{Text: Plain(message)}
	if rest, ok := strings.CutPrefix(f.Text, CombinedPrefix); ok {
		f.Combined, f.Text = true, rest
	}
	for range maxLayers {
		f.Text = strings.TrimLeft(f.Text, " \t\r\n")
		if !f.peel() && !f.resync() {
			break
		}
	}
	f.Text = strings.TrimSpace(f.Text)
	return f
}

// CombinedPrefix stands before the message of an aggregated event (client-go
// tools/record, EventAggregatorByReasonMessageFunc).
const CombinedPrefix = "(combined from similar events): "

// Reached reports whether the message passed through a layer of this kind.
func (f *Failure) Reached(kind LayerKind) bool {
	for _, l := range f.Layers {
		if l.Kind == kind {
			return true
		}
	}
	return false
}

// Names lists the names of one kind of layer, outermost first.
func (f *Failure) Names(kind LayerKind) []string {
	var names []string
	for _, l := range f.Layers {
		if l.Kind == kind && l.Name != "" {
			names = append(names, l.Name)
		}
	}
	return names
}

// Network is the CNI conf's name of the delegate that failed; empty where no
// delegate was called.
func (f *Failure) Network() string {
	if names := f.Names(LayerDelegate); len(names) > 0 {
		return names[len(names)-1]
	}
	return ""
}

// Innermost is the kind of the deepest layer, 0 for a message without any.
func (f *Failure) Innermost() LayerKind {
	if len(f.Layers) == 0 {
		return 0
	}
	return f.Layers[len(f.Layers)-1].Kind
}

func (f *Failure) add(kind LayerKind, name string) {
	f.Layers = append(f.Layers, Layer{Kind: kind, Name: name})
}

// peel takes one layer off the front of the text.
func (f *Failure) peel() bool {
	return f.peelKubelet() || f.peelRuntime() || f.peelPlugin() ||
		f.peelShim() || f.peelDaemon() || f.peelMultus() || f.peelLegacyDelegate()
}

// cut takes a fixed prefix off the text.
func (f *Failure) cut(prefixes ...string) bool {
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(f.Text, p); ok {
			f.Text = rest
			return true
		}
	}
	return false
}

// cutQuoted takes a prefix, a quoted string and a suffix off the text and gives
// the string.
func (f *Failure) cutQuoted(prefix, suffix string) (string, bool) {
	rest, ok := strings.CutPrefix(f.Text, prefix)
	if !ok {
		return "", false
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return "", false
	}
	rest, ok = strings.CutPrefix(rest[len(quoted):], suffix)
	if !ok {
		return "", false
	}
	f.Text = rest
	return unquote(quoted), true
}

func unquote(quoted string) string {
	if s, err := strconv.Unquote(quoted); err == nil {
		return s
	}
	return strings.Trim(quoted, `"`)
}

// peelKubelet takes kubelet's own words and the gRPC wrapper.
func (f *Failure) peelKubelet() bool {
	switch {
	case f.cut("Failed to create pod sandbox: ", "Failed create pod sandbox: ", "Unable to get pod sandbox status: ",
		"network is not ready: ", "error determining status: "):
		f.add(LayerKubelet, "")
		return true
	case f.cut("error killing pod: ", "error stopping pod: "):
		f.Teardown = true
		f.unwrapSync(`failed to "KillPodSandbox" for `)
		f.add(LayerKubelet, "")
		return true
	case f.cut("Error syncing pod, skipping: ", "error syncing pod: "):
		f.unwrapSync(`failed to "CreatePodSandbox" for `)
		f.add(LayerKubelet, "")
		return true
	}
	rest, ok := strings.CutPrefix(f.Text, "rpc error: code = ")
	if !ok {
		return false
	}
	code, rest, ok := strings.Cut(rest, " desc = ")
	if !ok || len(code) > 32 {
		return false
	}
	f.Text = rest
	f.add(LayerKubelet, code)
	return true
}

// unwrapSync opens kubelet's `failed to "Verb" for "uid" with SomeError: "..."`,
// alone or in a list of such; the inner text is quoted as Go quotes.
func (f *Failure) unwrapSync(opening string) {
	_, rest, ok := strings.Cut(f.Text, opening)
	if !ok {
		return
	}
	_, rest, ok = strings.Cut(rest, ": ")
	if !ok {
		return
	}
	if quoted, err := strconv.QuotedPrefix(rest); err == nil {
		f.Text = unquote(quoted)
		return
	}
	// A message cut short has no closing quote any more.
	f.Text = strings.ReplaceAll(strings.TrimPrefix(rest, `"`), `\"`, `"`)
}
