//go:build lab && linux

package lab_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
	"github.com/vlan50/kubectl-vlan50/test/lab"
)

var capture = flag.Bool("capture", false, "save the evidence of each scenario as a case of the judge")

// scenarioWithin is far above what any scenario takes.
const scenarioWithin = 6 * time.Minute

// scenario is one state of the site, and what the retest must say of it.
type scenario struct {
	name string
	// arrange makes the state before the retest starts.
	arrange func(context.Context, *lab.Lab) error
	// during acts in the middle of the attempt: once the canary was created.
	during func(context.Context, *lab.Lab) error
	// canary changes the canary's manifest.
	canary func(*corev1.Pod)
	// timeout is the retest's; 3 minutes where it is zero.
	timeout time.Duration

	verdict, cause string
	// also is a cause that is as right, where it depends on the moment.
	also string
	// next is a part of the next step.
	next string
	// proof looks on the node itself that the fault is the one meant.
	proof func(*testing.T, *lab.Lab)
	// seen is a part of the message that decided it, as the node gave it.
	seen string
}

// run plays a scenario and puts the lab back.
func (s scenario) run(t *testing.T) {
	l := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), scenarioWithin)
	defer cancel()
	var r result
	// Not a cleanup: the folder with the evidence would be gone by then.
	defer func() { s.putBack(t, l, r) }()
	manifest := s.manifest(t, l)
	if s.arrange != nil {
		if err := s.arrange(ctx, l); err != nil {
			t.Fatalf("arranging: %v", err)
		}
	}
	acted, begun := make(chan error, 1), make(chan struct{})
	go func() { acted <- s.act(ctx, l, begun) }()
	timeout := s.timeout
	if timeout == 0 {
		timeout = 3 * time.Minute
	}
	r = retest(ctx, t, l, "--filename", manifest, "--timeout", timeout.String())
	t.Logf("%s/%s in %s: %s", r.document.Status.Verdict, r.document.Status.Cause, r.took.Round(100*time.Millisecond), r.document.Status.Message)
	select {
	case <-begun:
	default:
		t.Error("the verdict came before the fault was played")
	}
	cancel()
	if err := <-acted; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("acting in the middle of the attempt: %v", err)
	}
	if s.also != "" && r.document.Status.Cause == s.also {
		s.cause, s.also = s.also, s.cause
	}
	r.expect(t, s.verdict, s.cause)
	if s.proof != nil {
		s.proof(t, l)
	}
	if !strings.Contains(r.document.Status.Next, s.next) {
		t.Errorf("next step %q, want one with %q", r.document.Status.Next, s.next)
	}
	if s.seen != "" && !r.mentions(s.seen) {
		t.Errorf("no line of the evidence has %q: %v", s.seen, r.document.Status.Evidence)
	}
	if !*capture {
		s.kept(t)
	} else if !t.Failed() {
		s.save(t, r)
	}
}

// putBack tells why a test failed, then resets the lab.
func (s scenario) putBack(t *testing.T, l *lab.Lab, r result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), scenarioWithin)
	defer cancel()
	if t.Failed() {
		r.explain(ctx, t, l)
	}
	if err := l.Reset(ctx); err != nil {
		t.Errorf("the lab is not as it was found: %v", err)
	}
}

// act waits for the attempt's Pod and then does what the scenario wants.
func (s scenario) act(ctx context.Context, l *lab.Lab, begun chan<- struct{}) error {
	if s.during == nil {
		close(begun)
		return nil
	}
	clients, err := l.Clients()
	if err != nil {
		return err
	}
	for {
		pod, err := clients.Kube.CoreV1().Pods(lab.Namespace).Get(ctx, lab.CanaryName, metav1.GetOptions{})
		if err == nil && pod.Spec.NodeName != "" {
			if err := s.during(ctx, l); err != nil {
				return err
			}
			close(begun)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no canary was created: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// canaryPod is the canary as its manifest has it.
func canaryPod(t *testing.T, l *lab.Lab) *corev1.Pod {
	t.Helper()
	data, err := os.ReadFile(l.CanaryManifest())
	if err != nil {
		t.Fatal(err)
	}
	pod := new(corev1.Pod)
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// manifest writes the canary's manifest, changed as the scenario wants.
func (s scenario) manifest(t *testing.T, l *lab.Lab) string {
	t.Helper()
	if s.canary == nil {
		return l.CanaryManifest()
	}
	pod := canaryPod(t, l)
	s.canary(pod)
	data, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "canary.yaml")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// generic takes off what names the machine that the lab ran on.
func generic(evidence []byte) []byte {
	for field, value := range map[string]string{
		"kernelVersion": "6.1.0-generic", "bootID": "5a1e6b0c-7f3d-4c55-9e0a-2d1c8b7f6e41", "machineID": `""`, "systemUUID": `""`,
	} {
		evidence = regexp.MustCompile(`(?m)^( +`+field+`: ).*$`).ReplaceAll(evidence, []byte("${1}"+value))
	}
	return evidence
}

// folder is where the scenario's evidence is kept as a case of the judge.
func (s scenario) folder(t *testing.T) string {
	t.Helper()
	return projectFile(t, "test", "cases", "lab-"+strings.ReplaceAll(s.name, " ", "-"))
}

// kept checks that a case keeps what this scenario gave, with its verdict: the
// pure judge would otherwise go untested on it, and nobody would miss it.
func (s scenario) kept(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.folder(t), "expect.yaml"))
	if err != nil {
		t.Errorf("no case keeps this scenario, save it with -capture: %v", err)
		return
	}
	var expected struct {
		Verdict string `json:"verdict"`
		Cause   string `json:"cause"`
	}
	if err := yaml.Unmarshal(data, &expected); err != nil {
		t.Error(err)
		return
	}
	if expected.Verdict != s.verdict || expected.Cause != s.cause && expected.Cause != s.also {
		t.Errorf("the case keeps %s/%s, this scenario is %s/%s: save it again with -capture", expected.Verdict, expected.Cause, s.verdict, s.cause)
	}
}

// save keeps the evidence as a case for the tests of the pure judge.
func (s scenario) save(t *testing.T, r result) {
	t.Helper()
	if r.evidence == "" {
		t.Fatal("the tool saved no evidence")
	}
	data, err := os.ReadFile(r.evidence)
	if err != nil {
		t.Fatal(err)
	}
	e, err := evidence.Load(bytes.NewReader(generic(data)), evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The judge's next step: the tool may know a name that the evidence has not.
	next := verdict.Decide(e, e.CollectedAt).Next
	expected := fmt.Sprintf("title: %s (from a real node)\nverdict: %s\ncause: %s\nnext: %q\n", s.name, s.verdict, s.cause, next)
	dir := s.folder(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"evidence.yaml": generic(data), "expect.yaml": []byte(expected)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
