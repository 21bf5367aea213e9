//go:build lab && !linux

package lab_test

import "testing"

// TestLinux fails: a run that tests nothing must not look like one that passed.
func TestLinux(t *testing.T) {
	t.Fatal("the lab needs Linux: it is made of Linux namespaces")
}
