// Command kubectl-vlan50 is a kubectl plugin: kubectl vlan50.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	// Credential helpers that kubeconfigs name.
	_ "k8s.io/client-go/plugin/pkg/client/auth"

	"github.com/vlan50/kubectl-vlan50/pkg/cmd"
)

func main() {
	ctx, stop := cmd.Signals()
	code := cmd.Main(ctx, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, os.Args[1:])
	stop()
	os.Exit(code)
}
