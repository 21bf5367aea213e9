package rollback

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Plan is what a run would do, and whether it may.
type Plan struct {
	Guards []Guard
	Steps  []Step
	Notes  []string
}

// Guard is one condition, with its present truth.
type Guard struct {
	Name    GuardName
	Truth   Truth
	Message string
	// Objects are in the way.
	Objects []string
}

// GuardName names a guard for machines.
type GuardName string

// The guards.
const (
	GuardRights      GuardName = "rights"
	GuardUsers       GuardName = "users"
	GuardNetworks    GuardName = "networks-of-others"
	GuardArgoCD      GuardName = "argo-cd"
	GuardOwner       GuardName = "owner"
	GuardOtherDaemon GuardName = "other-daemon"
	GuardNodeAccess  GuardName = "node-access"
	GuardConf        GuardName = "conf"
)

// Truth is whether a guard holds.
type Truth string

// The truths. Unknown is for a dry run, which does not look at nodes.
const (
	Holds   Truth = "holds"
	Broken  Truth = "broken"
	Unknown Truth = "unknown"
)

// Action is what a step does.
type Action string

// The actions.
const (
	ActionRemoveConf Action = "remove-conf"
	ActionProbe      Action = "probe"
	ActionMark       Action = "mark"
	ActionDelete     Action = "delete"
	ActionRecheck    Action = "recheck"
	ActionKeep       Action = "keep"
)

// Step is one numbered step.
type Step struct {
	Number int
	Action Action
	// Node is set for steps on a node, Object for the others.
	Node   string
	Object *Object
	Text   string
}

// Subject is what a step is about.
func (s Step) Subject() string {
	if s.Object != nil {
		return s.Object.String()
	}
	if s.Node == "" {
		return "the objects of this plan"
	}
	return "node " + s.Node
}

// Broken gives the guards that do not hold.
func (p Plan) Broken() []Guard {
	return slices.DeleteFunc(slices.Clone(p.Guards), func(g Guard) bool { return g.Truth != Broken })
}

// Deletions are the steps that delete objects.
func (p Plan) Deletions() []Step {
	return slices.DeleteFunc(slices.Clone(p.Steps), func(s Step) bool { return s.Action != ActionDelete })
}

// ProbesOnly reports whether nothing is left to do but to prove it.
func (p Plan) ProbesOnly() bool {
	return !p.Empty() && !slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Action != ActionKeep && s.Action != ActionProbe })
}

// Empty reports whether nothing is left to do.
func (p Plan) Empty() bool {
	return !slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Action != ActionKeep })
}

// MakePlan orders what is there. The order is fixed: the nodes' confs first,
// while the daemon still serves, so that no node is ever left with a conf that
// nobody serves; then consumers, canary, network, guard script; the DaemonSet
// with its Pods; another look at the nodes; what stood beside the DaemonSet; and
// the definition of networks last, whose deletion deletes all of them.
func MakePlan(s State) Plan {
	p := &planner{state: s}
	for _, node := range s.Nodes {
		p.node(node)
	}
	marked := len(p.steps)
	for _, object := range s.before() {
		p.delete(object)
	}
	for _, node := range s.Nodes {
		p.recheck(node)
	}
	for _, object := range s.after() {
		p.delete(object)
	}
	p.mark(marked)
	for i := range p.steps {
		p.steps[i].Number = i + 1
	}
	return Plan{Guards: guards(s), Steps: p.steps, Notes: append(slices.Clone(s.Notes), p.binariesLeft()...)}
}

type planner struct {
	state State
	steps []Step
}

func (p *planner) add(step Step) { p.steps = append(p.steps, step) }

// before is what goes before the daemon is gone, the daemon included.
func (s State) before() []Object {
	objects := slices.Clone(s.Consumers)
	if s.CanaryPod != nil {
		objects = append(objects, *s.CanaryPod)
	}
	objects = slices.Concat(objects, s.Networks, s.Guards)
	if s.DaemonSetObject != nil {
		objects = append(objects, *s.DaemonSetObject)
	}
	return append(objects, s.orphans()...)
}

// orphans are daemon Pods that no DaemonSet takes with it.
func (s State) orphans() []Object {
	if s.DaemonSetObject != nil {
		return nil
	}
	return s.DaemonPods
}

// after is what goes when no daemon is left.
func (s State) after() []Object {
	objects := slices.Clone(s.Support)
	if s.CRD != nil {
		objects = append(objects, *s.CRD)
	}
	return objects
}

// served reports whether a daemon may still be there.
func (s State) served() bool { return s.DaemonSetObject != nil || len(s.DaemonPods) > 0 }

// node plans the first visit to a node: the conf aside, and a probe where that
// changes something or a daemon is to go.
func (p *planner) node(n NodeState) {
	visit := p.state.served()
	switch finding := n.Finding(); {
	case p.state.Access == AccessManual && !p.state.served():
		visit = true // the probe shows whether anything is left to do by hand
	case p.state.Access == AccessManual:
		p.add(Step{Action: ActionRemoveConf, Node: n.Name, Text: "you keep the Multus conf aside and remove it, by the lines that are printed"})
	case !n.Looked:
		p.add(Step{Action: ActionRemoveConf, Node: n.Name, Text: fmt.Sprintf("look into %s; keep the Multus conf aside and remove it, if it is there and another conf takes over", p.place(n))})
		visit = true
	case len(finding.Multus) > 0:
		p.add(Step{Action: ActionRemoveConf, Node: n.Name, Text: removeText(n, finding)})
		visit = true
	}
	if visit || p.unproven(n) {
		p.add(Step{Action: ActionProbe, Node: n.Name, Text: "an ordinary Pod must get Ready there without Multus"})
	}
}

// unproven is a node without a daemon while objects of Multus' are still there: an
// earlier run may have cleaned it and not probed, or its confs be elsewhere.
func (p *planner) unproven(n NodeState) bool {
	return n.Looked && !p.state.served() && len(p.state.planned()) > 0
}

func (p *planner) place(n NodeState) string {
	if n.ConfDir == "" {
		return "its known CNI conf dirs"
	}
	return n.ConfDir
}

func removeText(n NodeState, finding Finding) string {
	var names []string
	for _, conf := range finding.Multus {
		name := fmt.Sprintf("%s (type %s)", conf.Name, conf.Type)
		if conf.Size == 0 {
			name = conf.Name + " (empty)"
		}
		names = append(names, name)
	}
	text := fmt.Sprintf("keep %s aside in %s/%s and remove it from %s", strings.Join(names, ", "), n.ConfDir, BackupDir, n.ConfDir)
	if finding.Primary != nil {
		text += fmt.Sprintf("; %s (type %s) takes over", finding.Primary.Name, finding.Primary.Type)
	}
	return text
}

// recheck plans the second visit, once no daemon is left that could write its
// conf again.
func (p *planner) recheck(n NodeState) {
	if !p.state.served() && !p.credentials(n) && !p.binaries(n) {
		return
	}
	text := "look again that no Multus conf has come back"
	if p.credentials(n) {
		text += "; keep " + credentialDir + " aside"
	}
	if p.binaries(n) {
		text += "; remove from " + n.BinDir + " the plugins that are proven to be Multus' own"
	}
	p.add(Step{Action: ActionRecheck, Node: n.Name, Text: text})
	p.add(Step{Action: ActionProbe, Node: n.Name, Text: "an ordinary Pod must get Ready there without Multus"})
}

// credentials and binaries are what the last visit takes along. A runtime that
// still calls Multus for Pods started under it needs both.
func (p *planner) credentials(n NodeState) bool {
	return n.Looked && n.Finding().Credentials && !n.crio()
}

func (p *planner) binaries(n NodeState) bool {
	return p.state.RemoveBinaries && p.state.Access == AccessPod && n.BinDir != "" && !n.crio()
}

// binariesLeft says of which nodes the plugins stay though they were to go.
func (p *planner) binariesLeft() []string {
	if !p.state.RemoveBinaries {
		return nil
	}
	var notes []string
	for _, n := range p.state.Nodes {
		why := ""
		switch {
		case p.binaries(n):
			continue
		case n.crio():
			why = "cri-o calls Multus again for Pods that were started under it"
		case p.state.Access == AccessManual:
			why = "they are removed by a node Pod alone, which --node-access=manual forbids"
		default:
			why = "no DaemonSet tells their folder: --cni-bin-dir names it"
		}
		notes = append(notes, fmt.Sprintf("the plugins of node %s stay: %s", n.Name, why))
	}
	return notes
}

// delete plans one deletion, or says why the object stays.
func (p *planner) delete(object Object) {
	if object.UID == "" {
		return
	}
	if why := p.state.Keep[object.String()]; why != "" {
		p.add(Step{Action: ActionKeep, Object: &object, Text: why})
		return
	}
	text := "delete it and wait until it is gone"
	switch {
	case object.Deleting:
		text = "it is being deleted: wait until it is gone"
	case object.Kind.Workload:
		text = "delete it and wait until it and its Pods are gone"
	}
	if len(object.Finalizers) > 0 {
		text += fmt.Sprintf(" (finalizer %s must let it go)", strings.Join(object.Finalizers, ", "))
	}
	p.add(Step{Action: ActionDelete, Object: &object, Text: text})
}

// mark plans the notes on the objects, before the first of them is deleted.
func (p *planner) mark(at int) {
	deletes := slices.ContainsFunc(p.steps[at:], func(s Step) bool { return s.Action == ActionDelete && markable(*s.Object) })
	if !deletes {
		return
	}
	p.steps = slices.Insert(p.steps, at, Step{
		Action: ActionMark, Text: "note on what goes that it goes, so that a run that is cut short can be finished from anywhere",
	})
}

// markable are the objects that only others lead to. A Pod or DaemonSet is
// found by its own name, and so is the definition of networks; roles and
// bindings are found by the account, which goes after them. The API server takes
// any change of a role for a grant of what it holds, which a user of the
// published rights may not do.
func markable(o Object) bool {
	switch o.Kind.Name {
	case "Pod", "CustomResourceDefinition":
		return false
	}
	return !o.Kind.Workload && o.Kind.Group != rbacGroup && !o.Deleting
}

// nodesUnreachable names nodes that a rollback cannot reach.
func nodesUnreachable(nodes []NodeState) []string {
	var names []string
	for _, n := range nodes {
		if !n.Ready {
			names = append(names, "Node "+n.Name)
		}
	}
	return names
}

// withoutNetwork is how the kubelet's word of its Ready condition begins where
// the runtime has no usable CNI conf and nothing else is wrong: several troubles
// come in brackets (kubernetes pkg/kubelet/nodestatus/setters.go).
const withoutNetwork = "container runtime network not ready"

// isReady reads a node's Ready condition. A node that lacks nothing but a CNI
// conf, as an emptied Multus conf leaves it, is one that a rollback can reach and
// mends: Pods on the node's own network start there.
func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady &&
			(c.Status == corev1.ConditionTrue || c.Status == corev1.ConditionFalse && strings.HasPrefix(c.Message, withoutNetwork))
	})
}
