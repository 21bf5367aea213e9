package scriptednode

import (
	"fmt"
	"time"
)

// SetDaemon says how the daemon behaves from its next start on.
func (n *Node) SetDaemon(d Daemon) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.daemon = d
}

func (n *Node) behaviour() Daemon {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.daemon
}

// KillDaemon ends the daemon's container at once, with reason "Error" (SIGKILL)
// or "OOMKilled". The conf stays, and the container is restarted in the same
// Pod. It reports whether there was a daemon.
func (n *Node) KillDaemon(reason string) bool {
	_, daemon, _ := n.cni.look()
	if daemon == nil {
		return false
	}
	select {
	case daemon.kill <- reason:
	default: // it is dying already
	}
	return true
}

// HoldDaemon kills the daemon and keeps it down until ReleaseDaemon: the conf
// is there and nobody answers.
func (n *Node) HoldDaemon() bool {
	n.restart.shut()
	return n.KillDaemon("Error")
}

// ReleaseDaemon lets a held daemon start again.
func (n *Node) ReleaseDaemon() { n.restart.open() }

// ConfPresent tells whether the Multus conf is on the node.
func (n *Node) ConfPresent() bool {
	present, _, _ := n.cni.look()
	return present
}

// RemoveConf removes the Multus conf by hand: the daemon does not write it
// again until it is restarted.
func (n *Node) RemoveConf() { n.setConf(false, "by hand") }

// WriteConf puts the Multus conf back by hand.
func (n *Node) WriteConf() { n.setConf(true, "by hand") }

func (n *Node) setConf(present bool, who string) {
	if !n.cni.setConf(present) {
		return
	}
	kind := ConfRemoved
	if present {
		kind = ConfWritten
	}
	n.book.add(Entry{Kind: kind, Text: who})
}

// startLines are what the daemon prints before it is ready.
func startLines(site Site) []string {
	return []string{
		"multus-daemon started",
		"server configured with chroot: /hostroot",
		fmt.Sprintf("Filtering pod watch for node %q", site.Node),
		"API readiness check",
	}
}

// watchLine is what the daemon prints right after it has written its conf.
func watchLine(site Site) string {
	return "started to watch file /host/etc/cni/net.d/" + site.PrimaryConf
}

// say prints lines of level verbose, in the form of Multus' logging package.
func (a *attempt) say(p *daemonProcess, at time.Time, lines ...string) {
	if !p.verbose {
		return
	}
	for _, line := range lines {
		a.node.logs.print(a.id, daemonContainer, at, logLine(at, line))
	}
}

func logLine(at time.Time, text string) string {
	return fmt.Sprintf("%s [verbose] %s", at.UTC().Format(time.RFC3339), text)
}
