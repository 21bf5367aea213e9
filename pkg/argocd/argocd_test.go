package argocd

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pod() Object { return Object{Kind: "Pod", Namespace: "downloads", Name: "vlan50-canary"} }

func TestClaimOf(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		meta metav1.ObjectMeta
		want Claim
	}{
		"no marks": {metav1.ObjectMeta{}, Claim{Object: pod()}},
		"tracking annotation": {
			metav1.ObjectMeta{Annotations: map[string]string{trackingAnnot: "site:/Pod:downloads/vlan50-canary"}},
			Claim{Object: pod(), Application: "site", Certain: true},
		},
		"Application in another namespace": {
			metav1.ObjectMeta{Annotations: map[string]string{trackingAnnot: "team_site:/Pod:downloads/vlan50-canary"}},
			Claim{Object: pod(), Application: "site", In: "team", Certain: true},
		},
		"annotation copied from another object": {
			metav1.ObjectMeta{Annotations: map[string]string{trackingAnnot: "site:/Pod:downloads/other"}},
			Claim{Object: pod()},
		},
		"label that others use too": {
			metav1.ObjectMeta{Labels: map[string]string{trackingLabel: "site"}},
			Claim{Object: pod(), Application: "site"},
		},
		"Argo CD's own label": {
			metav1.ObjectMeta{Labels: map[string]string{instanceLabel: "site", trackingLabel: "chart"}},
			Claim{Object: pod(), Application: "site", Certain: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := ClaimOf(pod(), &row.meta); got != row.want {
				t.Errorf("got %+v, want %+v", got, row.want)
			}
		})
	}
}

func application(t *testing.T, text string) *Application {
	t.Helper()
	a := &Application{}
	if err := json.Unmarshal([]byte(text), a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestOwns(t *testing.T) {
	t.Parallel()
	listed := application(t, `{"metadata":{"name":"site"},"status":{"resources":[{"kind":"Pod","namespace":"downloads","name":"vlan50-canary","version":"v1"}]}}`)
	other := application(t, `{"metadata":{"name":"site"},"status":{"resources":[{"kind":"Service","namespace":"downloads","name":"web"}]}}`)
	empty := application(t, `{"metadata":{"name":"site","namespace":"argocd"}}`)
	labelled := Claim{Object: pod(), Application: "site"}
	tracked := Claim{Object: pod(), Application: "site", Certain: true}
	for name, row := range map[string]struct {
		application *Application
		claim       Claim
		want        bool
	}{
		"listed":                                {listed, Claim{Object: pod()}, true},
		"of the same name, in another group":    {listed, Claim{Object: Object{Group: "x", Kind: "Pod", Namespace: "downloads", Name: "vlan50-canary"}}, false},
		"labelled, and the list is without it":  {other, labelled, false},
		"tracked, and the list is not new":      {other, tracked, true},
		"labelled, and nothing is listed":       {empty, labelled, true},
		"tracked by another namespace's":        {empty, Claim{Object: pod(), Application: "site", In: "team", Certain: true}, false},
		"without a mark, and nothing is listed": {empty, Claim{Object: pod()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := row.application.Owns(row.claim); got != row.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestPolicyAndWorth(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		policy, sync, health string
		canary               bool
		automated, selfHeal  bool
		says                 []string
	}{
		"no policy": {`{}`, "Synced", "Degraded", true, false, false, []string{"a Failed canary stays Synced", "Degraded may be the Failed canary"}},
		"self-heal on the canary": {
			`{"automated":{"selfHeal":true}}`, "Synced", "Healthy", true, true, true,
			[]string{"passed once, however long ago", "comes back at once, before Multus is ready"},
		},
		"automated on the canary":   {`{"automated":{}}`, "OutOfSync", "Progressing", true, true, false, []string{"OutOfSync proves", "Progressing may be", "may recreate a missing canary"}},
		"switched off":              {`{"automated":{"enabled":false,"selfHeal":true}}`, "Synced", "Healthy", true, false, false, nil},
		"owns Multus alone":         {`{"automated":{"selfHeal":true}}`, "Synced", "Healthy", false, true, true, []string{"the canary is not among them", "changed or removed by hand comes back"}},
		"automated, without canary": {`{"automated":{}}`, "", "", false, true, false, []string{"no sync status", "no health", "every commit"}},
		"unknown words":             {`{}`, "Odd", "Odd", true, false, false, []string{`sync status "Odd" proves nothing`, "Odd may be"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := application(t, `{"spec":{"syncPolicy":`+row.policy+`},"status":{"sync":{"status":"`+row.sync+`"},"health":{"status":"`+row.health+`"}}}`)
			if automated, selfHeal, _ := a.Policy(); automated != row.automated || selfHeal != row.selfHeal {
				t.Errorf("automated %v, self-heal %v", automated, selfHeal)
			}
			words := strings.Join(a.Worth(row.canary), "\n")
			for _, want := range row.says {
				if !strings.Contains(words, want) {
					t.Errorf("does not say %q:\n%s", want, words)
				}
			}
		})
	}
	if automated, _, _ := (&Application{}).Policy(); automated {
		t.Error("without a policy nothing is automated")
	}
}
