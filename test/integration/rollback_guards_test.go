//go:build integration

package integration

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// asking is a Pod template in the namespace of somebody else that asks for the
// network, in one of the forms that Multus takes.
func asking(annotation string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"app": "user"},
			Annotations: map[string]string{"k8s.v1.cni.cncf.io/networks": annotation},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "user", Image: "busybox"}}, NodeName: "elsewhere"},
	}
}

// Whatever asks for the network, in any namespace, stops the run with its name.
func TestRollbackStopsWhileTheNetworkIsInUse(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "inuse")
	ctx := t.Context()
	meta := metav1.ObjectMeta{Namespace: "media", Name: "user"}
	_, err := s.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "media"}}, metav1.CreateOptions{})
	check(t, err)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "user"}}
	far := s.Namespace + "/" + s.Network
	list := `[{"name":"` + s.Network + `","namespace":"` + s.Namespace + `"}]`
	apps, batch, force := s.client.AppsV1(), s.client.BatchV1(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	jobTemplate := func() corev1.PodTemplateSpec {
		template := asking(far)
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		return template
	}
	for _, row := range []struct {
		kind   string
		create func() error
		remove func() error
	}{
		{"Pod media/user", func() error {
			template := asking(list)
			pod := &corev1.Pod{ObjectMeta: meta, Spec: template.Spec}
			pod.Annotations = template.Annotations
			_, err := s.client.CoreV1().Pods("media").Create(ctx, pod, metav1.CreateOptions{})
			return err
		}, func() error { return s.client.CoreV1().Pods("media").Delete(ctx, "user", force) }},
		{"Deployment media/user", func() error {
			_, err := apps.Deployments("media").Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: asking(far + "@net1")}}, metav1.CreateOptions{})
			return err
		}, func() error { return apps.Deployments("media").Delete(ctx, "user", force) }},
		{"StatefulSet media/user", func() error {
			_, err := apps.StatefulSets("media").Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: asking("other, " + far)}}, metav1.CreateOptions{})
			return err
		}, func() error { return apps.StatefulSets("media").Delete(ctx, "user", force) }},
		{"DaemonSet media/user", func() error {
			_, err := apps.DaemonSets("media").Create(ctx, &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: asking(far)}}, metav1.CreateOptions{})
			return err
		}, func() error { return apps.DaemonSets("media").Delete(ctx, "user", force) }},
		{"ReplicaSet media/user", func() error {
			_, err := apps.ReplicaSets("media").Create(ctx, &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(0)), Selector: selector, Template: asking(list)}}, metav1.CreateOptions{})
			return err
		}, func() error { return apps.ReplicaSets("media").Delete(ctx, "user", force) }},
		{"Job media/user", func() error {
			_, err := batch.Jobs("media").Create(ctx, &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: jobTemplate()}}, metav1.CreateOptions{})
			return err
		}, func() error {
			return batch.Jobs("media").Delete(ctx, "user", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
		}},
		{"CronJob media/user", func() error {
			_, err := batch.CronJobs("media").Create(ctx, &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{
				Schedule: "0 3 * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: jobTemplate()}},
			}}, metav1.CreateOptions{})
			return err
		}, func() error { return batch.CronJobs("media").Delete(ctx, "user", force) }},
	} {
		t.Run(row.kind, func(t *testing.T) {
			check(t, row.create())
			p := s.behindProxy()
			s.rollback("--yes").expectError(t, 5, "nothing was changed", row.kind, "--also KIND/NAMESPACE/NAME")
			if changes := p.requests(mutations); len(changes) > 0 {
				t.Errorf("it asked for changes: %v", changes)
			}
			plan := s.rollback("--dry-run")
			if plan.code != 5 || plan.plan(t).Status.Ready {
				t.Errorf("dry run: exit code %d", plan.code)
			}
			check(t, row.remove())
		})
	}
	s.checkUntouched()
}

// Consumers that the user names go first, whether by flag or by manifest.
func TestRollbackTakesConsumersAlong(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "consumers")
	proxy := func(name string) {
		pod, err := s.CanaryPod()
		check(t, err)
		pod.Name, pod.Spec.InitContainers = name, nil
		pod.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": s.Network}
		_, err = s.client.CoreV1().Pods(s.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		check(t, err)
	}
	proxy("proxy-1")
	proxy("proxy-2")
	manifests := s.file("proxy.yaml", `apiVersion: v1
kind: Pod
metadata: {name: proxy-2, namespace: `+s.Namespace+`}
---
apiVersion: v1
kind: Namespace
metadata: {name: `+s.Namespace+`}
---
apiVersion: v1
kind: Secret
metadata: {name: proxy-key, namespace: `+s.Namespace+`}
`)
	s.rollback("--yes", "--also", "pod/"+s.Namespace+"/proxy-1").expectError(t, 5, "Pod "+s.Namespace+"/proxy-2")
	s.checkUntouched()
	out := s.rollback("--yes", "--also", "pod/"+s.Namespace+"/proxy-1", "-f", manifests)
	document := out.expectResult(t, 0, "done")
	out.said(t, "Namespace "+s.Namespace+" stays", "Secret proxy-key stays")
	var deleted []string
	for _, step := range document.Status.Steps {
		if step.Action == "delete" {
			deleted = append(deleted, step.Object)
		}
	}
	want := []string{"Pod " + s.Namespace + "/proxy-1", "Pod " + s.Namespace + "/proxy-2", "Pod " + s.Namespace + "/" + s.Canary}
	if !slices.Equal(deleted[:3], want) {
		t.Errorf("deleted first: %v, want %v", deleted[:3], want)
	}
	s.checkGone()
}

// The definition of networks is everybody's.
func TestRollbackKeepsTheNetworksOfOthers(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "foreign")
	networks := s.dyn.Resource(schema.GroupVersionResource{Group: "k8s.cni.cncf.io", Version: "v1", Resource: "network-attachment-definitions"}).Namespace("default")
	foreign := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
		"metadata": map[string]any{"name": "vlan20", "namespace": "default"}, "spec": map[string]any{"config": "{}"},
	}}
	_, err := networks.Create(t.Context(), foreign, metav1.CreateOptions{})
	check(t, err)
	s.rollback("--yes").expectResult(t, 0, "done", "CustomResourceDefinition", "stays", "default/vlan20")
	if left := s.left(); !slices.Equal(left, []string{"network-attachment-definitions.k8s.cni.cncf.io"}) {
		t.Errorf("left: %v", left)
	}
	if _, err := networks.Get(t.Context(), "vlan20", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	s.rollback().expectResult(t, 0, "clean", "default/vlan20")
	out := s.run("rollback", "status", "-o", "json")
	var document v1alpha1.RollbackStatus
	out.decode(t, &document)
	if !document.Status.Clean || len(document.Status.Objects) != 1 || !strings.Contains(document.Status.Objects[0].Stays, "default/vlan20") {
		t.Errorf("what others use counts as left: %+v", document.Status)
	}
	check(t, networks.Delete(t.Context(), "vlan20", metav1.DeleteOptions{}))
	s.rollback("--yes").expectResult(t, 0, "done")
	s.checkGone()
}

// What others run with stays, with all that it may do.
func TestRollbackKeepsTheAccountOfOthers(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "account")
	pods := s.client.CoreV1().Pods(s.DaemonSet.Namespace)
	_, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "inspector"},
		Spec: corev1.PodSpec{
			ServiceAccountName: "multus", NodeSelector: map[string]string{"nowhere": "true"},
			Containers: []corev1.Container{{Name: "main", Image: "registry.example/inspector:1"}},
		},
	}, metav1.CreateOptions{})
	check(t, err)
	s.rollback("--yes").expectResult(t, 0, "done", "ServiceAccount", "stays", "Pod "+s.DaemonSet.Namespace+"/inspector")
	if left := s.left(); !slices.Equal(left, []string{"multus/account", "multus/binding", "multus/role"}) {
		t.Errorf("left: %v", left)
	}
	check(t, pods.Delete(t.Context(), "inspector", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	s.rollback("--yes").expectResult(t, 0, "done")
	s.checkGone()
}

// A second Multus is never taken for a consumer: nobody would look to its nodes.
func TestRollbackStopsForASecondMultus(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "second")
	sets := s.client.AppsV1().DaemonSets(s.DaemonSet.Namespace)
	set, err := sets.Get(t.Context(), s.DaemonSet.Name, metav1.GetOptions{})
	check(t, err)
	set.ObjectMeta = metav1.ObjectMeta{Name: "kube-multus-ds-arm64", Labels: set.Labels}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": "multus-arm64"}}
	set.Spec.Template.Labels = map[string]string{"name": "multus-arm64"}
	set.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/arch": "arm64"}
	_, err = sets.Create(t.Context(), set, metav1.CreateOptions{})
	check(t, err)
	s.rollback("--yes", "--also", "daemonset/"+s.DaemonSet.Namespace+"/kube-multus-ds-arm64").
		expectError(t, 5, "DaemonSet "+s.DaemonSet.Namespace+"/kube-multus-ds-arm64", "nothing was changed")
	s.checkUntouched()
}

// applicationCRD is as much of Argo CD as a rollback looks at.
const applicationCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"applications.argoproj.io"},
"spec":{"group":"argoproj.io","scope":"Namespaced","names":{"kind":"Application","plural":"applications","singular":"application"},
"versions":[{"name":"v1alpha1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

func TestRollbackStopsForArgoCD(t *testing.T) {
	t.Parallel()
	s := newRollbackSite(t, ownPlane(t), "argocd")
	create := func(resource schema.GroupVersionResource, namespace, text string) error {
		object := &unstructured.Unstructured{}
		check(t, json.Unmarshal([]byte(text), &object.Object))
		if namespace == "" {
			_, err := s.dyn.Resource(resource).Create(t.Context(), object, metav1.CreateOptions{})
			return err
		}
		_, err := s.dyn.Resource(resource).Namespace(namespace).Create(t.Context(), object, metav1.CreateOptions{})
		return err
	}
	check(t, create(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "", applicationCRD))
	apps := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
	eventually(t, "Applications are served", func() bool {
		return create(apps, "default", `{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{"name":"network"},
			"spec":{"syncPolicy":{"automated":{"selfHeal":true}}},
			"status":{"resources":[{"group":"apps","kind":"DaemonSet","namespace":"`+s.DaemonSet.Namespace+`","name":"`+s.DaemonSet.Name+`"}]}}`) == nil
	})
	s.rollback("--yes").expectError(t, 5, "Application default/network", "self-heal",
		`kubectl --namespace default patch applications.argoproj.io network --type merge --patch '{"spec":{"syncPolicy":{"automated":null}}}'`)
	s.checkUntouched()
	// The command that was named, done.
	_, err := s.dyn.Resource(apps).Namespace("default").Patch(t.Context(), "network", "application/merge-patch+json",
		[]byte(`{"spec":{"syncPolicy":{"automated":null}}}`), metav1.PatchOptions{})
	check(t, err)
	s.rollback("--yes").expectResult(t, 0, "done")
	s.checkGone()
}

// Two nodes: the second one's network does not work without Multus.
func TestRollbackStopsAtTheFirstNodeThatFails(t *testing.T) {
	t.Parallel()
	const second = "node-b"
	server := ownPlane(t)
	s := newRollbackSite(t, server, "twonodes", func(site *scriptednode.Site) {
		site.Peers = []scriptednode.Peer{{Name: second, Ready: true}}
	})
	files := newNodeFiles(t, scriptednode.Reference().ConfDir)
	files.probing = func(*corev1.Pod) scriptednode.Script {
		return scriptednode.Script{Name: "no network", Steps: []scriptednode.Step{
			{Do: scriptednode.Event{Type: corev1.EventTypeWarning, Reason: "FailedCreatePodSandBox", Message: "Failed to create pod sandbox: no network for you (1)"}},
			{Do: scriptednode.Event{Type: corev1.EventTypeWarning, Reason: "FailedCreatePodSandBox", Message: "Failed to create pod sandbox: no network for you (2)"}},
		}}
	}
	other := scriptednode.Named("second")
	other.Node = second
	config, err := server.Config()
	check(t, err)
	files.node, err = scriptednode.New(config, other, scriptednode.Options{Pods: files.pods})
	check(t, err)
	check(t, files.node.Start(t.Context()))
	t.Cleanup(files.node.Stop)

	document := s.rollback("--yes").expectResult(t, 3, "failed", "node "+second, "gets no sandbox", "is made as it was")
	states := ""
	for _, step := range document.Status.Steps {
		states += step.State[:1]
	}
	if !strings.HasPrefix(states, "dddfp") {
		t.Errorf("the first node is done, the second one failed in its probe, the rest is pending; got %s", states)
	}
	if left := s.left(); len(left) != len(s.objects()) {
		t.Errorf("objects were deleted: %v are left", left)
	}
	if s.node.ConfPresent() {
		t.Error("the first node has its Multus conf still")
	}
	if got, _ := files.read("00-multus.conf"); got != multusConf {
		t.Errorf("the second node's conf was not put back: %q", got)
	}
	s.checkNoPods()
}
