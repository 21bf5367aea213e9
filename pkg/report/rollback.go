package report

import (
	"path"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/rollback"
)

// The states of a node in a rollback's status.
const (
	rolledClean   = "clean"
	rolledMultus  = "multus"
	rolledBroken  = "broken"
	rolledUnknown = "unknown"
)

// RollbackPlan is the document of a plan.
func RollbackPlan(daemonSet evidence.Ref, plan rollback.Plan) *v1alpha1.RollbackPlan {
	document := &v1alpha1.RollbackPlan{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: "RollbackPlan"},
		ObjectMeta: rollbackMeta(daemonSet),
		Status: v1alpha1.RollbackPlanStatus{
			Ready: len(plan.Broken()) == 0, Empty: plan.Empty(), Notes: cleanTexts(plan.Notes),
			Guards: []v1alpha1.RollbackGuard{}, Steps: []v1alpha1.RollbackStep{},
		},
	}
	for _, guard := range plan.Guards {
		document.Status.Guards = append(document.Status.Guards, v1alpha1.RollbackGuard{
			Name: string(guard.Name), State: string(guard.Truth), Message: Clean(guard.Message), Objects: cleanTexts(guard.Objects),
		})
	}
	for _, step := range plan.Steps {
		state := "planned"
		if step.Action == rollback.ActionKeep {
			state = string(rollback.StepKept)
		}
		document.Status.Steps = append(document.Status.Steps, rollbackStep(step, state))
	}
	return document
}

func rollbackMeta(ref evidence.Ref) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: Clean(ref.Namespace), Name: Clean(ref.Name)}
}

func rollbackStep(step rollback.Step, state string) v1alpha1.RollbackStep {
	out := v1alpha1.RollbackStep{
		Number: step.Number, Action: string(step.Action), Node: Clean(step.Node), Text: Clean(step.Text), State: state,
	}
	if step.Object != nil {
		out.Object = Clean(step.Object.String())
	}
	return out
}

// RollbackResult is the document of a run.
func RollbackResult(daemonSet evidence.Ref, result rollback.Result) *v1alpha1.RollbackResult {
	document := &v1alpha1.RollbackResult{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: "RollbackResult"},
		ObjectMeta: rollbackMeta(daemonSet),
		Status: v1alpha1.RollbackResultStatus{
			Outcome: string(result.Outcome), Message: Clean(result.Message), Next: Clean(result.Next),
			Manifests: Clean(result.Saved), StartedAt: micro(result.Started), EndedAt: micro(result.Ended),
			Steps: []v1alpha1.RollbackStep{},
		},
	}
	for _, step := range result.Steps {
		out := rollbackStep(step.Step, string(step.State))
		out.Message, out.At = Clean(step.Message), micro(step.At)
		document.Status.Steps = append(document.Status.Steps, out)
	}
	for _, node := range result.Nodes {
		document.Status.Nodes = append(document.Status.Nodes, v1alpha1.RollbackNode{
			Name: Clean(node.Name), ConfDir: Clean(node.ConfDir), Primary: Clean(node.Primary),
			Backups: rollbackBackups(node.ConfDir, node.Backups), Probed: new(node.Probed), Notes: cleanTexts(node.Notes),
		})
	}
	return document
}

func rollbackBackups(dir string, backups []rollback.Backup) []v1alpha1.RollbackBackup {
	var out []v1alpha1.RollbackBackup
	for _, b := range backups {
		kept := v1alpha1.RollbackBackup{Conf: Clean(b.Conf), SHA256: Clean(b.SHA256), Size: b.Size, Time: micro(b.Time.Truncate(time.Second))}
		if b.File != "" {
			kept.Path = Clean(path.Join(dir, rollback.BackupDir, b.File))
		}
		out = append(out, kept)
	}
	return out
}

// RollbackStatus is the document of what is left.
func RollbackStatus(daemonSet evidence.Ref, status rollback.Status) *v1alpha1.RollbackStatus {
	document := &v1alpha1.RollbackStatus{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: "RollbackStatus"},
		ObjectMeta: rollbackMeta(daemonSet),
		Status:     v1alpha1.RollbackStatusStatus{Clean: status.Clean(), Pods: cleanTexts(status.Pods), Notes: cleanTexts(status.Notes)},
	}
	document.Status.Message, document.Status.Next = rollbackSummary(status)
	for _, object := range status.Objects {
		document.Status.Objects = append(document.Status.Objects, v1alpha1.RollbackObject{
			Name: Clean(object.String()), Stays: Clean(status.Keep[object.String()]), Deleting: object.Deleting,
		})
	}
	for _, node := range status.Nodes {
		document.Status.Nodes = append(document.Status.Nodes, statusNode(node))
	}
	return document
}

func statusNode(n rollback.NodeStatus) v1alpha1.RollbackNode {
	out := v1alpha1.RollbackNode{
		Name: Clean(n.Name), ConfDir: Clean(n.ConfDir), State: rollbackNodeState(n), Message: Clean(n.Err),
		Backups: rollbackBackups(n.ConfDir, n.Backups),
	}
	if n.Looked && n.Finding.Problem != "" {
		out.Message = Clean(n.Finding.Problem)
	}
	for _, conf := range n.Finding.Multus {
		out.Confs = append(out.Confs, Clean(conf.Name))
	}
	if n.Finding.Primary != nil {
		out.Primary = Clean(n.Finding.Primary.Name)
	}
	if n.Finding.Credentials {
		out.Notes = append(out.Notes, "the folder multus.d of thin Multus is left")
	}
	return out
}

func rollbackNodeState(n rollback.NodeStatus) string {
	switch {
	case !n.Looked:
		return rolledUnknown
	case len(n.Finding.Multus) == 0 && n.Finding.Problem != "":
		return rolledUnknown // whether Pods can start there is not known
	case len(n.Finding.Multus) == 0:
		return rolledClean
	case n.Serving:
		return rolledMultus
	}
	return rolledBroken
}

func rollbackSummary(status rollback.Status) (message, next string) {
	switch broken := status.Broken(); {
	case len(broken) > 0:
		return "a Multus conf is there and no daemon serves it: no ordinary Pod can start on " + Clean(commaList(broken)), "kubectl vlan50 rollback"
	case status.Clean() && len(status.Objects) > 0:
		return "Multus is gone, and every node is clean; what others use stays", ""
	case status.Clean():
		return "Multus is gone, and every node is clean", ""
	case status.Gone() && len(status.Pods) == 0 && len(status.CutShort) > 0:
		return "a rollback of another DaemonSet seems to have been cut short", "kubectl vlan50 rollback status --daemonset NAMESPACE/NAME, for the one that is meant"
	case status.Gone() && len(status.Pods) == 0:
		return "no object of Multus is left; not every node could be seen to be clean", ""
	}
	return "Multus is still there, or part of it", "kubectl vlan50 rollback --dry-run=server shows what would be removed"
}

func cleanTexts(texts []string) []string {
	var out []string
	for _, text := range texts {
		out = append(out, Clean(text))
	}
	return out
}
