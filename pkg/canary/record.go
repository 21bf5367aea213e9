package canary

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

// record keeps a judged attempt: its evidence on this machine, and the verdict
// with the configuration it holds for on the Pod itself, where anyone's status
// can find it. Neither is worth losing the verdict over.
func (r *Retest) record(ctx context.Context, judged verdict.Verdict) Result {
	r.attempt.Decided = r.now()
	// The record is written even where the deadline has just come.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if r.final.Collected == nil {
		r.final = r.complete(ctx, r.collect(ctx, r.uid))
		r.configuration = evidence.FingerprintOf(r.final)
	}
	result := Result{
		Verdict: judged, UID: r.uid, Attempt: r.attempt,
		Configuration: r.configuration, Evidence: r.final, ManifestPath: r.saved,
	}
	path, err := r.Store.SaveAttempt(result)
	if err != nil {
		r.notef(StepRecord, "the evidence could not be saved: %v", err)
	}
	result.EvidencePath = path
	if pod := r.live.canary.One(); pod != nil && pod.UID == r.uid {
		if err := r.annotate(ctx, result); err != nil {
			r.notef(StepRecord, "the verdict could not be noted on Pod %s, so that status will not know it: %v", r.Canary, err)
		}
	}
	return result
}

// longestMessage bounds the message noted on a Pod, in runes: a kubelet's own
// words run to kilobytes, and the evidence has them whole.
const longestMessage = 1000

func shortened(message string) string {
	if runes := []rune(message); len(runes) > longestMessage {
		return string(runes[:longestMessage]) + " ..."
	}
	return message
}

// annotate writes the verdict on the Pod that was judged, and on no other.
func (r *Retest) annotate(ctx context.Context, result Result) error {
	configuration, err := json.Marshal(result.Configuration)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		// The server refuses the patch where the Pod of that name has another UID.
		"uid": r.uid,
		"annotations": map[string]string{
			JudgedAnnot:        string(r.uid),
			VerdictAnnot:       string(result.Verdict.Outcome),
			CauseAnnot:         string(result.Verdict.Cause),
			MessageAnnot:       shortened(result.Verdict.Message),
			DecidedAtAnnot:     result.Attempt.Decided.UTC().Format(time.RFC3339),
			ConfigurationAnnot: string(configuration),
		},
	}})
	if err != nil {
		return err
	}
	_, err = r.Clients.Core.Pods(r.Canary.Namespace).Patch(ctx, r.Canary.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: FieldManager})
	if err != nil {
		return fmt.Errorf("patching its annotations: %w", err)
	}
	return nil
}
