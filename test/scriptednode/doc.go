// Package scriptednode plays a one-node site against a real kube-apiserver on
// which nothing else runs: scheduler, kubelet, DaemonSet controller and Multus,
// from a script, so that every bad window of a Multus network can be shown at
// will and at the same place each time.
//
//	site := scriptednode.Named("mytest")      // names of its own on a shared API server
//	scriptednode.InstallCRD(ctx, config)
//	site.Apply(ctx, config)                   // node, Multus, network, guard script
//	node, _ := scriptednode.New(config, site, scriptednode.Options{
//		Plan: scriptednode.Plan{scriptednode.MissingPlugin("macvlan"), scriptednode.Pass()},
//	})
//	node.Start(ctx)
//	defer node.Stop()
//	// create site.CanaryPod(), or pass site.CanaryManifest() to the tool
//	node.RestartDaemonSet(ctx, scriptednode.Daemon{ConfAfterReady: 3 * time.Second})
//	node.Journal().Overlaps()                 // two holders of one address: none
//	node.Journal().Of(scriptednode.SandboxPlain) // sandboxes that Multus never saw
//
// Texts and forms of events, statuses and annotations are those of Kubernetes
// 1.37, containerd and Multus v4.3.0 thick. What the script asks for is not all
// that decides: whether a sandbox meets Multus depends on the CNI conf and the
// daemon at that moment, and a network or ConfigMap that the API does not have
// is missed, as on a real node.
//
// A finished Pod is removed by the API server as soon as it is deleted, and so
// is one without a node; only the others are taken down by the node.
package scriptednode
