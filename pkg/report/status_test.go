package report

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
)

func statusNow() time.Time { return time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC) }

func before(d time.Duration) *metav1.Time { return new(metav1.NewTime(statusNow().Add(-d))) }

// siteStatus is a site as most people have it: the default names, one node.
func siteStatus() *v1alpha1.SiteStatus {
	line := func(mark v1alpha1.Mark, subject, text string) v1alpha1.StatusLine {
		return v1alpha1.StatusLine{Mark: mark, Subject: subject, Text: text}
	}
	return &v1alpha1.SiteStatus{Status: v1alpha1.SiteStatusStatus{
		State: v1alpha1.StateFreshPass, Ready: true, Message: "canary downloads/vlan50-canary passed, and nothing has changed since",
		Multus: v1alpha1.MultusStatus{
			DaemonSet: "kube-system/kube-multus-ds",
			Lines: []v1alpha1.StatusLine{
				line(v1alpha1.MarkOK, "rollout", "done: desired 1, updated 1, ready 1, available 1; RollingUpdate, revision 7c9f6d5b4c"),
				line(v1alpha1.MarkOK, "attach", "a Pod made now on node node-a would be attached"),
			},
			Nodes: []v1alpha1.MultusNode{{
				Mark: v1alpha1.MarkOK, Node: "node-a", Canary: true, Pod: "kube-multus-ds-x1z2a", CreatedAt: *before(3 * time.Hour), Restarts: 1,
				LastRestart: &v1alpha1.LastRestart{Reason: "OOMKilled", At: before(2 * time.Hour)},
				AttachReady: true, AttachReadyBy: "log", AttachReadySince: before(2 * time.Hour), Reason: "daemon Pod kube-multus-ds-x1z2a has written its CNI conf",
			}},
		},
		Network: v1alpha1.NetworkStatus{Lines: []v1alpha1.StatusLine{
			line(v1alpha1.MarkOK, "network", "downloads/vlan50: macvlan on enp1s0.50, mode bridge, IPAM static"),
		}},
		Canaries: []v1alpha1.CanaryStatus{{
			Namespace: "downloads", Name: "vlan50-canary", CreatedAt: before(10 * time.Minute), DecidedAt: before(9 * time.Minute),
			Freshness: v1alpha1.Fresh, Mark: v1alpha1.MarkOK, State: v1alpha1.StateFreshPass, Verdict: "pass", Cause: "ok",
			Lines: []v1alpha1.StatusLine{
				line(v1alpha1.MarkOK, "Pod", "Succeeded on node node-a, UID 11111111-1111-4111-8111-111111111111"),
				line(v1alpha1.MarkOK, "verdict", "pass (ok): canary downloads/vlan50-canary on node node-a is attached to net1 with 192.0.2.100 on downloads/vlan50, and its guard and containers did well"),
			},
		}},
		Addresses: v1alpha1.AddressesStatus{
			Lines: []v1alpha1.StatusLine{line(v1alpha1.MarkOK, "search", "2 of 40 Pods in all namespaces are on this network; no address is claimed twice")},
			Pods: []v1alpha1.AddressClaim{
				{Mark: v1alpha1.MarkNone, Namespace: "downloads", Name: "vlan50-canary", Canary: true, Node: "node-a", Phase: "Succeeded", Network: "downloads/vlan50", Asked: []string{"192.0.2.100"}},
				{Mark: v1alpha1.MarkOK, Namespace: "media", Name: "proxy-0", Node: "node-a", Phase: "Running", Network: "downloads/vlan50", Asked: []string{"192.0.2.101"}, Held: []string{"192.0.2.101"}},
			},
		},
		ArgoCD:     v1alpha1.ArgoCDStatus{Lines: []v1alpha1.StatusLine{line(v1alpha1.MarkNone, "Argo CD", "no Application owns these objects")}},
		Next:       v1alpha1.NextStep{Command: "kubectl vlan50 status --watch", Reason: "nothing has to be done; this tells when that changes"},
		Unreadable: []v1alpha1.Unreadable{{Section: v1alpha1.SectionFreshness, Text: "node node-a cannot be read (right missing: get nodes in all namespaces)"}},
	}}
}

func screen(width int) StatusScreen { return StatusScreen{Width: width, Now: statusNow()} }

func TestStatusScreen(t *testing.T) {
	t.Parallel()
	wide := screen(160)
	wide.Wide = true
	several := siteStatus()
	second := several.Status.Canaries[0]
	second.Name, second.Mark, second.Verdict, second.Cause = "vlan50-canary-b", v1alpha1.MarkWarn, "inconclusive", "attempt-in-progress"
	second.Freshness, second.Changes, second.Message = v1alpha1.FreshnessUnknown, []string{"nothing was recorded"}, "the canary is on its way"
	second.UID = "22222222-2222-4222-8222-222222222222"
	second.Lines = append(slices.Clone(second.Lines),
		v1alpha1.StatusLine{Mark: v1alpha1.MarkBad, Subject: "attached", Text: "nothing is shown to be; asked for: net1 192.0.2.101 from downloads/vlan50"},
		v1alpha1.StatusLine{Mark: v1alpha1.MarkBad, Subject: "OVERLAP", Text: "Pod media/proxy-0 asks for 192.0.2.101 as well"})
	several.Status.Canaries = append(several.Status.Canaries, second)
	several.Status.Canaries[0].UID = "11111111-1111-4111-8111-111111111111"
	several.Status.State = v1alpha1.StateInconclusive
	other := several.Status.Multus.Nodes[0]
	other.Node, other.Canary, other.Mark, other.AttachReady, other.Reason = "node-b", false, v1alpha1.MarkBad, false, "daemon Pod kube-multus-ds-x1z2b is not Ready (kube-multus: CrashLoopBackOff)"
	several.Status.Multus.Nodes = append(several.Status.Multus.Nodes, other)
	for name, got := range map[string]string{
		"status.txt":         screen(100).Render(siteStatus()),
		"status-narrow.txt":  screen(60).Render(siteStatus()),
		"status-wide.txt":    wide.Render(siteStatus()),
		"status-several.txt": screen(100).Render(several),
	} {
		path := filepath.Join("testdata", name)
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (UPDATE_GOLDEN=1 rewrites it) -want +got:\n%s", path, diff)
		}
	}
}

// TestStatusScreenFits: no line but a command is wider than the screen, and a
// usual site fits one screen of 50 rows.
func TestStatusScreenFits(t *testing.T) {
	t.Parallel()
	document := siteStatus()
	document.Status.Multus.Nodes[0].Pod = strings.Repeat("long-", 30)
	document.Status.Network.Lines[0].Text = strings.Repeat("x", 500)
	for _, width := range []int{60, 100} {
		text := screen(width).Render(document)
		for line := range strings.Lines(text) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > width {
				t.Errorf("%d columns, want at most %d: %s", n, width, line)
			}
		}
		if n := strings.Count(text, "\n"); n > 50 {
			t.Errorf("%d rows", n)
		}
	}
}

func TestStatusScreenOfManyRows(t *testing.T) {
	t.Parallel()
	document := siteStatus()
	for range 40 {
		document.Status.Addresses.Pods = append(document.Status.Addresses.Pods, document.Status.Addresses.Pods[1])
	}
	if text := screen(100).Render(document); !strings.Contains(text, "... and 30 more (-o wide shows all)") {
		t.Errorf("42 rows are too many:\n%s", text)
	}
	// What matters is shown wherever it stands: the canary's own, and what is wrong.
	document.Status.Addresses.Pods[41].Mark, document.Status.Addresses.Pods[41].Name = v1alpha1.MarkBad, "rival-0"
	if text := screen(100).Render(document); !strings.Contains(text, "media/rival-0") || !strings.Contains(text, "*  downloads/vlan50-canary") {
		t.Errorf("the row that matters is not shown:\n%s", text)
	}
	document.Status.Addresses.Pods[41] = document.Status.Addresses.Pods[1]
	wide := screen(100)
	wide.Wide = true
	if text := wide.Render(document); strings.Contains(text, "more (-o wide") || strings.Count(text, "media/proxy-0") != 41 {
		t.Errorf("wide shows all:\n%s", text)
	}
}

// TestHarmless: hostile strings are disarmed wherever they are.
func TestHarmless(t *testing.T) {
	t.Parallel()
	document := siteStatus()
	const hostile = "a\x1b]0;pwned\a\u202eb"
	document.Name = hostile
	document.Status.Message = hostile
	document.Status.Multus.Nodes[0].LastRestart.Message = hostile
	document.Status.Canaries[0].Lines[0].Text = hostile
	document.Status.Addresses.Pods[0].Asked[0] = hostile
	document.Status.Unreadable[0].Text = hostile
	document.Status.Next.Command = hostile
	Harmless(document)
	want := Clean(hostile)
	for _, got := range []string{
		document.Name, document.Status.Message, document.Status.Multus.Nodes[0].LastRestart.Message, document.Status.Canaries[0].Lines[0].Text,
		document.Status.Addresses.Pods[0].Asked[0], document.Status.Unreadable[0].Text, document.Status.Next.Command,
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if !document.Status.Canaries[0].CreatedAt.Equal(before(10 * time.Minute)) {
		t.Error("times are left alone")
	}
}

func TestStatusColours(t *testing.T) {
	t.Parallel()
	coloured := screen(100)
	coloured.Color = true
	if text := coloured.Render(siteStatus()); !strings.Contains(text, "\x1b[1;32mPROVEN") || !strings.Contains(text, "\x1b[32m✓") {
		t.Errorf("no colour: %q", text[:80])
	}
	if text := screen(100).Render(siteStatus()); strings.Contains(text, "\x1b") {
		t.Error("colour that nobody asked for")
	}
}

func TestRedraw(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := Redraw{Out: &out, Rows: func() int { return 3 }}
	r.Close()
	if out.Len() > 0 {
		t.Errorf("nothing was begun, nothing is to be given back: %q", out.String())
	}
	r.Show("one\ntwo\nthree\nfour\n")
	if got := out.String(); !strings.HasPrefix(got, "\x1b[?1049h\x1b[?25l\x1b[H") || !strings.Contains(got, "... 2 more lines") || strings.Contains(got, "three") || !strings.Contains(got, "four") {
		t.Errorf("got %q", got)
	}
	out.Reset()
	r.Show("one\ntwo\nthree\nfour\n")
	if out.Len() > 0 {
		t.Errorf("the same text is not drawn again: %q", out.String())
	}
	r.Close()
	if got := out.String(); got != "\x1b[?25h\x1b[?1049l" {
		t.Errorf("got %q", got)
	}
}

func TestStatusLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := StatusLog{Out: &out}
	log.Show(siteStatus(), statusNow())
	if got := out.String(); strings.Contains(got, "rollout done") || !strings.Contains(got, "12:00:00  state     ✓ FRESH-PASS: ") || !strings.Contains(got, "get nodes") {
		t.Errorf("the first look tells the state and what is not well:\n%s", got)
	}
	out.Reset()
	log.Show(siteStatus(), statusNow())
	if out.Len() > 0 {
		t.Errorf("nothing is new:\n%s", out.String())
	}
	changed := siteStatus()
	changed.Status.State, changed.Status.Message = v1alpha1.StateStale, "the daemon restarted"
	changed.Status.Canaries[0].Freshness, changed.Status.Canaries[0].Changes = v1alpha1.Stale, []string{"daemon pod restarted"}
	log.Show(changed, statusNow().Add(time.Second))
	want := "12:00:01  state     ! STALE: the daemon restarted\n12:00:01  canary    ! downloads/vlan50-canary: STALE: daemon pod restarted\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	out.Reset()
	log.Show(siteStatus(), statusNow().Add(2*time.Second))
	if !strings.Contains(out.String(), "FRESH-PASS") {
		t.Errorf("what comes back is new again:\n%s", out.String())
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                    {""},
		"one two three":       {"one two", "three"},
		"vlan50-canary is up": {"vlan50-can", "ary is up"},
		"abcdefghijk":         {"abcdefghij", "k"},
	} {
		if diff := cmp.Diff(want, wrap(text, 10)); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
	}
}
