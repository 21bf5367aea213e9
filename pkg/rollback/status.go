package rollback

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Status is what is left of Multus.
type Status struct {
	// Objects are those of the API that a rollback would delete or keep.
	Objects []Object
	Keep    map[string]string
	Nodes   []NodeStatus
	// Pods are ours: of a run that goes on, or left by one that was killed.
	Pods []string
	// CutShort are marks of the rollback of another DaemonSet, which is gone.
	CutShort []string
	Notes    []string
}

// NodeStatus is what is left on one node.
type NodeStatus struct {
	NodeState
	Finding Finding
	Backups []Backup
}

// Clean reports whether nothing is left that a rollback would take away, and
// every node was looked at. What others use stays, as does what a runtime still
// needs for Pods that were started under Multus.
func (s Status) Clean() bool {
	for _, n := range s.Nodes {
		if !n.Looked || n.Finding.Problem != "" || len(n.Finding.Multus) > 0 || n.Finding.Credentials && !n.crio() {
			return false
		}
	}
	return len(s.going()) == 0 && len(s.Pods) == 0 && len(s.CutShort) == 0
}

// going are the objects that a rollback would delete.
func (s Status) going() []Object {
	return slices.DeleteFunc(slices.Clone(s.Objects), func(o Object) bool { return s.Keep[o.String()] != "" })
}

// Gone reports whether no object is left that a rollback would delete.
func (s Status) Gone() bool { return len(s.going()) == 0 }

// Broken names the nodes on which no ordinary Pod can start: their first conf
// is Multus', and no daemon serves it.
func (s Status) Broken() []string {
	var names []string
	for _, n := range s.Nodes {
		if n.Looked && len(n.Finding.Multus) > 0 && !n.Serving {
			names = append(names, n.Name)
		}
	}
	return names
}

// Inspect reads what is left, on the nodes as well. It changes nothing: a node
// Pod that only looks is made and deleted for each node.
func (r *Rollback) Inspect(ctx context.Context) (Status, error) {
	r.AllNodes, r.looksOnly = len(r.Nodes) == 0, true
	state, err := r.collect(ctx)
	if err != nil {
		return Status{}, r.interrupted(ctx, err)
	}
	if err := r.admission(ctx, &state); err != nil {
		return Status{}, r.interrupted(ctx, err)
	}
	r.state = state
	status := Status{Keep: state.Keep, Notes: state.Notes, CutShort: state.CutShort}
	if guard := otherDaemonGuard(state); len(state.CutShort) > 0 {
		status.Notes = append(status.Notes, guard.Message)
	}
	for _, object := range append(state.before(), state.after()...) {
		if object.UID != "" {
			status.Objects = append(status.Objects, object)
		}
	}
	pods, err := r.ownPods(ctx)
	if err != nil {
		return Status{}, r.interrupted(ctx, err)
	}
	for i := range pods {
		name := pods[i].Namespace + "/" + pods[i].Name
		if pods[i].Namespace != state.Ground.Namespace {
			// Whoever may make Pods somewhere may make one that looks like ours.
			status.Notes = append(status.Notes, fmt.Sprintf("the Pod %s looks like one of a rollback with --node-namespace %s", name, pods[i].Namespace))
			continue
		}
		status.Pods = append(status.Pods, name)
	}
	for i := range r.state.Nodes {
		n := &r.state.Nodes[i]
		if err := r.inspectNode(ctx, n); err != nil {
			return Status{}, r.interrupted(ctx, err)
		}
		status.Nodes = append(status.Nodes, NodeStatus{NodeState: *n, Finding: n.Finding(), Backups: Backups(n.Dir.Backups)})
		for _, kept := range n.Dir.Backups {
			if kept.Kind == Directory && strings.HasPrefix(kept.Name, credentialDir) {
				status.Notes = append(status.Notes, fmt.Sprintf("node %s: %s/%s/%s holds the credentials that thin Multus had: delete it where nobody goes back", n.Name, n.ConfDir, BackupDir, kept.Name))
			}
		}
	}
	return status, nil
}

// inspectNode looks at one node; that it cannot be looked at is part of the
// status.
func (r *Rollback) inspectNode(ctx context.Context, n *NodeState) error {
	switch {
	case r.Access == AccessManual:
		n.Err = "not looked at: --node-access=manual"
	case r.state.Admission != "":
		n.Err = r.state.Admission
	case !n.Ready:
		n.Err = "the node is not Ready"
	default:
		r.waitf(StepNode, "looking at the CNI conf of node %s", n.Name)
		if err := r.lookAt(ctx, n); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			n.Err = err.Error()
		}
	}
	return nil
}

// interrupted keeps the cause of an end that came from outside.
func (r *Rollback) interrupted(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("interrupted; nothing was changed: %w", cause)
	}
	return err
}
