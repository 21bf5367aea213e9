package evidence

import (
	"bytes"
	"strings"
	"testing"
)

func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		canaryYAML + "---\n" + daemonSetYAML,
		`{"apiVersion":"v1","kind":"List","items":[{"kind":"Event","apiVersion":"events.k8s.io/v1","note":"x","series":{"count":3}}]}`,
		"apiVersion: vlan50.dev/v1alpha1\nkind: Evidence\ncollectedAt: '2026-01-15T12:00:00Z'\ncanary: {namespace: a, name: b}\ncollected: [pods]\n---\nkind: PodLog\nmetadata: {uid: u}\nlog: x\n---\nkind: HostFiles\nfiles: [{name: a}]\n",
		"kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\nmetadata: {name: a.k8s.cni.cncf.io, annotations: {a: b}}\nstatus: {conditions: [1]}\n",
		"[[{}]]", "kind: Pod\nspec: {containers: [{env: [{name: TOKEN, value: x}], args: [--password]}]}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o := Options{Canary: Ref{Namespace: "downloads", Name: "vlan50-canary"}}
		e, err := Load(strings.NewReader(text), o)
		if err != nil {
			return
		}
		FingerprintOf(e).Diff(FingerprintOf(e))
		var saved bytes.Buffer
		if err := Save(&saved, e); err != nil {
			t.Fatalf("cannot save what was loaded: %v", err)
		}
		again, err := Load(bytes.NewReader(saved.Bytes()), Options{})
		if err != nil {
			t.Fatalf("cannot load what was saved: %v\n%s", err, saved.String())
		}
		if len(again.Pods) != len(e.Pods) || len(again.Events) != len(e.Events) || again.Canary != e.Canary {
			t.Errorf("%d Pods, %d events, canary %v after %d, %d, %v", len(again.Pods), len(again.Events), again.Canary, len(e.Pods), len(e.Events), e.Canary)
		}
	})
}
