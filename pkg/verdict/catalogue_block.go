package verdict

// daemonBlocks are windows and states of Multus in which an attempt tells
// nothing.
func daemonBlocks() []Entry {
	return judged(Inconclusive, ByWaiting, []Entry{
		{
			Cause:   DaemonUnreachable,
			Summary: "The shim found no daemon: it is restarting, was evicted, or does not run on the node.",
			Next:    "wait until the daemon on <node> is ready (kubectl rollout status), then run the retest again; the network itself is not at fault",
		},
		{
			Cause:   DaemonInformerStale,
			Summary: "The daemon serves from a cache that never synced and does not see the Pod.",
			Next:    "restart the Multus Pod on <node> once the API server is reachable from there, then run the retest again",
		},
		{
			Cause:   DefaultNetworkNotReady,
			Summary: "The primary network is not ready on the node, and Multus waits for it.",
			Next:    "wait for the primary network on <node>, then run the retest again",
		},
		{
			Cause:   MultusInstallFailed,
			Settles: AtOnce,
			Summary: "The installer init container of Multus does not finish.",
			Next:    "read the installer's log in <daemonset>, mend it (image and manifest of the same flavour, a binary that can be replaced), wait for the rollout, then run the retest again",
		},
		{
			Cause:   MultusConfigRejected,
			Settles: AtOnce,
			Summary: "The daemon refuses its configuration and crash-loops.",
			Next:    "correct the configuration that the daemon's log names, wait for the rollout, then run the retest again",
		},
		{
			Cause:   RolloutInProgress,
			Summary: "The DaemonSet is still rolling.",
			Next:    "wait for the rollout of <daemonset>, then run the retest again",
		},
		{
			Cause:   RolloutStuck,
			Summary: "The DaemonSet's rollout does not get on.",
			Next:    "find the Pod of <daemonset> that is not available (kubectl get pods -o wide) and mend it, then run the retest again",
		},
		{
			Cause:   RolloutOnDelete,
			Settles: AtOnce,
			Summary: "The DaemonSet's strategy is OnDelete: the daemon's Pod is of an old revision until somebody deletes it.",
			Next:    "delete the daemon's Pod on <node>, wait for its successor, then run the retest again",
		},
		{
			Cause:   RolloutZeroDesired,
			Settles: AtOnce,
			Summary: "The DaemonSet wants no Pod on any node.",
			Next:    "correct the node selector, affinity or tolerations of <daemonset>, so that it runs on the canary's node, then run the retest again",
		},
		{
			Cause:   RolloutBlockedNodeNotReady,
			Summary: "A node is NotReady and holds the rollout.",
			Next:    "mend or drain the node that is NotReady, then run the retest again",
		},
	})
}

// podBlocks are states of the canary in which an attempt tells nothing.
func podBlocks() []Entry {
	return judged(Inconclusive, ByWaiting, []Entry{
		{
			Cause:   PodUIDMismatch,
			Summary: "Multus sees the previous Pod of this name.",
			Next:    "see that the previous canary is gone from the API and from <node>, then run the retest again",
		},
		{
			Cause:   PodDeletedDuringAdd,
			Settles: AtOnce,
			Summary: "The events are of a Pod that was deleted while it was being attached.",
			Next:    "nothing to mend: those events say nothing about the next attempt; run the retest",
		},
		{
			Cause:   NeverPodStranded,
			Settles: AtOnce,
			Summary: "The Pod lost its sandbox, and kubelet will never build it again.",
			Next:    "run the retest: only a new Pod gets a new sandbox",
		},
		{
			Cause:   StaleAttempt,
			Settles: AtOnce,
			Summary: "This attempt is older than the present configuration.",
			Next:    "run the retest: only a new attempt tells about the present configuration",
		},
		{
			Cause:   StaleNetworkStatus,
			Summary: "The annotation and the events describe an earlier sandbox of this Pod.",
			Next:    "run the retest: nothing proves that the present sandbox is attached",
		},
		{
			Cause:   Unscheduled,
			Settles: OnRepeat,
			Summary: "No node took the Pod.",
			Next:    "read the condition PodScheduled, correct the node selector, tolerations or requests of the canary, then run the retest again",
		},
		{
			Cause:   ImagePull,
			Settles: OnRepeat,
			Summary: "An image of the canary cannot be had.",
			Next:    "correct the image <image> or its pull secret, then run the retest again; the Pod's phase would stay Pending for ever",
		},
		{
			Cause:   SandboxImagePull,
			Settles: OnRepeat,
			Summary: "The runtime cannot get its pause image.",
			Next:    "make the runtime's sandbox image available on <node>, then run the retest again",
		},
		{
			Cause:   SandboxNameReserved,
			Summary: "An earlier call for this sandbox still hangs in the runtime.",
			Next:    "look for what hangs on <node> (the runtime's log, slow disk, a CNI plugin that does not return), then run the retest again",
		},
		{
			Cause:   VolumeMount,
			Settles: OnRepeat,
			Summary: "Blocked before any sandbox: a volume cannot be mounted.",
			Next:    "apply what the volume <volume> needs (ConfigMap, Secret, claim), then run the retest again",
		},
		{
			Cause:   ContainerConfigError,
			Settles: OnRepeat,
			Summary: "Blocked after the sandbox: a ConfigMap, a Secret or a setting of a container.",
			Next:    "correct what the container's message names, then run the retest again",
		},
		{
			Cause:   MasterLinkRecreated,
			Settles: AtOnce,
			Summary: "The parent interface was recreated under the running Pod, which took the Pod's interface away.",
			Next:    "find what recreates <parent> on <node> (network manager, VLAN change), then run the retest again",
		},
		{
			Cause:   OldPodTerminating,
			Summary: "The previous canary is still going.",
			Next:    "wait until it is gone; never force its deletion, as its address would still be held on the node",
		},
		{
			Cause:   TeardownBlocked,
			Settles: OnRepeat,
			Summary: "The previous canary cannot be torn down on its node.",
			Next:    "mend what the message names on <node> (a Multus conf without Multus, a missing plugin, a broken cache file); never force the deletion",
		},
		{
			Cause:   CRDTerminating,
			Settles: AtOnce,
			Summary: "The CRD of NetworkAttachmentDefinitions is being deleted and waits for its objects.",
			Next:    "list the NetworkAttachmentDefinitions that are left and their finalizers and remove those; never the CRD's own finalizer first",
		},
		{
			Cause:   NoAttempt,
			Settles: AtOnce,
			Summary: "There is no canary to judge.",
			Next:    "run the retest with the canary's manifest: kubectl vlan50 canary retest -f FILE",
		},
		{
			Cause:   AttemptInProgress,
			Summary: "The canary is on its way and nothing is wrong yet.",
			Next:    "wait for it, or judge again",
		},
		{
			Cause:   SandboxFailed,
			Summary: "The Pod's sandbox cannot be made, in words that are not known here.",
			Next:    "read the message below; it names what failed on <node>",
		},
		{
			Cause:   EvidenceIncomplete,
			Settles: AtOnce,
			Summary: "What would decide was not looked at or is not there.",
			Next:    "judge the live canary, or collect its Pod, its events, the DaemonSet and the node as well",
		},
	})
}
