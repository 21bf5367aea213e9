package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/fatih/color"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
)

// rowsShown bounds the rows of a table in the short form: of more, those that
// matter are shown.
const rowsShown = 12

// row is one row of a table, with notes below it where it needs some.
type row struct {
	mark  v1alpha1.Mark
	cells []string
	notes []string
	// stays: it is shown however many rows there are.
	stays bool
}

// matter orders rows by how much they matter.
func matter(a, b row) int {
	rank := func(r row) int {
		if r.stays {
			return -1
		}
		return slices.Index([]v1alpha1.Mark{v1alpha1.MarkBad, v1alpha1.MarkWarn, v1alpha1.MarkUnknown, v1alpha1.MarkOK, v1alpha1.MarkNone}, r.mark)
	}
	return cmp.Compare(rank(a), rank(b))
}

// table prints rows in columns as wide as they need.
func (t StatusScreen) table(heads []string, rows []row) {
	if len(rows) == 0 {
		return
	}
	hidden := 0
	if len(rows) > rowsShown && !t.Wide {
		hidden = len(rows) - rowsShown
		slices.SortStableFunc(rows, matter)
		rows = rows[:rowsShown]
	}
	widths := make([]int, len(heads))
	for _, cells := range cellsOf(rows) {
		for i, cell := range cells {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	for i, head := range heads {
		if widths[i] > 0 { // a column with nothing in it has no head
			widths[i] = max(widths[i], ansi.StringWidth(head))
		}
	}
	t.fit(widths)
	fmt.Fprintln(t.out, t.paint(color.New(color.Faint), "    "+padded(heads, widths)))
	for _, r := range rows {
		fmt.Fprintln(t.out, "  "+t.mark(r.mark)+" "+padded(r.cells, widths))
		for _, note := range r.notes {
			t.hanging("      ", 6, note)
		}
	}
	if hidden > 0 {
		fmt.Fprintf(t.out, "    ... and %d more (-o wide shows all)\n", hidden)
	}
}

// fit makes the widest columns narrower until a row fits the screen. Wide is for
// those who want all of it, be it broken.
func (t StatusScreen) fit(widths []int) {
	const edge, gap, narrowest = 4, 2, 6
	for !t.Wide {
		room, widest := t.Width-edge+gap, 0
		for i, width := range widths {
			if width > 0 {
				room -= width + gap
			}
			if width > widths[widest] {
				widest = i
			}
		}
		if room >= 0 || widths[widest] <= narrowest {
			return
		}
		widths[widest]--
	}
}

func cellsOf(rows []row) [][]string {
	cells := make([][]string, len(rows))
	for i, r := range rows {
		cells[i] = r.cells
	}
	return cells
}

func padded(cells []string, widths []int) string {
	var b strings.Builder
	for i, cell := range cells {
		if widths[i] == 0 {
			continue // nothing in this column
		}
		cell = ansi.Truncate(cell, widths[i], "…")
		b.WriteString(cell + strings.Repeat(" ", widths[i]-ansi.StringWidth(cell)+2))
	}
	return strings.TrimRight(b.String(), " ")
}

func (t StatusScreen) multus(s *v1alpha1.SiteStatusStatus) {
	t.section("Multus", "DaemonSet "+s.Multus.DaemonSet, v1alpha1.SectionMultus, s, s.Multus.Lines)
	var rows []row
	for i := range s.Multus.Nodes {
		node := &s.Multus.Nodes[i]
		r := row{mark: node.Mark, stays: node.Canary, cells: []string{
			star(node.Canary && len(s.Multus.Nodes) > 1), dash(node.Node), dash(node.Pod), t.ageOf(node.CreatedAt), t.restarts(node), t.attach(node),
		}}
		if !node.AttachReady && !said(s.Multus.Lines, node.Reason) || t.Wide {
			r.notes = notes(node.Reason)
		}
		rows = append(rows, r)
	}
	t.table([]string{"*", "NODE", "DAEMON POD", "AGE", "RESTARTS", "ATTACH READY"}, rows)
}

func (t StatusScreen) restarts(node *v1alpha1.MultusNode) string {
	text := fmt.Sprint(node.Restarts)
	last := node.LastRestart
	if last == nil {
		return text
	}
	text += " (" + cmp.Or(Line(last.Reason), fmt.Sprintf("exit code %d", last.ExitCode))
	if last.At != nil {
		text += ", " + t.age(last.At.Time) + " ago"
	}
	return text + ")"
}

// said reports whether a reason stands in a line above the table already.
func said(lines []v1alpha1.StatusLine, reason string) bool {
	for _, line := range lines {
		if strings.HasPrefix(line.Text, reason) {
			return true
		}
	}
	return false
}

func (t StatusScreen) attach(node *v1alpha1.MultusNode) string {
	switch {
	case !node.AttachReady:
		return "no"
	case node.AttachReadySince == nil:
		return "yes (" + node.AttachReadyBy + ")"
	}
	since := node.AttachReadySince.UTC()
	form := time.DateOnly
	if t.Wide {
		form = time.DateTime
	} else if t.Now.Sub(since) < 24*time.Hour {
		form = time.TimeOnly
	}
	return fmt.Sprintf("since %s (%s)", since.Format(form), node.AttachReadyBy)
}

// canaries prints the lines of one canary, and a table where there are several,
// with the lines of those that are not well.
func (t StatusScreen) canaries(s *v1alpha1.SiteStatusStatus) {
	if len(s.Canaries) == 1 {
		c := &s.Canaries[0]
		about := c.Namespace + "/" + c.Name
		if c.CreatedAt != nil {
			about += ", " + t.age(c.CreatedAt.Time) + " old"
		}
		t.section("Canary", about, v1alpha1.SectionCanary, s, c.Lines)
		t.proof(c)
		return
	}
	t.title("Canary", fmt.Sprintf("%d of them", len(s.Canaries)))
	var rows []row
	for i := range s.Canaries {
		c := &s.Canaries[i]
		cells := []string{
			Line(c.Namespace + "/" + c.Name), t.ageOf(value(c.CreatedAt)), dash(c.Phase), dash(c.Node),
			dash(c.Verdict), dash(c.Cause), dash(string(c.Freshness)),
		}
		rows = append(rows, row{mark: c.Mark, cells: cells, notes: t.canaryNotes(c)})
	}
	t.table([]string{"CANARY", "AGE", "PHASE", "NODE", "VERDICT", "CAUSE", "SPEAKS"}, rows)
	for i := range s.Canaries {
		t.proof(&s.Canaries[i])
	}
	for _, gap := range s.Unreadable {
		if gap.Section == v1alpha1.SectionCanary {
			t.line(v1alpha1.StatusLine{Mark: v1alpha1.MarkUnknown, Subject: "unread", Text: gap.Text})
		}
	}
}

// canaryNotes are what does not fit into the row of a canary: which Pod it is,
// what is attached, and, where it is not well, why.
func (t StatusScreen) canaryNotes(c *v1alpha1.CanaryStatus) []string {
	about := "UID " + string(c.UID)
	var more []string
	for _, line := range c.Lines {
		switch line.Subject {
		case "Pod", "verdict": // in the row, and in the message
		case "attached":
			about += "; attached: " + line.Text
		default:
			more = append(more, line.Subject+": "+line.Text)
		}
	}
	if c.UID == "" {
		about = ""
	}
	message := ""
	if c.Mark != v1alpha1.MarkOK || t.Wide {
		message = c.Message
	}
	return notes(append([]string{about, message}, more...)...)
}

// notes are those that say something.
func notes(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// proof are the lines a verdict rests on, for those who want them.
func (t StatusScreen) proof(c *v1alpha1.CanaryStatus) {
	for _, p := range c.Proof {
		if t.Wide {
			t.line(v1alpha1.StatusLine{Mark: v1alpha1.MarkNone, Subject: "evidence", Text: clock(p.Time) + " " + p.Source + ": " + p.Text})
		}
	}
}

func (t StatusScreen) addresses(s *v1alpha1.SiteStatusStatus) {
	about := ""
	if slices.ContainsFunc(s.Addresses.Pods, func(c v1alpha1.AddressClaim) bool { return c.Canary }) {
		about = "* is a canary"
	}
	t.section("Addresses", about, v1alpha1.SectionAddresses, s, s.Addresses.Lines)
	networks := map[string]bool{}
	for _, claim := range s.Addresses.Pods {
		networks[claim.Network] = true
	}
	named := t.Wide || len(networks) > 1
	heads := []string{"*", "POD", "ASKS FOR", "HOLDS", "NODE", "PHASE"}
	if named {
		heads = append(heads, "NETWORK")
	}
	var rows []row
	for _, claim := range s.Addresses.Pods {
		cells := []string{
			star(claim.Canary), Line(claim.Namespace + "/" + claim.Name),
			dash(strings.Join(claim.Asked, " ")), dash(strings.Join(claim.Held, " ")), dash(claim.Node), dash(claim.Phase),
		}
		if named {
			cells = append(cells, Line(claim.Network))
		}
		rows = append(rows, row{mark: claim.Mark, cells: cells, notes: notes(claim.Reason), stays: claim.Canary})
	}
	t.table(heads, rows)
}

// star marks what belongs to a canary.
func star(canary bool) string {
	if canary {
		return "*"
	}
	return ""
}

func dash(text string) string { return cmp.Or(Line(text), "-") }

func value(at *metav1.Time) metav1.Time {
	if at == nil {
		return metav1.Time{}
	}
	return *at
}

func (t StatusScreen) ageOf(at metav1.Time) string {
	if at.IsZero() {
		return "-"
	}
	return t.age(at.Time)
}

// age is how long ago something was, as kubectl writes it.
func (t StatusScreen) age(at time.Time) string { return duration.HumanDuration(t.Now.Sub(at)) }
