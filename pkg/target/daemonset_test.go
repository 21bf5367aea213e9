package target_test

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/vlan50/kubectl-vlan50/pkg/target"
)

func daemonSet(namespace, name string, labels map[string]string, image string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}},
		}},
	}
}

func TestFindDaemonSet(t *testing.T) {
	standard := daemonSet("kube-system", "kube-multus-ds", nil, "x")
	proxy := daemonSet("kube-system", "kube-proxy", map[string]string{"app": "kube-proxy"}, "registry.example/kube-proxy:v1")
	byLabel := daemonSet("multus", "thick", map[string]string{"app": "multus"}, "registry.example/mirror/m:v1")
	byImage := daemonSet("cni", "daemon", nil, "registry.example:5000/k8snetworkplumbingwg/multus-cni@sha256:00")
	lookalike := daemonSet("cni", "dynamic", nil, "registry.example/multus-dynamic-networks-controller:v1")
	tests := []struct {
		name    string
		objects []runtime.Object
		setting string
		want    string // the DaemonSet
		found   string // what the user is told
		err     string
		none    bool // all were looked at
	}{
		{name: "the default one", objects: []runtime.Object{standard, byLabel}, want: "kube-system/kube-multus-ds"},
		{name: "one that is named", objects: []runtime.Object{standard, byLabel}, setting: "multus/thick", want: "multus/thick"},
		{name: "one that is named without a namespace", objects: []runtime.Object{standard, proxy}, setting: "kube-proxy", want: "kube-system/kube-proxy"},
		{
			name: "one that is named and not there", objects: []runtime.Object{standard}, setting: "multus/thick",
			err: "there is no DaemonSet multus/thick: name the Multus one with --daemonset NAMESPACE/NAME", none: true,
		},
		{
			name: "another by its label", objects: []runtime.Object{proxy, byLabel}, want: "multus/thick",
			found: "there is no DaemonSet kube-system/kube-multus-ds; taking multus/thick, which runs Multus",
		},
		{
			name: "another by its image", objects: []runtime.Object{proxy, byImage, lookalike}, want: "cni/daemon",
			found: "there is no DaemonSet kube-system/kube-multus-ds; taking cni/daemon, which runs Multus",
		},
		{
			name: "another by the image of a distribution", objects: []runtime.Object{daemonSet("kube-system", "rke2-multus", nil, "rancher/hardened-multus-cni:v4.2.1")},
			want: "kube-system/rke2-multus", found: "there is no DaemonSet kube-system/kube-multus-ds; taking kube-system/rke2-multus, which runs Multus",
		},
		{
			name: "several", objects: []runtime.Object{byLabel, byImage},
			err: "there is no DaemonSet kube-system/kube-multus-ds and several look like Multus (cni/daemon, multus/thick): name one with --daemonset NAMESPACE/NAME",
		},
		{
			name: "none", objects: []runtime.Object{proxy, lookalike},
			err: "there is no DaemonSet kube-system/kube-multus-ds and none that looks like Multus: name it with --daemonset NAMESPACE/NAME", none: true,
		},
		{name: "not a name", setting: "a/b/c", err: `DaemonSet "a/b/c" is not of the form [NAMESPACE/]NAME`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			client := fake.NewClientset(test.objects...).AppsV1()
			ref, found, err := target.FindDaemonSet(t.Context(), client, test.setting)
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Errorf("error %v, want %s", err, test.err)
				}
				if errors.Is(err, target.ErrNoDaemonSet) != test.none {
					t.Errorf("%v: none of them all is %t, want %t", err, !test.none, test.none)
				}
				return
			}
			if err != nil || ref.String() != test.want || found != test.found {
				t.Errorf("got %s, %q, %v", ref, found, err)
			}
		})
	}
}

// Who may not list everywhere gets what its namespace holds; trouble is told.
func TestFindDaemonSetWithFewRights(t *testing.T) {
	forbidden := apierrors.NewForbidden(appsv1.Resource("daemonsets"), "", errors.New("no"))
	local := daemonSet("kube-system", "multus", map[string]string{"name": "multus"}, "x")
	everywhere := func(err error) clienttesting.ReactionFunc {
		return func(action clienttesting.Action) (bool, runtime.Object, error) {
			return action.GetNamespace() == "", nil, err
		}
	}
	client := fake.NewClientset(local)
	client.PrependReactor("list", "daemonsets", everywhere(forbidden))
	if ref, _, err := target.FindDaemonSet(t.Context(), client.AppsV1(), ""); err != nil || ref.String() != "kube-system/multus" {
		t.Errorf("got %s, %v", ref, err)
	}
	// That one namespace holds none does not say that there is none.
	elsewhere := fake.NewClientset()
	elsewhere.PrependReactor("list", "daemonsets", everywhere(forbidden))
	if _, _, err := target.FindDaemonSet(t.Context(), elsewhere.AppsV1(), ""); err == nil || errors.Is(err, target.ErrNoDaemonSet) {
		t.Errorf("error %v", err)
	}
	away := errors.New("connection refused")
	client.PrependReactor("list", "daemonsets", everywhere(away))
	if _, _, err := target.FindDaemonSet(t.Context(), client.AppsV1(), ""); !errors.Is(err, away) || !errors.Is(err, target.ErrLookUp) || !strings.HasPrefix(err.Error(), "there is no DaemonSet kube-system/kube-multus-ds, and looking for another: ") {
		t.Errorf("error %v", err)
	}
	client.PrependReactor("get", "daemonsets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, away })
	if _, _, err := target.FindDaemonSet(t.Context(), client.AppsV1(), ""); !errors.Is(err, away) || !strings.HasPrefix(err.Error(), "reading DaemonSet kube-system/kube-multus-ds: ") {
		t.Errorf("error %v", err)
	}
}
