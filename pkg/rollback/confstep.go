package rollback

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// comebacks bounds how often a conf is removed that comes back: the daemon
// writes it at every start and whenever the primary conf is written.
const comebacks = 3

// removeConf keeps a node's Multus conf aside and removes it.
func (r *Rollback) removeConf(ctx context.Context, name string) (string, error) {
	n := r.node(name)
	if r.Access == AccessManual {
		return r.byHand(ctx, n, r.removeLines(*n))
	}
	return r.clearAnew(ctx, n, false)
}

// clearAnew looks again where the conf dir has changed since it was judged:
// that is no fault, and the next judgement may be the same.
func (r *Rollback) clearAnew(ctx context.Context, n *NodeState, last bool) (string, error) {
	for try := 1; ; try++ {
		text, err := r.clear(ctx, n, last)
		var moved *movedOn
		if !errors.As(err, &moved) || try == comebacks {
			return text, err
		}
		r.notef(StepNode, "%v; looking again", err)
		if _, err := r.comeback(ctx, n); err != nil {
			return "", err
		}
	}
}

// movedOn is a failure of a script that found another conf dir than was judged.
type movedOn struct{ failure }

func (m *movedOn) Unwrap() error { return &m.failure }

// clear removes what the last look has found, if all is still as it was then.
// The last visit takes along what a daemon or its Pods may have needed.
func (r *Rollback) clear(ctx context.Context, n *NodeState, last bool) (string, error) {
	finding := n.Finding()
	planner := planner{state: r.state}
	job := removal{finding: finding, credentials: last && planner.credentials(*n)}
	if last && planner.binaries(*n) {
		job.binDir, job.binaries = n.BinDir, multusBinaries()
	}
	if len(finding.Multus) == 0 && !job.credentials && len(job.binaries) == 0 {
		r.conclude(*n)
		return "no Multus conf is there", nil
	}
	if finding.Problem != "" {
		return "", failf(undoHint, "node %s: %s", n.Name, finding.Problem)
	}
	if err := r.keepLocally(*n, finding); err != nil {
		return "", err
	}
	r.waitf(StepNode, "node %s: keeping the Multus conf aside and removing it", n.Name)
	at := newerThan(r.Now(), n.Dir.Backups)
	done, err := r.act(ctx, *n, func(nonce string) nodeJob { return removeJob(n.Name, n.ConfDir, nonce, at, job) })
	if err != nil {
		return "", err
	}
	r.noteBackups(*n, done, at)
	if done.stopped != "" {
		stopped := failure{reason: fmt.Sprintf("node %s: %s", n.Name, done.stopped), next: lookAnew}
		if done.stale {
			return "", &movedOn{stopped}
		}
		return "", &stopped
	}
	return told(*n, done), nil
}

const lookAnew = "run the same command again: it looks at the node anew"

// keepLocally saves the confs' contents on this machine, before the node loses
// them.
func (r *Rollback) keepLocally(n NodeState, finding Finding) error {
	now := newerThan(r.Now(), n.Dir.Backups) // one time for all: they belong together
	for _, conf := range finding.Multus {
		_, err := r.Store.SaveConf(n.Name, Backup{
			Conf: conf.Name, SHA256: conf.SHA256, Time: now, Dir: n.ConfDir, Size: conf.Size, Content: conf.Content,
		})
		if err != nil {
			return fmt.Errorf("saving %s of node %s on this machine before it is removed: %w", conf.Name, n.Name, err)
		}
	}
	return nil
}

// act runs a script that changes a node, and reads its report.
func (r *Rollback) act(ctx context.Context, n NodeState, job func(nonce string) nodeJob) (acted, error) {
	nonce := fresh()
	message, _, err := r.runJob(ctx, job(nonce), n.Image)
	if err != nil {
		if ctx.Err() != nil {
			return acted{}, context.Cause(ctx)
		}
		return acted{}, failf(lookAnew, "node %s: %v", n.Name, err)
	}
	done, err := parseAct(message, nonce)
	if err != nil {
		return done, failf("look at the node by hand, then run the same command again", "node %s: %v", n.Name, err)
	}
	return done, nil
}

// noteBackups puts into the result where the node keeps its confs now.
func (r *Rollback) noteBackups(n NodeState, done acted, at time.Time) {
	result := r.conclude(n)
	for _, conf := range n.Finding().Multus {
		if copyName, ok := done.copies[conf.Name]; ok {
			// A copy of the same content was taken for it, under the new time.
			result.Backups = slices.DeleteFunc(result.Backups, func(b Backup) bool { return b.Conf == conf.Name && b.SHA256 == conf.SHA256 })
			result.Backups = append(result.Backups, Backup{Conf: conf.Name, SHA256: conf.SHA256, File: copyName, Time: at, Size: conf.Size})
		}
	}
	for name, fate := range done.binaries {
		result.Notes = append(result.Notes, binaryFate(n.BinDir, name, fate))
	}
}

// conclude notes what a node's conf dir is like.
func (r *Rollback) conclude(n NodeState) *NodeResult {
	result := r.nodeResult(n)
	result.ConfDir = n.ConfDir
	if primary := n.Finding().Primary; primary != nil {
		result.Primary = primary.Name
	}
	return result
}

func binaryFate(dir, name, fate string) string {
	file := dir + "/" + name
	switch fate {
	case "removed":
		return file + " was removed: it was the image's own copy"
	case "differs":
		return file + " stays: it is not the image's own copy"
	case "unproven":
		return file + " stays: the image has no copy to prove it by"
	}
	return file + " is not there"
}

func told(n NodeState, done acted) string {
	var parts []string
	for _, conf := range done.removed {
		parts = append(parts, fmt.Sprintf("%s removed; kept as %s/%s/%s", conf, n.ConfDir, BackupDir, done.copies[conf]))
	}
	for _, conf := range done.absent {
		parts = append(parts, conf+" had gone by itself")
	}
	for _, name := range done.moved {
		parts = append(parts, name+" kept aside")
	}
	removed := 0
	for _, fate := range done.binaries {
		if fate == "removed" {
			removed++
		}
	}
	if len(done.binaries) > 0 {
		parts = append(parts, fmt.Sprintf("%d %s removed from %s", removed, plural(removed, "plugin", "plugins"), n.BinDir))
	}
	return strings.Join(parts, "; ")
}

// recheck looks again once no daemon is left: it may have written its conf
// again in the meantime, and then nobody serves it.
func (r *Rollback) recheck(ctx context.Context, name string) (string, error) {
	n := r.node(name)
	if r.Access == AccessManual {
		return "the probe shows whether a Multus conf is in effect", nil
	}
	back, err := r.comeback(ctx, n)
	if err != nil {
		return "", err
	}
	text, err := r.clearAnew(ctx, n, true)
	if err == nil && back {
		text = "the conf had come back: " + text
	}
	return text, err
}

// comeback looks at a node anew and reports whether it has a Multus conf.
func (r *Rollback) comeback(ctx context.Context, n *NodeState) (bool, error) {
	r.waitf(StepNode, "looking again at the CNI conf of node %s", n.Name)
	if err := r.lookAt(ctx, n); err != nil {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		return false, failf(lookAnew, "node %s: %v", n.Name, err)
	}
	return len(n.Finding().Multus) > 0, nil
}

// probeStep proves that ordinary Pods start without Multus. Where Multus is
// still in the chain its conf has come back, and goes again.
func (r *Rollback) probeStep(ctx context.Context, name string) (string, error) {
	n := r.node(name)
	for try := 1; ; try++ {
		seen, err := r.probe(ctx, *n)
		if err != nil {
			return "", err
		}
		switch {
		case seen.ready:
			r.nodeResult(*n).Probed = true
			return "an ordinary Pod got Ready without Multus", nil
		case try == comebacks:
			return "", r.probeFailed(ctx, n, seen)
		}
		removed, err := r.removeAgain(ctx, n, seen)
		if err != nil {
			return "", err
		}
		if !removed {
			return "", r.probeFailed(ctx, n, seen)
		}
	}
}

// probeFailed ends the run. A node whose network does not work without Multus,
// though its other conf looks well, gets its Multus conf back while the daemon
// is there to serve it: it is as it was found.
func (r *Rollback) probeFailed(ctx context.Context, n *NodeState, seen probed) error {
	reason := fmt.Sprintf("node %s: %s", n.Name, seen.reason)
	if seen.trouble.kind != sandboxTrouble || !r.serves(ctx, n) {
		return failf(undoHint, "%s", reason)
	}
	if r.Access == AccessManual {
		r.notef(StepProbe, "%s; these lines make the node as it was, while the Multus daemon still serves", reason)
		if _, err := r.byHand(ctx, n, restoreLines(*n)); err != nil {
			return failf(undoHint, "%s; that the conf is back was not confirmed", reason)
		}
		return failf("mend the node's own network, then run the same command again", "%s; the conf is back, as the operator says", reason)
	}
	put := newestOfEach(r.nodeResult(*n).Backups)
	if len(put) == 0 {
		return failf(undoHint, "%s", reason)
	}
	for _, b := range put {
		text, err := r.putBack(ctx, n, b)
		if err != nil {
			return failf(undoHint, "%s; putting %s back failed as well: %v", reason, b.Conf, err)
		}
		reason += "; the Multus daemon still serves, so that the node is made as it was: " + text
	}
	return failf("mend the node's own network, then run the same command again", "%s", reason)
}

// newestOfEach are the last copies of each conf that are not empty.
func newestOfEach(backups []Backup) []Backup {
	backups = usable(slices.Clone(backups))
	Newest(backups)
	var newest []Backup
	for _, b := range backups {
		if !slices.ContainsFunc(newest, func(have Backup) bool { return have.Conf == b.Conf }) {
			newest = append(newest, b)
		}
	}
	return newest
}

// serves reports whether a daemon serves a node now, and is to stay for as long
// as this run lets it: a conf that is put back without one stops the node's Pods.
func (r *Rollback) serves(ctx context.Context, n *NodeState) bool {
	if !n.Serving {
		return false
	}
	state, err := r.collectAnew(ctx)
	return err == nil && slices.ContainsFunc(state.Nodes, func(now NodeState) bool { return now.Name == n.Name && now.Serving })
}

const undoHint = "mend it on the node and run the same command again, or go back with --undo"

// removeAgain removes a conf that has come back; false where there is nothing to
// be gained by another probe.
func (r *Rollback) removeAgain(ctx context.Context, n *NodeState, seen probed) (bool, error) {
	if r.Access == AccessManual {
		// Where no daemon serves, a conf of Multus' is what stops a sandbox.
		if !seen.multus && (seen.trouble.kind != sandboxTrouble || r.serves(ctx, n)) {
			return false, nil
		}
		r.notef(StepProbe, "node %s: %s", n.Name, seen.reason)
		_, err := r.byHand(ctx, n, r.removeLines(*n))
		return err == nil, err
	}
	if seen.trouble.kind == imageTrouble {
		return false, nil
	}
	back, err := r.comeback(ctx, n)
	if err != nil {
		return false, err
	}
	if !back {
		// The runtime may have made the sandbox by the conf that was there before.
		return seen.multus, nil
	}
	r.notef(StepNode, "node %s: the Multus conf has come back; removing it again", n.Name)
	_, err = r.clearAnew(ctx, n, false)
	return true, err
}

// byHand lets the operator work on a node.
func (r *Rollback) byHand(ctx context.Context, n *NodeState, lines string) (string, error) {
	if r.Operator == nil {
		return "", refusef("there is no terminal to wait for the operator on")
	}
	agreed, err := r.Operator(ctx, n.Name, lines)
	if err != nil {
		return "", err
	}
	if !agreed {
		return "", refusef("the work on node %s was not confirmed", n.Name)
	}
	r.conclude(*n)
	return "done by hand, as the operator says", nil
}
