package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// RollbackPlan is what a rollback would do, and on what conditions. It is named
// after the Multus DaemonSet.
type RollbackPlan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Status RollbackPlanStatus `json:"status"`
}

// RollbackPlanStatus is the plan with its guards' present truth.
type RollbackPlanStatus struct {
	// Ready: no guard is broken.
	Ready bool `json:"ready"`
	// Empty: nothing is left to do.
	Empty  bool            `json:"empty"`
	Guards []RollbackGuard `json:"guards"`
	Steps  []RollbackStep  `json:"steps"`
	Notes  []string        `json:"notes,omitempty"`
}

// RollbackGuard is one condition.
type RollbackGuard struct {
	Name string `json:"name"`
	// State is holds, broken or unknown.
	State   string `json:"state"`
	Message string `json:"message"`
	// Objects are in the way.
	Objects []string `json:"objects,omitempty"`
}

// RollbackStep is one numbered step.
type RollbackStep struct {
	Number int `json:"number"`
	// Action is remove-conf, probe, mark, delete, recheck, restore-conf or keep.
	Action string `json:"action"`
	// Object or Node is what the step is about.
	Object string `json:"object,omitempty"`
	Node   string `json:"node,omitempty"`
	Text   string `json:"text"`
	// State is planned, pending, done, kept or failed.
	State   string            `json:"state"`
	Message string            `json:"message,omitempty"`
	At      *metav1.MicroTime `json:"at,omitempty"`
}

// RollbackResult is what a rollback, or its undoing, did.
type RollbackResult struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Status RollbackResultStatus `json:"status"`
}

// RollbackResultStatus is how it ended, step by step.
type RollbackResultStatus struct {
	// Outcome is done, clean (nothing was left to do), failed or unfinished.
	Outcome string         `json:"outcome"`
	Message string         `json:"message"`
	Next    string         `json:"next,omitempty"`
	Steps   []RollbackStep `json:"steps"`
	Nodes   []RollbackNode `json:"nodes,omitempty"`
	// Manifests is the local folder with what was deleted.
	Manifests string            `json:"manifests,omitempty"`
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`
	EndedAt   *metav1.MicroTime `json:"endedAt,omitempty"`
}

// RollbackNode is one node: what a run left there, or what was found there.
type RollbackNode struct {
	Name    string `json:"name"`
	ConfDir string `json:"confDir,omitempty"`
	// State is clean, multus (its conf is in effect and served), broken (its
	// conf is in effect and nobody serves it) or unknown; set by status alone.
	State string `json:"state,omitempty"`
	// Primary is the conf that is first without Multus'.
	Primary string           `json:"primary,omitempty"`
	Confs   []string         `json:"multusConfs,omitempty"`
	Backups []RollbackBackup `json:"backups,omitempty"`
	// Probed: an ordinary Pod got Ready there without Multus; not set by status.
	Probed  *bool    `json:"probed,omitempty"`
	Message string   `json:"message,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

// RollbackBackup is one kept copy of a conf.
type RollbackBackup struct {
	Conf string `json:"conf"`
	// Path is on the node; empty where only this machine has a copy.
	Path   string            `json:"path,omitempty"`
	SHA256 string            `json:"sha256"`
	Size   int64             `json:"size"`
	Time   *metav1.MicroTime `json:"time,omitempty"`
}

// RollbackStatus is what is left of Multus.
type RollbackStatus struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Status RollbackStatusStatus `json:"status"`
}

// RollbackStatusStatus is the answer to "is Multus gone, and is each node
// clean?".
type RollbackStatusStatus struct {
	// Clean: nothing is left that a rollback would take away, and every node was
	// looked at.
	Clean   bool             `json:"clean"`
	Message string           `json:"message"`
	Next    string           `json:"next,omitempty"`
	Objects []RollbackObject `json:"objects,omitempty"`
	Nodes   []RollbackNode   `json:"nodes,omitempty"`
	// Pods are the tool's own, of a run that goes on or left by one that was killed.
	Pods  []string `json:"pods,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// RollbackObject is one object that is left.
type RollbackObject struct {
	Name string `json:"name"`
	// Stays is why a rollback would keep it.
	Stays    string `json:"stays,omitempty"`
	Deleting bool   `json:"deleting,omitempty"`
}

// DeepCopyObject implements runtime.Object; see CanaryVerdict.
func (in *RollbackPlan) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject implements runtime.Object; see CanaryVerdict.
func (in *RollbackResult) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject implements runtime.Object; see CanaryVerdict.
func (in *RollbackStatus) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}
