package rollback

import (
	"context"
	"errors"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
)

// unanswered reports whether the server was not reached, in trouble or too busy.
func unanswered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, new(*url.Error)) || errors.As(err, &status) && !cluster.Answered(err)
}

// retry does what may be done again until the server has answered.
func (r *Rollback) retry(ctx context.Context, step canary.Step, do func() error) error {
	for {
		err := do()
		if err == nil || ctx.Err() != nil || !unanswered(err) {
			return err
		}
		r.waitf(step, "waiting for the API server: %v", err)
		if err := cluster.Pause(ctx, retryPause); err != nil {
			return err
		}
	}
}
