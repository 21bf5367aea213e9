package rollback

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
)

// ActionRestore puts a node's conf back.
const ActionRestore Action = "restore-conf"

// restore is one conf that goes back to one node.
type restore struct {
	node   string
	backup Backup
}

// Undo puts the confs back that were kept on the nodes, byte for byte. It
// brings no object back: their manifests are for kubectl.
func (r *Rollback) Undo(ctx context.Context) (Result, error) {
	r.result, r.current = Result{Started: r.Now(), Outcome: Unfinished}, -1
	r.AllNodes = len(r.Nodes) == 0
	if err := r.prepareUndo(ctx); err != nil {
		return r.end(ctx, err)
	}
	if r.Confirm == nil && r.DryRun == canary.DryRunNone {
		return r.end(ctx, errUnattended())
	}
	if r.DryRun != canary.DryRunNone {
		r.result.Plan, _ = r.undoPlan()
		return r.result, refuseBroken(r.result.Plan)
	}
	run, unlock, err := r.lock(ctx)
	if err != nil {
		return r.end(ctx, err)
	}
	err = r.undoLocked(run)
	unlock(false)
	return r.end(run, err)
}

// prepareUndo reads which nodes there are, and whether they can be reached.
func (r *Rollback) prepareUndo(ctx context.Context) error {
	state, err := r.collect(ctx)
	if err != nil {
		return err
	}
	if r.DryRun != canary.DryRunClient {
		if err := r.admission(ctx, &state); err != nil {
			return err
		}
	}
	for i := range state.Nodes {
		if n := &state.Nodes[i]; n.ConfDir == "" {
			n.ConfDir = r.keptFrom(n.Name)
		}
	}
	state.LeftOut = nil // one node alone may get its conf back
	state.setAside(r.Nodes)
	r.state = state
	if guard := accessGuard(state); guard.Truth == Broken {
		return refusef("nothing was changed: %s", guard.Message)
	}
	return nil
}

func (r *Rollback) undoLocked(ctx context.Context) error {
	if err := r.sweep(ctx); err != nil {
		return err
	}
	if err := r.lookAround(ctx); err != nil {
		return err
	}
	if guard := accessGuard(r.state); guard.Truth == Broken {
		return refusef("nothing was changed: %s", guard.Message)
	}
	plan, restores := r.undoPlan()
	r.result.Plan = plan
	r.begin(plan)
	if err := refuseBroken(plan); err != nil {
		return err
	}
	if plan.Empty() {
		r.result.Outcome, r.result.Message = Clean, "nothing is left to put back: "+join(append(slices.Clone(plan.Notes), "no node has a kept conf that is missing"))
		return nil
	}
	agreed, err := r.Confirm(ctx, plan)
	if err != nil {
		return err
	}
	if !agreed {
		return refusef("nothing was changed: declined")
	}
	for i, back := range restores {
		if err := r.undoStep(ctx, i, back); err != nil {
			return err
		}
	}
	r.result.Outcome, r.result.Message = Done, "the kept conf is back, byte for byte"
	if r.Access == AccessManual {
		r.result.Message = "the kept conf is back, as the operator says"
	}
	if len(r.state.Unseen) > 0 {
		r.result.Message += ". Not looked at: " + cut(join(r.state.Unseen))
	}
	if !r.state.served() {
		r.result.Next = "apply Multus' manifests now: until its daemon runs, no ordinary Pod can start on these nodes"
	}
	return nil
}

func (r *Rollback) undoStep(ctx context.Context, i int, back restore) error {
	step := &r.result.Steps[i]
	r.current = i
	message, err := r.putBack(ctx, r.node(back.node), back.backup)
	step.At, step.Message = r.Now(), message
	if err != nil {
		step.State, step.Message = StepFailed, err.Error()
		return err
	}
	step.State = StepDone
	r.notef(StepUndo, "step %d of %d done: %s: %s", step.Number, len(r.result.Steps), step.Subject(), message)
	return nil
}

// undoPlan is what goes back where. Its rules:
//
//   - the newest proven copy of a node is taken, and what was kept together
//     with it; this machine's copies are for a node that has none;
//   - an empty conf is not put back: it would leave the node without network;
//   - a conf of that name that is there already is left alone.
func (r *Rollback) undoPlan() (Plan, []restore) {
	var plan Plan
	var restores []restore
	var unreached []string
	plan.Guards = append(plan.Guards, accessGuard(r.state))
	if len(r.state.Unseen) > 0 {
		plan.Notes = append(plan.Notes, "not looked at: "+cut(join(r.state.Unseen)))
	}
	for i := range r.state.Nodes {
		n := &r.state.Nodes[i]
		if r.Access == AccessManual {
			plan.Steps = append(plan.Steps, Step{Action: ActionRestore, Node: n.Name, Text: "you put the kept conf back, by the lines that are printed"})
			restores = append(restores, restore{node: n.Name})
			continue
		}
		if !n.Looked {
			plan.Steps = append(plan.Steps, Step{Action: ActionRestore, Node: n.Name, Text: "look for kept copies and put the newest back, if it is missing"})
			continue
		}
		for _, b := range r.latest(n) {
			if b.Dir != "" && b.Dir != n.ConfDir {
				unreached = append(unreached, fmt.Sprintf("the copy of %s that this machine keeps of node %s is from %s, and %s was looked into: name the right folder with --cni-conf-dir", b.Conf, n.Name, b.Dir, n.ConfDir))
				continue
			}
			if there := fileNamed(n.Dir.Files, b.Conf); there != nil {
				plan.Notes = append(plan.Notes, fmt.Sprintf("node %s: %s is there already%s", n.Name, b.Conf, differs(*there, b)))
				continue
			}
			if n.Dir.Locked != "" {
				unreached = append(unreached, "node "+n.Name+": "+n.Dir.Locked)
				continue
			}
			plan.Steps = append(plan.Steps, Step{Action: ActionRestore, Node: n.Name, Text: fmt.Sprintf(
				"put %s back into %s (%d bytes, SHA-256 %s, kept at %s)", b.Conf, n.ConfDir, b.Size, b.SHA256, b.Time.UTC().Format(time.RFC3339))})
			restores = append(restores, restore{node: n.Name, backup: b})
			if !n.Serving {
				plan.Notes = append(plan.Notes, fmt.Sprintf("no Multus daemon is Ready on node %s: from the moment its conf is back until one is, no ordinary Pod can start there", n.Name))
			}
		}
	}
	for i := range plan.Steps {
		plan.Steps[i].Number = i + 1
	}
	if len(unreached) > 0 {
		plan.Guards = append(plan.Guards, broken(GuardConf, unreached, "%s", strings.Join(unreached, "; ")))
	}
	return plan, restores
}

func differs(there File, b Backup) string {
	if there.SHA256 == b.SHA256 {
		return ", byte for byte"
	}
	return ", with other content: it is left alone"
}

func fileNamed(files []File, name string) *File {
	for i := range files {
		if files[i].Name == name {
			return &files[i]
		}
	}
	return nil
}

// latest are the copies that were taken together last.
func (r *Rollback) latest(n *NodeState) []Backup {
	backups := usable(Backups(n.Dir.Backups))
	if len(backups) == 0 {
		kept, err := r.Store.LoadConfs(n.Name)
		if err != nil {
			r.notef(StepUndo, "the copies that this machine keeps cannot be read: %v", err)
		}
		backups = usable(kept)
	}
	if len(backups) == 0 {
		return nil
	}
	return slices.DeleteFunc(backups, func(b Backup) bool { return !b.Time.Equal(backups[0].Time) })
}

// keptFrom is the folder that this machine's newest copy of a node's conf was taken
// from; empty where it has none.
func (r *Rollback) keptFrom(node string) string {
	kept, err := r.Store.LoadConfs(node)
	if err != nil {
		return "" // the copies are asked for again, and the error is told then
	}
	for _, b := range usable(kept) {
		if PlainDir(b.Dir) {
			return b.Dir
		}
	}
	return ""
}

func usable(backups []Backup) []Backup {
	return slices.DeleteFunc(backups, func(b Backup) bool { return b.Size == 0 })
}

// putBack restores one conf and proves it by its checksum.
func (r *Rollback) putBack(ctx context.Context, n *NodeState, b Backup) (string, error) {
	if r.Access == AccessManual {
		return r.byHand(ctx, n, restoreLines(*n))
	}
	done, err := r.act(ctx, *n, func(nonce string) nodeJob { return restoreJob(n.Name, n.ConfDir, nonce, b) })
	if err != nil {
		return "", err
	}
	if done.stopped != "" {
		return "", failf("look at the node by hand, then run the same command again", "node %s: %s", n.Name, done.stopped)
	}
	result := r.nodeResult(*n)
	result.ConfDir = n.ConfDir
	result.Backups = append(result.Backups, b)
	if len(done.present) > 0 {
		return b.Conf + " is there already, byte for byte", nil
	}
	return fmt.Sprintf("%s is back (SHA-256 %s)", b.Conf, b.SHA256), nil
}
