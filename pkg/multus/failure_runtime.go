package multus

import (
	"strings"
)

// peelRuntime takes the wrapper of containerd, cri-o or dockershim.
func (f *Failure) peelRuntime() bool {
	return f.peelContainerd() || f.peelCRIO() || f.peelDockershim()
}

func (f *Failure) peelContainerd() bool {
	for _, w := range []struct {
		prefix   string
		teardown bool
	}{
		{"failed to setup network for sandbox ", false},
		{"failed to set up network for sandbox ", false},
		{"failed to destroy network for sandbox ", true},
	} {
		if _, ok := f.cutQuoted(w.prefix, ": "); ok {
			f.Teardown = f.Teardown || w.teardown
			f.add(LayerRuntime, Containerd)
			return true
		}
	}
	return false
}

func (f *Failure) peelCRIO() bool { return f.peelCRIOSandbox() || f.peelCRIOPod() }

// peelCRIOSandbox takes `<what failed> k8s_<pod>_<ns>_<uid>_<attempt>(<id>): `.
func (f *Failure) peelCRIOSandbox() bool {
	for _, w := range []struct {
		prefix   string
		teardown bool
	}{
		{"failed to create pod network sandbox ", false},
		{"failed to get network status for pod sandbox ", false},
		{"failed to destroy network for pod sandbox ", true},
	} {
		rest, ok := strings.CutPrefix(f.Text, w.prefix)
		if !ok {
			continue
		}
		name, rest, ok := strings.Cut(rest, "): ")
		if !ok || strings.ContainsAny(name, " \n") {
			continue
		}
		f.Text, f.Teardown = rest, f.Teardown || w.teardown
		f.add(LayerRuntime, CRIO)
		return true
	}
	return false
}

// peelCRIOPod takes `error adding pod <ns>_<pod> to CNI network "<net>": `.
func (f *Failure) peelCRIOPod() bool {
	const longest = 520 // namespace and name at their limits
	for _, w := range []struct{ verb, word string }{
		{"error adding pod ", "to"}, {"error removing pod ", "from"}, {"error checking pod ", "for"},
	} {
		rest, ok := strings.CutPrefix(f.Text, w.verb)
		if !ok {
			continue
		}
		pod, rest, ok := strings.Cut(rest, " ")
		if !ok || len(pod) > longest {
			continue
		}
		inner := Failure{Text: rest}
		if _, ok := inner.cutQuoted(w.word+" CNI network ", ": "); ok {
			f.Text = inner.Text
			f.add(LayerRuntime, CRIO)
			return true
		}
	}
	return false
}

func (f *Failure) peelDockershim() bool {
	text := strings.TrimPrefix(f.Text, "[")
	for _, prefix := range []string{"failed to set up sandbox container ", "failed to clean up sandbox container "} {
		inner := Failure{Text: text}
		if _, ok := inner.cutQuoted(prefix, " network for pod "); !ok {
			continue
		}
		if _, ok := inner.cutQuoted("", ": "); !ok {
			continue
		}
		f.Text = inner.Text
		if head, _, ok := strings.Cut(f.Text, ", failed to clean up sandbox container "); ok {
			f.Text = head
		}
		f.Teardown = f.Teardown || strings.HasPrefix(prefix, "failed to clean")
		f.add(LayerRuntime, Dockershim)
		return true
	}
	for _, prefix := range []string{"networkPlugin cni failed to set up pod ", "networkPlugin cni failed to teardown pod ", "NetworkPlugin cni failed to set up pod ", "NetworkPlugin cni failed to teardown pod "} {
		if _, ok := f.cutQuoted(prefix, " network: "); ok {
			f.Teardown = f.Teardown || strings.Contains(prefix, "teardown")
			f.add(LayerRuntime, Dockershim)
			return true
		}
	}
	return false
}
