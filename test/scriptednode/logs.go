package scriptednode

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// logLineAt is one line with the time that the runtime noted for it.
type logLineAt struct {
	at   time.Time
	text string
}

// logStream is the log of one run of a container.
type logStream struct {
	mu      sync.Mutex
	lines   []logLineAt
	closed  bool
	changed chan struct{}
}

func newLogStream() *logStream { return &logStream{changed: make(chan struct{})} }

func (s *logStream) print(at time.Time, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, logLineAt{at: at, text: text})
	s.tell()
}

func (s *logStream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.tell()
	}
}

// tell wakes the followers; the caller holds the lock.
func (s *logStream) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// from gives the lines from an index on, whether more can come, and what to
// wait for.
func (s *logStream) from(index int) (lines []logLineAt, closed bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines[index:len(s.lines):len(s.lines)], s.closed, s.changed
}

// podLogs are the logs of one Pod UID.
type podLogs struct {
	id         podID
	containers map[string]string // name to waiting reason
	runs       map[string][]*logStream
}

// logBook has the logs of all Pods that are on the node, by UID.
type logBook struct {
	mu   sync.Mutex
	pods map[types.UID]*podLogs
	// names points to the newest UID of a name: the API server asks by name.
	names map[types.NamespacedName]types.UID

	refuse   string
	delay    time.Duration
	requests []LogRequest
}

func newLogBook() *logBook {
	return &logBook{pods: map[types.UID]*podLogs{}, names: map[types.NamespacedName]types.UID{}}
}

// admit makes a Pod known, with its containers waiting.
func (b *logBook) admit(id podID, containers map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pods[id.uid] = &podLogs{id: id, containers: containers, runs: map[string][]*logStream{}}
	b.names[id.NamespacedName] = id.uid
}

// waits notes why a container waits.
func (b *logBook) waits(id podID, container, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if pod := b.pods[id.uid]; pod != nil {
		pod.containers[container] = reason
	}
}

// open starts the log of a new run of a container.
func (b *logBook) open(id podID, container string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if pod := b.pods[id.uid]; pod != nil {
		pod.runs[container] = append(pod.runs[container], newLogStream())
	}
}

func (b *logBook) print(id podID, container string, at time.Time, text string) {
	if s := b.current(id, container); s != nil {
		s.print(at, text)
	}
}

func (b *logBook) close(id podID, container string) {
	if s := b.current(id, container); s != nil {
		s.close()
	}
}

func (b *logBook) current(id podID, container string) *logStream {
	b.mu.Lock()
	defer b.mu.Unlock()
	pod := b.pods[id.uid]
	if pod == nil || len(pod.runs[container]) == 0 {
		return nil
	}
	return pod.runs[container][len(pod.runs[container])-1]
}

// forget drops the logs of a Pod that is gone and ends their followers.
func (b *logBook) forget(id podID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	pod := b.pods[id.uid]
	if pod == nil {
		return
	}
	for _, runs := range pod.runs {
		for _, s := range runs {
			s.close()
		}
	}
	delete(b.pods, id.uid)
	if b.names[id.NamespacedName] == id.uid {
		delete(b.names, id.NamespacedName)
	}
}

// find chooses the run of the container that kubelet would choose, or gives
// kubelet's words for why there is none.
func (b *logBook) find(name types.NamespacedName, container string, query url.Values) (types.UID, *logStream, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != "" {
		return b.names[name], nil, &logError{http.StatusInternalServerError, b.refuse}
	}
	pod := b.pods[b.names[name]]
	if pod == nil {
		return "", nil, &logError{http.StatusNotFound, fmt.Sprintf("pod %q does not exist", name.Name)}
	}
	reason, known := pod.containers[container]
	if !known {
		return pod.id.uid, nil, &logError{http.StatusNotFound, fmt.Sprintf("container %q not found in pod %q", container, name.Name)}
	}
	runs := pod.runs[container]
	switch previous := query.Get("previous") == "true"; {
	case previous && len(runs) > 1:
		return pod.id.uid, runs[len(runs)-2], nil
	case previous:
		return pod.id.uid, nil, &logError{http.StatusBadRequest, fmt.Sprintf("previous terminated container %q in pod %q not found", container, name.Name)}
	case len(runs) == 0:
		return pod.id.uid, nil, &logError{http.StatusBadRequest, waitingText(container, name.Name, reason)}
	default:
		return pod.id.uid, runs[len(runs)-1], nil
	}
}

// waitingText is kubelet's answer for a container without a log.
func waitingText(container, pod, reason string) string {
	switch reason {
	case "ErrImagePull":
		reason = "image can't be pulled"
	case "ImagePullBackOff":
		reason = "trying and failing to pull image"
	}
	return fmt.Sprintf("container %q in pod %q is waiting to start: %s", container, pod, reason)
}
