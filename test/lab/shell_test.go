//go:build linux

package lab

import "testing"

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"/root/.cache/kubectl-vlan50/lab/kubeconfig": "/root/.cache/kubectl-vlan50/lab/kubeconfig",
		"/home/a b/lab":     "'/home/a b/lab'",
		"/home/o'neill/lab": `'/home/o'\''neill/lab'`,
		"$HOME":             "'$HOME'",
		"~/lab":             "'~/lab'",
		"":                  "''",
	} {
		if got := quote(text); got != want {
			t.Errorf("%q is quoted as %s, want %s", text, got, want)
		}
	}
}

func TestUnproxied(t *testing.T) {
	for list, want := range map[string]string{
		"":                       "192.0.2.0/24",
		"localhost,.example.com": "localhost,.example.com,192.0.2.0/24",
	} {
		if got := unproxied(list); got != want {
			t.Errorf("%q became %q, want %q", list, got, want)
		}
	}
}
