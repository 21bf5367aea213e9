package canary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/vlan50/kubectl-vlan50/pkg/cluster"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// FieldManager is the name under which the tool writes.
const FieldManager = "kubectl-vlan50"

// DryRun says how far a dry run goes.
type DryRun string

// The values of --dry-run.
const (
	DryRunNone   DryRun = "none"
	DryRunClient DryRun = "client"
	DryRunServer DryRun = "server"
)

// Step names a stage of a retest.
type Step string

// The steps of a retest, in order.
const (
	StepCheck   Step = "check"
	StepLock    Step = "lock"
	StepGate    Step = "gate"
	StepDelete  Step = "delete"
	StepCreate  Step = "create"
	StepObserve Step = "observe"
	StepRecord  Step = "record"
)

// Note is one line of progress: what happened, to which object.
type Note struct {
	Time time.Time
	Step Step
	Text string
	// Passing marks a state that is being waited out; the others are done.
	Passing bool
}

// Manifest is the Pod to create, and where it was read from.
type Manifest struct {
	Pod *corev1.Pod
	// Source is how messages name it: a file, "the live Pod", ...
	Source string
}

// Store keeps manifests and attempts on this machine.
type Store interface {
	// SaveManifest keeps what recreates the canary and gives its path.
	SaveManifest(pod *corev1.Pod) (path string, err error)
	// LoadManifest gives what was saved last, or nil where nothing was.
	LoadManifest(canary evidence.Ref) (pod *corev1.Pod, path string, err error)
	// SaveAttempt keeps the evidence of one attempt and gives its path.
	SaveAttempt(result Result) (path string, err error)
}

// Retest recreates one canary and judges the new one.
type Retest struct {
	Clients   *cluster.Clients
	Canary    evidence.Ref
	DaemonSet evidence.Ref
	// Locate, where it is set, finds the DaemonSet as the first step.
	Locate func(context.Context) (evidence.Ref, error)
	// File is the manifest given by the user; without one the live Pod's is
	// taken, or the one that was saved last.
	File *Manifest
	// Settle is how long to wait after Ready where attach readiness cannot be
	// known.
	Settle time.Duration
	// Attempts bounds how often an inconclusive attempt is repeated.
	Attempts int
	DryRun   DryRun
	// Holder is how the lock names this run: user, host and start.
	Holder  string
	Process Process
	Store   Store
	// Notify is told each step once.
	Notify func(Note)
	// Now is the clock.
	Now func() time.Time

	manifest *corev1.Pod // what is created, without our annotations
	source   string
	saved    string // path of the saved manifest
	live     *live
	attempt  Attempt
	state    string // what an interruption leaves behind
	last     verdict.Verdict
	lastNote string
	skew     time.Duration             // how far the cluster's clock is ahead of this machine's
	renewal  atomic.Pointer[error]     // why it could not be renewed last
	renewed  atomic.Pointer[time.Time] // when the lock was renewed last, nil without one

	earlier       []types.UID       // the Pods this attempt has waited for to be gone
	uid           types.UID         // the Pod it has created
	baseline      evidence.Evidence // just before the creation
	final         evidence.Evidence // what the verdict rests on
	configuration evidence.Fingerprint
}

// Attempt is when each step of an attempt was reached; zero where it was not.
type Attempt struct {
	ID            string
	Number        int
	StartedAt     time.Time
	RolloutReady  time.Time
	AttachReady   time.Time
	AttachReadyBy string
	Deleted       time.Time
	Gone          time.Time
	Created       time.Time
	Decided       time.Time
}

// Result is a judged attempt.
type Result struct {
	Verdict verdict.Verdict
	// UID is the Pod that was judged; empty where none was created.
	UID           types.UID
	Attempt       Attempt
	Configuration evidence.Fingerprint
	Evidence      evidence.Evidence
	// ManifestPath and EvidencePath are the local files.
	ManifestPath, EvidencePath string
}

// ErrDeadline is the cause of a context that ends at the run's deadline.
var ErrDeadline = errors.New("deadline reached")

// Run takes the canary through its steps. It returns a Refusal where a guard
// does not hold, an Interruption where ctx was cancelled by anything but
// ErrDeadline, and a result as soon as there is a verdict, be it that the
// deadline came first.
func (r *Retest) Run(ctx context.Context) (Result, error) {
	r.attempt = Attempt{ID: string(uuid.NewUUID()), Number: 1, StartedAt: r.now()}
	r.leave("nothing was changed")
	if err := r.prepare(ctx); err != nil {
		return r.early(ctx, err)
	}
	if r.DryRun != DryRunNone && r.DryRun != "" {
		return Result{}, r.explain(ctx, r.wouldDo(ctx))
	}
	held, lock, err := r.acquire(ctx)
	if err != nil {
		return r.early(ctx, err)
	}
	defer lock.unlock()
	for {
		result, err := r.once(held)
		if err != nil || result.Verdict.Outcome != verdict.Inconclusive || r.attempt.Number >= r.Attempts || held.Err() != nil {
			return result, r.explain(held, err)
		}
		r.notef(StepRecord, "attempt %d of %d was inconclusive (%s): %s", r.attempt.Number, r.Attempts, result.Verdict.Cause, result.Verdict.Message)
		if r.uid != "" {
			r.leave("Pod %s (UID %s) is as attempt %d left it", r.Canary, r.uid, r.attempt.Number)
		}
		r.attempt = Attempt{ID: string(uuid.NewUUID()), Number: r.attempt.Number + 1, StartedAt: r.now()}
	}
}

// early ends a run that has not come as far as the gate.
func (r *Retest) early(ctx context.Context, err error) (Result, error) {
	if !errors.Is(context.Cause(ctx), ErrDeadline) || isRefusal(err) {
		return Result{}, r.explain(ctx, err)
	}
	state := r.lastNote
	if state == "" || !errors.Is(err, ErrDeadline) {
		state = err.Error()
	}
	r.last = verdict.Verdict{Cause: verdict.EvidenceIncomplete, Message: state, Next: "see that the API server answers and that nobody else holds the lock, then run the retest again"}
	r.attempt.Decided = r.now()
	return Result{Verdict: r.deadline(), Attempt: r.attempt}, nil
}

// once is one attempt, from the gate to the record.
func (r *Retest) once(ctx context.Context) (Result, error) {
	run, stop := context.WithCancel(ctx)
	r.earlier, r.uid, r.final, r.configuration = nil, "", evidence.Evidence{}, evidence.Fingerprint{}
	r.last = verdict.Verdict{}
	r.live = r.follow(run)
	defer r.live.wait()
	defer stop()

	judged, err := r.attemptOnce(run)
	if err != nil && errors.Is(context.Cause(ctx), ErrDeadline) && !isRefusal(err) {
		judged, err = r.deadline(), nil
	}
	if err != nil {
		return Result{}, err
	}
	return r.record(ctx, judged), nil
}

// attemptOnce goes through steps 3 to 6 of an attempt.
func (r *Retest) attemptOnce(ctx context.Context) (verdict.Verdict, error) {
	if blocked, err := r.gate(ctx); blocked != nil || err != nil {
		return value(blocked), err
	}
	if err := r.remove(ctx); err != nil {
		return verdict.Verdict{}, err
	}
	// The old Pod's grace period was time enough for the daemon to go away.
	if blocked, err := r.gate(ctx); blocked != nil || err != nil {
		return value(blocked), err
	}
	if err := r.lastLook(ctx); err != nil {
		return verdict.Verdict{}, err
	}
	if err := r.create(ctx); err != nil {
		return verdict.Verdict{}, err
	}
	return r.observe(ctx)
}

func value(v *verdict.Verdict) verdict.Verdict {
	if v == nil {
		return verdict.Verdict{}
	}
	return *v
}

// deadline is the verdict of a run that was out of time: the last known state,
// never more than inconclusive.
func (r *Retest) deadline() verdict.Verdict {
	v := r.last
	v.Outcome, v.Settled = verdict.Inconclusive, true
	if v.Cause == "" {
		v.Cause = verdict.EvidenceIncomplete
	}
	known := strings.TrimSuffix(cmp.Or(v.Message, r.lastNote), ".")
	v.Message = fmt.Sprintf("the deadline came before a verdict. Last known state: %s. %s", known, sentence(r.state))
	if v.Next == "" {
		v.Next = r.advice(v.Cause)
	}
	return v
}

func (r *Retest) now() time.Time { return r.Now() }

// leave remembers what an interruption from now on would leave behind.
func (r *Retest) leave(format string, args ...any) { r.state = fmt.Sprintf(format, args...) }

// notef tells a step that is done.
func (r *Retest) notef(step Step, format string, args ...any) {
	r.note(Note{Step: step, Text: fmt.Sprintf(format, args...)})
}

// waitf tells what is being waited for; the same text is told once.
func (r *Retest) waitf(step Step, format string, args ...any) {
	r.note(Note{Step: step, Text: fmt.Sprintf(format, args...), Passing: true})
}

func (r *Retest) note(note Note) {
	if note.Text == r.lastNote {
		return
	}
	r.lastNote = note.Text
	note.Time = r.now()
	r.Notify(note)
}
