package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
)

// reader is one look at the cluster. What cannot be read becomes a gap, and the
// rest stands; a server that does not answer ends the look.
type reader struct {
	*Collector
	ctx      context.Context //nolint:containedctx // lives as long as one call of Collect
	networks *cluster.Networks

	mu    sync.Mutex
	data  *Data
	first Canary
	// metas are the Pods that ask for any secondary network or are canaries.
	metas []PodMeta
}

// want is one thing to read, for the case that it cannot be.
type want struct {
	section v1alpha1.Section
	what    string
	right   cluster.Right
}

// got reports whether a read succeeded. Not to be there is no gap; any other
// answer of the server is one. No answer at all is an error.
func (r *reader) got(w want, err error) (bool, error) {
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		r.gap(w.section, fmt.Sprintf("%s cannot be read (right missing: %s)", w.what, w.right))
		return false, nil
	case answered(err):
		r.gap(w.section, fmt.Sprintf("%s cannot be read: %v", w.what, err))
		return false, nil
	}
	return false, fmt.Errorf("reading %s: %w", w.what, err)
}

// answered reports whether the server knew who asked and said something.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !apierrors.IsUnauthorized(err)
}

// gap notes the same thing once, however often it was tried.
func (r *reader) gap(section v1alpha1.Section, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	gap := Gap{Section: section, Text: text}
	if !slices.Contains(r.data.Gaps, gap) {
		r.data.Gaps = append(r.data.Gaps, gap)
	}
}
