package canary

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	nadfake "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/client/clientset/versioned/fake"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
)

var (
	podsResource   = corev1.SchemeGroupVersion.WithResource("pods")
	eventsResource = corev1.SchemeGroupVersion.WithResource("events")
)

// world plays the API server and the node towards one run, inside a synctest
// bubble. The fake clientset knows neither UIDs nor preconditions, selectors,
// graceful deletion nor dry runs: the world's reactors do.
type world struct {
	t    *testing.T
	kube *fake.Clientset
	// tracker is the store behind kube. It keeps no managed fields, which would
	// take most of a test's time.
	tracker clienttesting.ObjectTracker
	nads    *nadfake.Clientset
	meta    *metadatafake.FakeMetadataClient
	store   *memoryStore

	// created and deleted are what the node does with a Pod of the canary's name.
	created, deleted func(*corev1.Pod)
	// mutate is what a webhook does to a Pod that is to be created.
	mutate func(*corev1.Pod)

	mu sync.Mutex
	// log is the daemon's whole log at this moment.
	log    func() (string, error)
	serial int
	notes  []Note
	denied []string
}

// newWorld holds a site that is in order, and in it the canary of an earlier
// attempt. Its node lets each new canary pass.
func newWorld(t *testing.T, changes ...func(*site)) *world {
	t.Helper()
	s := newSite()
	for _, change := range changes {
		change(s)
	}
	w := &world{
		t: t, kube: &fake.Clientset{}, nads: nadfake.NewSimpleClientset(),
		meta: metadatafake.NewSimpleMetadataClient(metadataScheme(t)), store: &memoryStore{},
	}
	w.tracker = clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())
	w.kube.AddReactor("*", "*", clienttesting.ObjectReaction(w.tracker))
	for _, object := range s.objects() {
		check(t, w.tracker.Add(object))
	}
	for _, nad := range s.networks {
		// The tracker guesses the wrong plural from the kind.
		check(t, w.nads.Tracker().Create(nadResource, nad, nad.Namespace))
	}
	w.log = func() (string, error) { return readyLog, nil }
	w.created = w.passes
	w.deleted = func(pod *corev1.Pod) { time.AfterFunc(2*time.Second, func() { w.gone(pod.UID) }) }
	w.react()
	return w
}

func metadataScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	check(t, metav1.AddMetaToScheme(scheme))
	return scheme
}

// retest is a run of the user, before any change of the test.
func (w *world) retest() *Retest {
	return &Retest{
		Clients: &cluster.Clients{
			Core: w.kube.CoreV1(), Apps: w.kube.AppsV1(), Coordination: w.kube.CoordinationV1(),
			Authorization: w.kube.AuthorizationV1(), Networks: w.nads.K8sCniCncfIoV1(), Metadata: w.meta,
		},
		Canary:    evidence.Ref{Namespace: "downloads", Name: "vlan50-canary"},
		DaemonSet: evidence.Ref{Namespace: "kube-system", Name: "kube-multus-ds"},
		Settle:    10 * time.Second, Attempts: 1, DryRun: DryRunNone,
		Holder:  "ann@desk (started now)",
		Process: Process{Machine: "machine-1", PID: 100, Alive: func(int) bool { return true }},
		Store:   w.store, Notify: w.note, Now: time.Now,
	}
}

// react puts the rules of a real API server in front of the fake one.
func (w *world) react() {
	w.kube.PrependReactor("create", "pods", w.createPod)
	w.kube.PrependReactor("delete", "pods", w.deletePod)
	w.kube.PrependReactor("get", "pods", w.getLog)
	w.kube.PrependReactor("list", "*", w.list)
	w.kube.PrependReactor("update", "leases", w.updateLease)
	w.kube.PrependReactor("create", "selfsubjectaccessreviews", w.review)
	w.kube.PrependWatchReactor("*", w.watch)
	w.meta.PrependReactor("list", "pods", w.listMeta)
}

func (w *world) next() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serial++
	return fmt.Sprint(w.serial)
}

func (w *world) createPod(action clienttesting.Action) (bool, runtime.Object, error) {
	create, ok := action.(clienttesting.CreateActionImpl)
	if !ok || action.GetSubresource() != "" {
		return false, nil, nil
	}
	pod := create.Object.(*corev1.Pod).DeepCopy()
	pod.CreationTimestamp = metav1.Now()
	if w.mutate != nil {
		w.mutate(pod)
	}
	if len(create.CreateOptions.DryRun) > 0 {
		return true, pod, nil
	}
	serial := w.next()
	pod.UID, pod.ResourceVersion = types.UID("uid-"+serial), serial
	pod.Status.Phase = corev1.PodPending
	pod.ManagedFields = managedBy(create.CreateOptions.FieldManager)
	if err := w.tracker.Create(podsResource, pod, pod.Namespace); err != nil {
		return true, nil, err
	}
	w.created(pod.DeepCopy())
	return true, pod, nil
}

func (w *world) deletePod(action clienttesting.Action) (bool, runtime.Object, error) {
	options := action.(clienttesting.DeleteActionImpl).DeleteOptions
	name := action.(clienttesting.DeleteActionImpl).Name
	pod := w.pod(name)
	if pod == nil {
		return true, nil, apierrors.NewNotFound(podsResource.GroupResource(), name)
	}
	if want := options.Preconditions; want != nil {
		if want.UID != nil && *want.UID != pod.UID || want.ResourceVersion != nil && *want.ResourceVersion != pod.ResourceVersion {
			return true, nil, apierrors.NewConflict(podsResource.GroupResource(), name, fmt.Errorf("the precondition does not hold"))
		}
	}
	if len(options.DryRun) > 0 || pod.DeletionTimestamp != nil {
		return true, nil, nil
	}
	w.update(pod.UID, func(pod *corev1.Pod) {
		now, grace := metav1.Now(), int64(30)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &grace
	})
	w.deleted(pod)
	return true, nil, nil
}

func (w *world) getLog(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "log" || action.GetNamespace() != "kube-system" {
		return false, nil, nil
	}
	w.mu.Lock()
	log := w.log
	w.mu.Unlock()
	text, err := log()
	return true, &runtime.Unknown{Raw: []byte(text)}, err
}

func (w *world) review(action clienttesting.Action) (bool, runtime.Object, error) {
	review := action.(clienttesting.CreateActionImpl).Object.(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
	asked := review.Spec.ResourceAttributes
	review.Status.Allowed = !slices.Contains(w.denied, asked.Verb+" "+asked.Resource)
	return true, review, nil
}

// updateLease answers a changed resourceVersion with a conflict.
func (w *world) updateLease(action clienttesting.Action) (bool, runtime.Object, error) {
	object := action.(clienttesting.UpdateActionImpl).Object.DeepCopyObject()
	sent, err := meta.Accessor(object)
	check(w.t, err)
	stored, err := w.tracker.Get(leasesResource, sent.GetNamespace(), sent.GetName())
	if err != nil {
		return true, nil, err
	}
	current, err := meta.Accessor(stored)
	check(w.t, err)
	if current.GetResourceVersion() != sent.GetResourceVersion() {
		return true, nil, apierrors.NewConflict(leasesResource.GroupResource(), sent.GetName(), fmt.Errorf("the object has been modified"))
	}
	sent.SetResourceVersion(w.next())
	return true, object, w.tracker.Update(leasesResource, object, sent.GetNamespace())
}

// pod is the Pod of that name as stored, nil where there is none.
func (w *world) pod(name string) *corev1.Pod {
	object, err := w.tracker.Get(podsResource, "downloads", name)
	if err != nil {
		return nil
	}
	return object.(*corev1.Pod).DeepCopy()
}

// update changes the Pod of a UID; one that is gone stays gone.
func (w *world) update(uid types.UID, change func(*corev1.Pod)) {
	pod := w.pod("vlan50-canary")
	if pod == nil || pod.UID != uid {
		return
	}
	change(pod)
	pod.ResourceVersion = w.next()
	check(w.t, w.tracker.Update(podsResource, pod, pod.Namespace))
}

// gone ends a graceful deletion, as the kubelet does.
func (w *world) gone(uid types.UID) {
	if pod := w.pod("vlan50-canary"); pod != nil && pod.UID == uid {
		check(w.t, w.tracker.Delete(podsResource, pod.Namespace, pod.Name))
	}
}

// writes are the requests that change something, in order.
func (w *world) writes() []string {
	var writes []string
	for _, action := range w.kube.Actions() {
		switch verb := action.GetVerb(); {
		case verb == "get", verb == "list", verb == "watch", action.GetResource().Group == authorizationv1.GroupName:
		case isDryRun(action):
			writes = append(writes, verb+" "+action.GetResource().Resource+" (dry run)")
		default:
			writes = append(writes, verb+" "+action.GetResource().Resource)
		}
	}
	return writes
}

func (w *world) note(n Note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, n)
}

// told reports whether a note says this.
func (w *world) told(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.notes, func(n Note) bool { return strings.Contains(n.Text, text) })
}

// story is all that the run told, for a failed test.
func (w *world) story() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, n := range w.notes {
		fmt.Fprintf(&b, "%s %-8s %s\n", n.Time.UTC().Format("04:05.000"), n.Step, n.Text)
	}
	return b.String()
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// says changes what the daemon's log is from now on.
func (w *world) says(log func() (string, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = log
}

// deadlineIn is the context of a run with --timeout.
func deadlineIn(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeoutCause(t.Context(), d, ErrDeadline)
}
