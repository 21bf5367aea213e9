package status

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
)

// Summarize says what the data mean at a moment. It is pure: the same data and
// the same moment give the same document.
func Summarize(d *Data, now time.Time, settings Settings) *v1alpha1.SiteStatus {
	judged := *d
	judged.now, d = now, &judged
	document := &v1alpha1.SiteStatus{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: "SiteStatus"},
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Subject.Namespace, Name: d.Subject.Name},
	}
	s := &document.Status
	s.CollectedAt = metav1.NewMicroTime(d.At.UTC())
	s.Unreadable = d.Gaps
	s.Multus, s.Ready = multusStatus(d, now, settings.Settle)
	s.Network = networkStatus(d)
	for i := range d.Canaries {
		s.Canaries = append(s.Canaries, canaryStatus(d, &d.Canaries[i], now))
	}
	if d.DefaultAbsent && len(s.Canaries) > 0 {
		c := &s.Canaries[0]
		c.Lines = append(c.Lines, line(v1alpha1.MarkNone, "default", "there is no Pod %s, the default: the canaries are those with the label %s", d.Subject, CanaryLabel+"="+CanaryLabelValue))
	}
	s.Addresses = addressesStatus(d)
	s.ArgoCD = argoStatus(d)
	markConflicts(s)
	markUnsearched(d, s)
	s.State = worst(s.Canaries)
	s.Message = headline(s)
	s.Next = nextStep(d, s, settings)
	return document
}

// gravity orders the states: the worst canary speaks for the site. A failure
// that still holds is the surest of the bad news, so it comes first.
func gravity(state v1alpha1.State) int {
	order := []v1alpha1.State{
		v1alpha1.StateFreshPass, v1alpha1.StateUnknown, v1alpha1.StateStale, v1alpha1.StateInconclusive,
		v1alpha1.StateNoCanary, v1alpha1.StateConflict, v1alpha1.StateFreshFail,
	}
	for i, s := range order {
		if s == state {
			return i
		}
	}
	return len(order)
}

func worst(canaries []v1alpha1.CanaryStatus) v1alpha1.State {
	if len(canaries) == 0 {
		return v1alpha1.StateNoCanary
	}
	state := v1alpha1.StateFreshPass
	for _, c := range canaries {
		if gravity(c.State) > gravity(state) {
			state = c.State
		}
	}
	return state
}

// markConflicts turns a canary whose address another Pod claims now into one
// that proves nothing, whatever it has passed.
func markConflicts(s *v1alpha1.SiteStatusStatus) {
	for _, claim := range s.Addresses.Pods {
		if !claim.Canary || claim.Mark != v1alpha1.MarkBad {
			continue
		}
		for i := range s.Canaries {
			if c := &s.Canaries[i]; c.Namespace == claim.Namespace && c.Name == claim.Name {
				c.State, c.Mark = v1alpha1.StateConflict, v1alpha1.MarkBad
				c.Lines = append(c.Lines, v1alpha1.StatusLine{Mark: v1alpha1.MarkBad, Subject: "address", Text: claim.Reason})
			}
		}
	}
}

// markUnsearched turns a pass into one that is not known to hold where nobody could
// look who else claims its address.
func markUnsearched(d *Data, s *v1alpha1.SiteStatusStatus) {
	if !d.Search.Failed && d.Search.Namespace == "" {
		return
	}
	for i := range s.Canaries {
		if c := &s.Canaries[i]; c.State == v1alpha1.StateFreshPass {
			c.State, c.Mark = v1alpha1.StateUnknown, v1alpha1.MarkUnknown
			c.Changes = append(c.Changes, "whether another Pod claims its address by now cannot be told: not all namespaces could be searched")
		}
	}
}

// speaker is the canary that the headline and the next step are about: the
// first of those in the state of the site.
func speaker(s *v1alpha1.SiteStatusStatus) *v1alpha1.CanaryStatus {
	for i := range s.Canaries {
		if s.Canaries[i].State == s.State {
			return &s.Canaries[i]
		}
	}
	return &v1alpha1.CanaryStatus{}
}

// headline is the answer to "is the network proven now?" in one sentence.
func headline(s *v1alpha1.SiteStatusStatus) string {
	c := speaker(s)
	name := "canary " + c.Namespace + "/" + c.Name
	switch s.State {
	case v1alpha1.StateFreshPass:
		return freshPass(s, name)
	case v1alpha1.StateFreshFail:
		return fmt.Sprintf("%s failed (%s), and nothing has changed since", name, c.Cause)
	case v1alpha1.StateInconclusive:
		return fmt.Sprintf("the last attempt of %s told nothing about the network (%s)", name, c.Cause)
	case v1alpha1.StateStale:
		if c.DeletingAt != nil {
			return name + " is being deleted, and proves nothing any more"
		}
		return fmt.Sprintf("the verdict of %s (%s) no longer holds: %s", name, c.Verdict, first(c.Changes))
	case v1alpha1.StateUnknown:
		return fmt.Sprintf("whether the verdict of %s (%s) still holds is not known: %s", name, orNone(c.Verdict), first(c.Changes))
	case v1alpha1.StateConflict:
		return fmt.Sprintf("another Pod claims an address of %s now", name)
	case v1alpha1.StateNoCanary:
	}
	return noCanary(c, name) + ": nothing proves the network"
}

func freshPass(s *v1alpha1.SiteStatusStatus, name string) string {
	if len(s.Canaries) > 1 {
		return fmt.Sprintf("all %d canaries passed, and nothing has changed since", len(s.Canaries))
	}
	return fmt.Sprintf("%s passed, and nothing has changed since", name)
}

func noCanary(c *v1alpha1.CanaryStatus, name string) string {
	if c.Name == "" {
		return "there is no canary"
	}
	return "there is no " + name
}

func first(texts []string) string {
	switch len(texts) {
	case 0:
		return "no reason known"
	case 1:
		return texts[0]
	}
	return fmt.Sprintf("%s (and %d more)", texts[0], len(texts)-1)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func line(mark v1alpha1.Mark, subject, format string, args ...any) v1alpha1.StatusLine {
	return v1alpha1.StatusLine{Mark: mark, Subject: subject, Text: fmt.Sprintf(format, args...)}
}

// at is a time of the document; nil where it is not known.
func at(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	m := metav1.NewTime(t.UTC())
	return &m
}
