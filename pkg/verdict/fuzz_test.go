package verdict

import (
	"encoding/json"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/multus"
)

// holds checks what is true of every verdict.
func holds(t *testing.T, e evidence.Evidence, v Verdict) {
	t.Helper()
	entry, ok := Lookup(v.Cause)
	if !ok {
		t.Fatalf("cause %q is not in the catalogue", v.Cause)
	}
	if v.Outcome != entry.Outcome && (!entry.Window || v.Outcome != Inconclusive) {
		t.Errorf("%s with outcome %s", v.Cause, v.Outcome)
	}
	if v.Message == "" || v.Next == "" || strings.Contains(v.Next, "<") && !strings.Contains(e.Canary.String()+string(mustJSON(t, e)), "<") {
		t.Errorf("%s: message %q, next %q", v.Cause, v.Message, v.Next)
	}
	if v.Outcome == Pass && !attachmentShown(&e) {
		t.Errorf("%s although the attachment is shown nowhere", v.Cause)
	}
	if v.Outcome != Pass && v.Cause == AttemptInProgress && v.Settled {
		t.Error("an attempt in progress is settled")
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// attachmentShown looks for the attachments asked for in another way than the
// rules: by the words of the events of the canary's UID and by the annotation's
// plain JSON.
func attachmentShown(e *evidence.Evidence) bool {
	pod := e.CanaryPod()
	if pod == nil || pod.UID == "" {
		return false
	}
	sels, err := multus.RequestedNetworks(pod)
	if err != nil || len(sels) == 0 {
		return false
	}
	for _, sel := range sels {
		if !shownByEvent(e, pod, sel) && !shownByStatus(pod, sel) {
			return false
		}
	}
	return true
}

func shownByEvent(e *evidence.Evidence, pod *corev1.Pod, sel multus.Selection) bool {
	return slices.ContainsFunc(e.Events, func(ev corev1.Event) bool {
		if ev.InvolvedObject.UID != pod.UID || ev.Reason != "AddedInterface" || !strings.Contains(multus.Plain(ev.Message), "Add "+sel.Interface+" [") {
			return false
		}
		return allIn(sel.IPRequest, strings.FieldsFunc(multus.Plain(ev.Message), func(r rune) bool { return r == '[' || r == ']' || r == ' ' }))
	})
}

func shownByStatus(pod *corev1.Pod, sel multus.Selection) bool {
	for _, key := range []string{nadv1.NetworkStatusAnnot, multus.LegacyStatusAnnot} {
		var entries []struct {
			Name, Interface string
			IPs             []string
		}
		if json.Unmarshal([]byte(pod.Annotations[key]), &entries) != nil {
			continue
		}
		var shown []string
		found := false
		for _, entry := range entries {
			if entry.Interface == sel.Interface || entry.Interface == "" && entry.Name == sel.Network() {
				found, shown = true, append(shown, entry.IPs...)
			}
		}
		if found && allIn(sel.IPRequest, shown) {
			return true
		}
	}
	return false
}

// allIn reports that every address asked for that is one is among the texts.
func allIn(want, texts []string) bool {
	for _, w := range want {
		a, ok := addressOf(w)
		if ok && !slices.ContainsFunc(texts, func(s string) bool { b, ok := addressOf(s); return ok && a == b }) {
			return false
		}
	}
	return true
}

func addressOf(s string) (netip.Addr, bool) {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "/")
	a, err := netip.ParseAddr(s)
	return a.Unmap().WithZone(""), err == nil
}

// FuzzDecide builds evidence from loose parts, so that the fuzzer gets far into
// the rules.
func FuzzDecide(f *testing.F) {
	f.Add(`[{"name":"storage","ips":["198.51.100.7/24"]}]`, statusJSON, "Add net1 [198.51.100.7/24] from lab/storage", "Failed to create pod sandbox: x", "guard says", netConf, uint16(0), int16(60))
	f.Add("storage", "[]", "Add net1 [] from lab/storage", containerd(thin(delegate(bySecondary, "Link not found")[0])), "no reply from 198.51.100.1", "", uint16(0xffff), int16(-7))
	f.Add("storage,lab/b@c", "null", "", containerd(shim(noSocket)), "duplicate address", `{"type":"x","ipam":{"type":"dhcp"}}`, uint16(0x0155), int16(300))
	f.Fuzz(func(t *testing.T, asked, statusText, added, failure, guard, conf string, bits uint16, seconds int16) {
		e := build(networks(asked), nadConfig(conf))
		for i, c := range fuzzChanges(statusText, added, failure, guard) {
			if bits&(1<<i) != 0 {
				c(&e)
			}
		}
		holds(t, e, Decide(e, start.Add(time.Duration(seconds)*time.Second)))
	})
}

func fuzzChanges(statusText, added, failure, guard string) []change {
	return []change{
		status(statusText),
		event(4*time.Second, "AddedInterface", added, "multus"),
		eventOf(otherUID, 4*time.Second, 1, "AddedInterface", added, "multus"),
		failing(failure),
		event(9*time.Second, "NoNetworkFound", failure, "multus"),
		started(5 * time.Second),
		done(),
		guardSays(guard),
		sandboxReady(),
		event(6*time.Second, "SandboxChanged", "x", "kubelet"),
		rebooted(7 * time.Second),
		deleting(30),
		noDaemonSet(),
		event(8*time.Second, "FailedKillPod", failure, "kubelet"),
		event(8*time.Second, "FailedMount", failure, "kubelet"),
		without(evidence.Networks),
	}
}

// FuzzDecideFiles judges whatever a file may hold.
func FuzzDecideFiles(f *testing.F) {
	for _, id := range []string{"C02", "C42", "C60", "C61", "C77", "C84", "C87", "C92", "C101"} {
		text, err := os.ReadFile("testdata/cases/" + id + "/evidence.yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := evidence.Load(strings.NewReader(text), evidence.Options{Canary: evidence.Ref{Namespace: "downloads", Name: "vlan50-canary"}})
		if err != nil {
			return
		}
		holds(t, e, Decide(e, e.CollectedAt))
	})
}
