package scriptednode

import (
	"context"
	"errors"
	"sync"
	"time"
)

// cniState is the node's CNI as a sandbox meets it: is the Multus conf there,
// and does a daemon answer.
type cniState struct {
	mu      sync.Mutex
	conf    bool
	daemon  *daemonProcess
	changed chan struct{}
}

func newCNIState() *cniState { return &cniState{changed: make(chan struct{})} }

// look is what containerd (conf) and the shim (daemon) see at this moment.
func (c *cniState) look() (conf bool, daemon *daemonProcess, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conf, c.daemon, c.changed
}

// setConf reports whether that was a change.
func (c *cniState) setConf(present bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.conf
	c.conf = present
	c.tell()
	return was != present
}

func (c *cniState) setDaemon(d *daemonProcess) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.daemon = d
	c.tell()
}

// clearDaemon forgets d unless another one has taken its place.
func (c *cniState) clearDaemon(d *daemonProcess) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.daemon == d {
		c.daemon = nil
		c.tell()
	}
}

// tell wakes everybody who waits for a change; the caller holds the lock.
func (c *cniState) tell() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// waitDaemon is the shim's wait for a daemon that answers. It gives neither a
// daemon nor an error when the limit is reached.
func (c *cniState) waitDaemon(ctx context.Context, limit time.Duration) (*daemonProcess, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		_, daemon, changed := c.look()
		if daemon != nil {
			return daemon, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, nil
			}
			return nil, ctx.Err()
		}
	}
}
