package rollback

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

// The steps of a rollback, as progress names them.
const (
	StepCheck  canary.Step = "check"
	StepNode   canary.Step = "node"
	StepProbe  canary.Step = "probe"
	StepDelete canary.Step = "delete"
	StepUndo   canary.Step = "undo"
)

// Store keeps on this machine what is taken away.
type Store interface {
	// LoadManifest gives the canary as it was saved last, nil where it never was.
	LoadManifest(ref evidence.Ref) (pod *corev1.Pod, path string, err error)
	// SaveManifest keeps what recreates the canary.
	SaveManifest(pod *corev1.Pod) (path string, err error)
	// SaveObject keeps a manifest in the folder of this rollback, whose files
	// `kubectl apply -f` takes in the order of their names.
	SaveObject(of evidence.Ref, name string, manifest []byte) (folder string, err error)
	// CloseObjects ends that folder, so that the next rollback has one of its own,
	// and gives the name it has from now on; empty where there is none.
	CloseObjects(of evidence.Ref, at time.Time) (folder string, err error)
	// SaveConf keeps a node's conf, and LoadConfs gives all kept of one node.
	SaveConf(node string, b Backup) (path string, err error)
	LoadConfs(node string) ([]Backup, error)
	// SaveImage keeps what node Pods ran in on a node, and LoadImage gives it;
	// empty where this machine has run none.
	SaveImage(node, image string) error
	LoadImage(node string) (image string, err error)
	// GoesOn reports whether this machine has deleted objects of a DaemonSet's
	// rollback that has not come to its end.
	GoesOn(of evidence.Ref) bool
}

// Rollback takes Multus away from one cluster, or puts its conf back.
type Rollback struct {
	Clients           *Clients
	Canary, DaemonSet evidence.Ref
	// DaemonSetNamed: the user gave its name; no other is looked for.
	DaemonSetNamed bool
	// Also are consumers to be deleted first, in this order.
	Also []Object
	// Networks go besides those of the canary.
	Networks []evidence.Ref

	Access        NodeAccess
	NodeImage     string
	NodeNamespace string
	// Nodes limits the visits; AllNodes visits also those without a daemon Pod.
	Nodes    []string
	AllNodes bool
	// ConfDir and BinDir are used where the DaemonSet does not tell.
	ConfDir, BinDir string
	RemoveBinaries  bool
	DryRun          canary.DryRun

	// Confirm shows the plan and asks; nil where nobody can be asked and nobody
	// has agreed beforehand.
	Confirm func(ctx context.Context, plan Plan) (bool, error)
	// Operator shows shell lines for a node and waits for the word that they
	// were run.
	Operator func(ctx context.Context, node, lines string) (bool, error)

	Holder  string
	Process canary.Process
	Store   Store
	Notify  func(canary.Note)
	Now     func() time.Time

	state    State
	result   Result
	lastNote string
	current  int // index of the step that is being done
	// looksOnly: the run changes nothing, and has no lock.
	looksOnly bool
}

// failure ends a run after its first change: what stands is in the result.
type failure struct{ reason, next string }

func (f *failure) Error() string { return f.reason }

func failf(next, format string, args ...any) error {
	return &failure{reason: fmt.Sprintf(format, args...), next: next}
}

func refusef(format string, args ...any) error {
	return &canary.Refusal{Reason: fmt.Sprintf(format, args...)}
}

// Plan reads what is there and says what would be done. With DryRunServer the
// server is asked as well, and nothing is stored.
func (r *Rollback) Plan(ctx context.Context) (Plan, error) {
	state, err := r.collect(ctx)
	if err != nil {
		return Plan{}, err
	}
	state.setAside(r.Nodes)
	if state.Rights, err = r.lacking(ctx, state); err != nil {
		return Plan{}, err
	}
	if r.DryRun != canary.DryRunClient && state.Rights == "" {
		if err := r.admission(ctx, &state); err != nil {
			return Plan{}, err
		}
	}
	r.state = state
	return MakePlan(state), nil
}

// Run takes Multus away. It returns a Refusal where a guard does not hold, an
// Interruption where ctx was cancelled by anything but the deadline, and a
// result for every other end: done, nothing to do, failed, out of time.
func (r *Rollback) Run(ctx context.Context) (Result, error) {
	r.result, r.current = Result{Started: r.Now(), Outcome: Unfinished}, -1
	plan, err := r.Plan(ctx)
	if err != nil {
		return r.end(ctx, err)
	}
	r.result.Plan = plan
	if err := refuseBroken(plan); err != nil {
		return r.end(ctx, err)
	}
	if r.Confirm == nil && !plan.Empty() && r.state.mustAsk() {
		return r.end(ctx, errUnattended())
	}
	run, unlock, err := r.lock(ctx)
	if err != nil {
		return r.end(ctx, err)
	}
	err = r.locked(run)
	unlock(err == nil && r.result.Outcome != Unfinished)
	return r.end(run, err)
}

// mustAsk reports whether the API alone shows that something goes. Whether a
// node has something to remove is seen on the node.
func (s State) mustAsk() bool { return len(s.planned()) > 0 }

func errUnattended() error {
	return refusef("nothing was changed: there is no terminal to ask on; look at the plan with --dry-run=server, then pass --yes")
}

func refuseBroken(plan Plan) error { return unchanged(holdsAll(plan)) }

// holdsAll refuses by the guards that do not hold.
func holdsAll(plan Plan) error {
	var reasons []string
	for _, guard := range plan.Broken() {
		reasons = append(reasons, guard.Message)
	}
	if len(reasons) == 0 {
		return nil
	}
	return refusef("%s", joinSentences(reasons))
}

// locked is the run while nobody else retests or rolls back.
func (r *Rollback) locked(ctx context.Context) error {
	if err := r.sweep(ctx); err != nil {
		return err
	}
	if err := r.lookAround(ctx); err != nil {
		return err
	}
	if r.Access == AccessManual {
		if err := r.proveImages(ctx); err != nil {
			return err
		}
	}
	plan := MakePlan(r.state)
	r.result.Plan = plan
	r.begin(plan)
	if err := refuseBroken(plan); err != nil {
		return err
	}
	if plan.Empty() || plan.ProbesOnly() {
		return r.proveClean(ctx)
	}
	if err := r.confirm(ctx, plan); err != nil {
		return err
	}
	if err := r.execute(ctx); err != nil {
		return err
	}
	if err := r.nobodyBack(ctx); err != nil {
		return err
	}
	folder, err := r.Store.CloseObjects(r.state.DaemonSet, r.Now())
	if err != nil {
		return fmt.Errorf("closing the folder %s of what was deleted: %w", r.result.Saved, err)
	}
	r.result.Saved = folder
	r.result.Outcome = Done
	r.result.Message = r.doneMessage()
	r.result.Next = r.doneNext()
	return nil
}

// proveClean ends a run for which nothing is left to do.
func (r *Rollback) proveClean(ctx context.Context) error {
	if err := r.execute(ctx); err != nil {
		return err
	}
	r.result.Outcome, r.result.Message = Clean, r.cleanMessage()
	// Where a run was killed at its very end.
	_, err := r.Store.CloseObjects(r.state.DaemonSet, r.Now())
	return err
}

// confirm asks, and makes sure that nothing has changed for the worse while the
// plan was read.
func (r *Rollback) confirm(ctx context.Context, plan Plan) error {
	if r.Confirm == nil {
		return errUnattended()
	}
	agreed, err := r.Confirm(ctx, plan)
	if err != nil {
		return err
	}
	if !agreed {
		return refusef("nothing was changed: declined")
	}
	return unchanged(r.stillHolds(ctx))
}

// unchanged says of a refusal that nothing was changed.
func unchanged(err error) error {
	if refusal, ok := errors.AsType[*canary.Refusal](err); ok {
		return refusef("nothing was changed: %s", refusal.Reason)
	}
	return err
}

// stillHolds reads the API anew and refuses where a guard does not hold any
// more, or where a daemon has come to a node that the plan does not know.
func (r *Rollback) stillHolds(ctx context.Context) error {
	state, err := r.collectAnew(ctx)
	if err != nil {
		return err
	}
	for _, n := range state.Nodes {
		if known := slices.ContainsFunc(r.state.Nodes, func(k NodeState) bool { return k.Name == n.Name }); n.Daemon && !known {
			return refusef("a daemon Pod has come to node %s meanwhile, which this plan does not know: run the same command again", n.Name)
		}
	}
	state.Nodes, state.Ground = r.state.Nodes, r.state.Ground
	return holdsAll(MakePlan(state))
}

// collectAnew reads the API while steps are under way.
func (r *Rollback) collectAnew(ctx context.Context) (state State, err error) {
	err = r.retry(ctx, StepCheck, func() (err error) {
		state, err = r.collect(ctx)
		return err
	})
	return state, err
}

// begin makes the steps of the plan those of the result.
func (r *Rollback) begin(plan Plan) {
	r.result.Steps = nil
	for _, step := range plan.Steps {
		state := StepPending
		if step.Action == ActionKeep {
			state = StepKept
		}
		r.result.Steps = append(r.result.Steps, StepResult{Step: step, State: state, Message: ""})
	}
	r.current = -1
}

// execute does the steps in order and stops at the first that fails.
func (r *Rollback) execute(ctx context.Context) error {
	for i := range r.result.Steps {
		step := &r.result.Steps[i]
		if step.State == StepKept {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.current = i
		message, err := r.step(ctx, step.Step)
		step.At, step.Message = r.Now(), message
		if stays, ok := errors.AsType[*stayed](err); ok {
			step.State, step.Message = StepKept, stays.why
			r.notef(progressOf(step.Action), "%s stays: %s", step.Subject(), stays.why)
			continue
		}
		if err != nil {
			step.State, step.Message = StepFailed, err.Error()
			return err
		}
		step.State = StepDone
		r.notef(progressOf(step.Action), "step %d of %d done: %s: %s", step.Number, len(r.result.Steps), step.Subject(), message)
	}
	return nil
}

// before looks at the API once more at the two deletions that may break a node:
// that of the daemons, for nodes that have got one since, and the first of what a
// daemon needs, for daemons that have come back.
func (r *Rollback) before(ctx context.Context, object Object) error {
	if r.endsService(object) {
		if err := r.stillHolds(ctx); err != nil {
			return err
		}
		return r.stillClear(ctx)
	}
	after := r.state.after()
	if i := slices.IndexFunc(after, func(o Object) bool { return o.UID != "" && r.state.Keep[o.String()] == "" }); i >= 0 && after[i].UID == object.UID {
		return r.nobodyBack(ctx)
	}
	return nil
}

// endsService reports whether the deletion of an object takes the first daemon away.
func (r *Rollback) endsService(object Object) bool {
	if set := r.state.DaemonSetObject; set != nil {
		return set.UID == object.UID
	}
	orphans := r.state.orphans()
	return len(orphans) > 0 && orphans[0].UID == object.UID
}

// stillClear removes what has come back to a node while the daemon still serves:
// once it is gone, a Multus conf stops every new Pod there, and so does another one
// that was damaged meanwhile.
func (r *Rollback) stillClear(ctx context.Context) error {
	for i := range r.state.Nodes {
		n := &r.state.Nodes[i]
		if r.Access == AccessManual {
			if _, err := r.probeStep(ctx, n.Name); err != nil {
				return err
			}
			continue
		}
		back, err := r.comeback(ctx, n)
		if err != nil {
			return err
		}
		if problem := n.stops(); problem != "" {
			return failf(undoHint, "node %s: %s", n.Name, problem)
		}
		if !back {
			continue
		}
		r.notef(StepNode, "node %s: the Multus conf has come back; removing it again", n.Name)
		if _, err := r.clearAnew(ctx, n, false); err != nil {
			return err
		}
	}
	return nil
}

// nobodyBack fails where Multus has been brought back while it was taken away.
func (r *Rollback) nobodyBack(ctx context.Context) error {
	state, err := r.collectAnew(ctx)
	if err != nil {
		return err
	}
	var back []string
	if set := state.DaemonSetObject; set != nil {
		back = append(back, fmt.Sprintf("%s (UID %s)", set, set.UID))
	}
	for _, ref := range state.Daemons {
		back = append(back, "DaemonSet "+ref.String())
	}
	for _, pod := range state.DaemonPods {
		back = append(back, pod.String())
	}
	if len(back) == 0 {
		return nil
	}
	return failf("find out who brings it back, then run the same command again", "Multus is back: %s", join(back))
}

func progressOf(action Action) canary.Step {
	switch action {
	case ActionRemoveConf, ActionRecheck, ActionRestore:
		return StepNode
	case ActionProbe:
		return StepProbe
	case ActionMark, ActionDelete, ActionKeep:
	}
	return StepDelete
}

func (r *Rollback) step(ctx context.Context, step Step) (string, error) {
	switch step.Action {
	case ActionRemoveConf:
		return r.removeConf(ctx, step.Node)
	case ActionProbe:
		return r.probeStep(ctx, step.Node)
	case ActionMark:
		return r.mark(ctx)
	case ActionDelete:
		if err := r.before(ctx, *step.Object); err != nil {
			return "", err
		}
		return r.deleteStep(ctx, *step.Object)
	case ActionRecheck:
		return r.recheck(ctx, step.Node)
	case ActionKeep, ActionRestore:
	}
	return "", nil
}

// Subject is the DaemonSet that the run is about: the one that was found.
func (r *Rollback) Subject() evidence.Ref {
	if r.state.DaemonSet.Name != "" {
		return r.state.DaemonSet
	}
	return r.DaemonSet
}
