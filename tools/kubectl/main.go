// Command kubectl is the kubectl that the packaging tests run plugins with:
// the module of kubectl has no main package, and a test must not depend on
// what the machine has.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() {
	os.Exit(cli.Run(cmd.NewDefaultKubectlCommand()))
}
