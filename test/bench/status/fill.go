//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	nadv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/vlan50/kubectl-vlan50/test/scriptednode"
)

// replicas is how many Pods an application has; they lie in one namespace.
const replicas = 5

// writers is how many writes are under way at once.
const writers = 32

// fill makes the cluster large: Pods as a Deployment makes them, with what
// kubelet and Multus write to them, and events about them.
func (b *bench) fill(ctx context.Context, progress io.Writer, size size) error {
	if err := scriptednode.InstallCRD(ctx, b.config); err != nil {
		return err
	}
	if err := b.site.Apply(ctx, b.config); err != nil {
		return err
	}
	config := rest.CopyConfig(b.config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "filling the cluster with %d Pods and %d events ...\n", size.pods, size.events)
	start := time.Now()
	for i := range size.namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace(i, size)}}
		if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && i > 0 {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range size.pods {
		group.Go(func() error { return b.pod(ctx, client, i, size) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("filling the cluster: %w", err)
	}
	fmt.Fprintf(progress, "filled in %s\n", time.Since(start).Round(time.Second))
	return nil
}

// namespace spreads the Pods; the canary's own namespace has its share.
func (b *bench) namespace(i int, size size) string {
	if i %= size.namespaces; i > 0 {
		return fmt.Sprintf("team-%02d", i)
	}
	return b.site.Namespace
}

// pod creates one Pod, its status and its share of the events.
func (b *bench) pod(ctx context.Context, client kubernetes.Interface, i int, size size) error {
	namespace := b.namespace(i/replicas, size)
	pod := podSpec(namespace, i)
	if i < size.onNetwork {
		pod.Annotations[nadv1.NetworkAttachmentAnnot] = fmt.Sprintf(`[{"name":%q,"namespace":%q,"ips":["192.0.2.%d/24"]}]`, b.site.Network, b.site.Namespace, 101+i)
	}
	created, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{FieldManager: "kube-controller-manager"})
	if err != nil {
		return err
	}
	if i < size.onNetwork {
		metav1.SetMetaDataAnnotation(&created.ObjectMeta, nadv1.NetworkStatusAnnot, fmt.Sprintf(`[{"name":"cbr0","interface":"eth0","ips":["10.42.0.9"],"default":true,"dns":{}},{"name":%q,"interface":"net1","ips":["192.0.2.%d"],"mac":"02:00:00:00:02:01","dns":{}}]`, b.site.Namespace+"/"+b.site.Network, 101+i))
	}
	created.Status = podStatus(created, i)
	if _, err := client.CoreV1().Pods(namespace).UpdateStatus(ctx, created, metav1.UpdateOptions{FieldManager: "kubelet"}); err != nil {
		return err
	}
	for n := range size.events / size.pods {
		if _, err := client.CoreV1().Events(namespace).Create(ctx, event(created, n), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// podSpec is an ordinary application Pod with a sidecar. What differs from Pod
// to Pod on a real cluster differs here: it decides how far an answer can be
// compressed.
func podSpec(namespace string, i int) *corev1.Pod {
	app := fmt.Sprintf("app-%04d", i/replicas)
	var env []corev1.EnvVar
	for n := range 12 {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%02d", n), Value: fmt.Sprintf("value-%d-of-%s", n, app)})
	}
	limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("256Mi")}
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/healthy"}}}, PeriodSeconds: 10, TimeoutSeconds: 1}
	token := "kube-api-access-" + hash("token", namespace, app, fmt.Sprint(i))[:5]
	mount := corev1.VolumeMount{Name: token, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("%s-7d9c5b6f4d-%05d", app, i), GenerateName: app + "-7d9c5b6f4d-",
			Labels:      map[string]string{"app.kubernetes.io/name": app, "app.kubernetes.io/part-of": "suite", "pod-template-hash": "7d9c5b6f4d"},
			Annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-7d9c5b6f4d", UID: ownerUID(app), Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%03d", i%100), ServiceAccountName: "default",
			Containers: []corev1.Container{
				{
					Name: "app", Image: "registry.example/suite/" + app + ":1.4.2", Env: env, LivenessProbe: probe, ReadinessProbe: probe,
					Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
					Resources:    corev1.ResourceRequirements{Requests: limits, Limits: limits},
					VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/app"}, {Name: "tmp", MountPath: "/tmp"}, mount},
				},
				{
					Name: "metrics", Image: "registry.example/suite/metrics:2.0.1", Args: []string{"--listen=:9100", "--app=" + app},
					Ports:        []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9100}},
					Resources:    corev1.ResourceRequirements{Requests: limits, Limits: limits},
					VolumeMounts: []corev1.VolumeMount{mount},
				},
			},
			Volumes: []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: app}}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3607))}},
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
				}}}},
			},
		},
	}
}

// podStatus is what the kubelet has written by the time the Pod runs.
func podStatus(pod *corev1.Pod, i int) corev1.PodStatus {
	host, address := fmt.Sprintf("10.0.0.%d", i%100+1), fmt.Sprintf("10.42.%d.%d", i%100, i/100%250+2)
	scheduled := time.Now().Add(-time.Duration(i) * 7 * time.Minute)
	at := func(d time.Duration) metav1.Time { return metav1.NewTime(scheduled.Add(d)) }
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: host, PodIP: address, StartTime: new(at(0)), QOSClass: corev1.PodQOSGuaranteed,
		PodIPs: []corev1.PodIP{{IP: address}}, HostIPs: []corev1.HostIP{{IP: host}},
	}
	for n, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Ready: true, Image: container.Image, ImageID: container.Image + "@sha256:" + hash("image", container.Image),
			ContainerID: "containerd://" + hash("container", string(pod.UID), container.Name), Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(time.Duration(n+2) * time.Second)}},
		})
	}
	for n, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at(time.Duration(n) * time.Second)})
	}
	return status
}

// hash stands for the random looking names of a cluster, the same in each run.
func hash(of ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(of, "/")))
	return hex.EncodeToString(sum[:])
}

func ownerUID(app string) types.UID {
	h := hash("owner", app)
	return types.UID(strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:32]}, "-"))
}

func event(pod *corev1.Pod, n int) *corev1.Event {
	now := metav1.Now()
	reason := []string{"Scheduled", "Pulled", "Created", "Started", "Unhealthy"}[n%5]
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: pod.Namespace, Name: fmt.Sprintf("%s.%x", pod.Name, n)},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, APIVersion: "v1", FieldPath: "spec.containers{app}"},
		Reason:         reason, Message: reason + ": container app of Pod " + pod.Name, Type: corev1.EventTypeNormal, Count: 1,
		FirstTimestamp: now, LastTimestamp: now, Source: corev1.EventSource{Component: "kubelet", Host: pod.Spec.NodeName},
	}
}

// canary starts the node and lets a canary pass, so that there is a full status
// to tell.
func (b *bench) canary(ctx context.Context) (*scriptednode.Node, error) {
	node, err := scriptednode.New(b.config, b.site, scriptednode.Options{})
	if err != nil {
		return nil, err
	}
	if err := node.Start(ctx); err != nil {
		return nil, err
	}
	manifest := filepath.Join(b.dir, "canary.yaml")
	kubeconfig := filepath.Join(b.dir, "admin")
	if err := os.WriteFile(manifest, b.site.CanaryManifest(), 0o600); err != nil {
		return nil, err
	}
	if err := b.server.WriteKubeconfig(kubeconfig, ""); err != nil {
		return nil, err
	}
	retest := exec.CommandContext(ctx, b.plugin, "canary", "retest", "-f", manifest, "-q")
	retest.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "VLAN50_STATE_DIR="+filepath.Join(b.dir, "state"))
	if out, err := retest.CombinedOutput(); err != nil {
		node.Stop()
		return nil, fmt.Errorf("a first canary: %w\n%s", err, out)
	}
	return node, nil
}
