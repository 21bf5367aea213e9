// Command nodeparts runs kubelet, scheduler or controller-manager.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	cm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	sched "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	root := &cobra.Command{Use: "nodeparts"}
	root.AddCommand(cm.NewControllerManagerCommand(), sched.NewSchedulerCommand(), kubelet.NewKubeletCommand(context.Background()))
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
