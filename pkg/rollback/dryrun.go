package rollback

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
)

// DryRunPlan gives the plan, and a Refusal with it where a guard is broken or
// the server would not do a step. Nothing is stored, and no Pod is run: what is
// on the nodes is not known then.
func (r *Rollback) DryRunPlan(ctx context.Context, undo bool) (Plan, error) {
	if undo {
		result, err := r.Undo(ctx)
		if err == nil && result.Outcome == Unfinished {
			err = tooLate(result)
		}
		return result.Plan, err
	}
	plan, err := r.Plan(ctx)
	if err != nil {
		result, err := r.end(ctx, err)
		if err == nil {
			err = tooLate(result)
		}
		return Plan{}, err
	}
	if err := refuseBroken(plan); err != nil {
		return plan, err
	}
	if r.DryRun == canary.DryRunServer {
		err = r.tryDeletions(ctx, plan)
	}
	return plan, err
}

// tooLate is the end of a dry run by its deadline: without a plan there is no
// result to tell it.
func tooLate(result Result) error {
	return fmt.Errorf("%w: %s", canary.ErrDeadline, result.Message)
}

// tryDeletions lets the server try each deletion without storing it.
func (r *Rollback) tryDeletions(ctx context.Context, plan Plan) error {
	for i, step := range plan.Steps {
		if step.Action != ActionDelete || step.Object.Deleting {
			continue
		}
		err := r.deleteOnce(ctx, *step.Object, nil, true)
		switch {
		case err == nil, apierrors.IsNotFound(err):
			plan.Steps[i].Text += "; the server would"
		case cluster.Answered(err):
			return refusef("nothing was changed: the server would not delete %s: %v", step.Object, err)
		default:
			return fmt.Errorf("trying to delete %s on the server (dry run): %w", step.Object, err)
		}
	}
	return nil
}
