//go:build !linux

// Command lab starts, shows and ends the one-node lab.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "lab: the lab needs Linux: it is made of Linux namespaces")
	os.Exit(1)
}
