package main

// window is what a scene does to Multus before the retest.
type window int

const (
	// untouched: Multus has been running.
	untouched window = iota
	// restarted: the DaemonSet was restarted a moment ago.
	restarted
	// open: it was restarted, its log is silent, and its CNI conf is not there.
	open
)

// scene is one retest to watch.
type scene struct {
	title, story string
	multus       window
	// noMacvlan takes the macvlan plugin off the node.
	noMacvlan bool
	args      []string
	// code is the exit code that must come: the demo is a test of itself.
	code int
}

func scenes() []scene {
	return []scene{
		{
			title: "1. A pass, right after a restart of Multus",
			story: "The DaemonSet is restarted; its daemon writes its CNI conf only after it is Ready.\n" +
				"The retest waits for the conf, not for Ready.",
			multus: restarted,
		},
		{
			title: "2. The false failure of the runbook",
			story: "As by hand, nobody looks whether the conf is there: the daemon's log is silent, and\n" +
				"--settle=0s takes Ready for ready. The canary comes up without Multus and fails. That\n" +
				"says nothing about the VLAN, and the verdict says so.",
			multus: open,
			args:   []string{"--settle=0s"},
			code:   4,
		},
		{
			title:     "3. A real failure: the macvlan plugin is missing on the node",
			story:     "kubelet tries again and again; the retest stops as soon as the fault is certain.",
			noMacvlan: true,
			code:      3,
		},
	}
}
