package scriptednode

import (
	"context"
	"sync"
)

// gate is a door that goroutines wait at while it is closed.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed while the gate is open
	isOpen bool
}

func newGate(open bool) *gate {
	g := &gate{opened: make(chan struct{})}
	if open {
		g.open()
	}
	return g
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.isOpen {
		g.isOpen = true
		close(g.opened)
	}
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isOpen {
		g.isOpen = false
		g.opened = make(chan struct{})
	}
}

func (g *gate) door() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened
}

// passable tells whether the gate is open now.
func (g *gate) passable() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isOpen
}

// wait returns when the gate is open.
func (g *gate) wait(ctx context.Context) error {
	select {
	case <-g.door():
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
