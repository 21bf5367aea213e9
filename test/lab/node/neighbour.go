//go:build linux

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// neighbour is the second node as the first one sees it: a process in its PID
// namespace, which dies with it.
type neighbour struct {
	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{}
}

func (n *neighbour) running() bool {
	if n.cmd == nil {
		return false
	}
	select {
	case <-n.exited:
		return false
	default:
		return true
	}
}

// start starts the second node and waits until its services run. Where that
// fails, nothing of it stays.
func (n *neighbour) start(ctx context.Context) (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	cabled, cable, err := os.Pipe()
	if err != nil {
		return err
	}
	defer cabled.Close()
	defer cable.Close()
	said, say, err := os.Pipe()
	if err != nil {
		return err
	}
	defer said.Close()
	defer say.Close()
	cmd := newInit(stateDir, second, cabled, say)
	log, err := os.Create(filepath.Join(stateDir, second.log("node")))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("making the namespaces of %s: %w", Second, err)
	}
	n.cmd, n.exited = cmd, make(chan struct{})
	go func(exited chan struct{}) {
		_ = cmd.Wait()
		close(exited)
	}(n.exited)
	say.Close()
	defer func() {
		if err != nil {
			err = errors.Join(err, n.end(context.WithoutCancel(ctx)))
		}
	}()
	if err := n.lay(ctx); err != nil {
		return err
	}
	cable.Close()
	defer context.AfterFunc(ctx, func() { said.Close() })()
	word, err := io.ReadAll(said)
	if err == nil && !bytes.Equal(bytes.TrimSpace(word), []byte(Ready)) {
		err = fmt.Errorf("starting %s: %s", Second, bytes.TrimSpace(word))
	}
	return err
}

// lay lays the cables between the switch and the second node.
func (n *neighbour) lay(ctx context.Context) error {
	// The switch passes on between its ports.
	forward := exec.CommandContext(ctx, "ip", "netns", "exec", Switch, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
	if out, err := forward.CombinedOutput(); err != nil {
		return fmt.Errorf("setting up the switch: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return ip(ctx, fmt.Sprintf(secondScript, n.cmd.Process.Pid), "-netns", Switch)
}

// stop ends the second node as if its plug was pulled.
func (n *neighbour) stop(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.running() {
		return nil
	}
	return n.end(ctx)
}

// end kills the first process of the node's PID namespace, and so all of them.
// Its ends of the cables go with the namespace, a moment later; the switch's ends
// must not be in the way of the next start.
func (n *neighbour) end(ctx context.Context) error {
	if err := n.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-n.exited
	for _, name := range []string{"uplink-2", SwitchPort + "-2"} {
		// Gone already is as good.
		_ = exec.CommandContext(ctx, "ip", "-netns", Switch, "link", "delete", name).Run()
	}
	return nil
}
