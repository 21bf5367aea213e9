//go:build linux

package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// stopWithin is how long a service may take to end by itself.
const stopWithin = 10 * time.Second

// ServiceStatus is what the node says of one service.
type ServiceStatus struct {
	Name    string    `json:"name"`
	Running bool      `json:"running"`
	Since   time.Time `json:"since"`
}

type service struct {
	argv   []string
	exited chan struct{}
	cmd    *exec.Cmd
	since  time.Time
}

func (s *service) running() bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// supervisor starts and stops the node's services. It restarts nothing by
// itself: a service that ends stays ended, for people to see.
type supervisor struct {
	machine machine

	mu       sync.Mutex
	services map[string]*service
}

func newSupervisor(m machine) *supervisor {
	s := &supervisor{machine: m, services: map[string]*service{}}
	for _, name := range m.services {
		s.services[name] = &service{argv: m.command(name)}
	}
	return s
}

func (s *supervisor) start(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	service, ok := s.services[name]
	if !ok {
		return fmt.Errorf("no service %q", name)
	}
	if service.running() {
		return nil
	}
	log, err := os.OpenFile(filepath.Join(stateDir, s.machine.log(name)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(service.argv[0], service.argv[1:]...) //nolint:noctx // runs until it is stopped
	cmd.Env = Environment()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	service.cmd, service.since, service.exited = cmd, time.Now(), make(chan struct{})
	go func(exited chan struct{}) {
		_ = cmd.Wait()
		close(exited)
	}(service.exited)
	return nil
}

// Environment is the same for all services, whoever started the lab.
func Environment() []string {
	return []string{"PATH=" + ToolDir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
}

// stop ends a service with the signal and waits until it is gone; one that
// does not heed it is killed.
func (s *supervisor) stop(name string, signal syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	service, ok := s.services[name]
	if !ok {
		return fmt.Errorf("no service %q", name)
	}
	if !service.running() {
		return nil
	}
	if err := service.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-service.exited:
	case <-time.After(stopWithin):
		_ = service.cmd.Process.Kill()
		<-service.exited
	}
	return nil
}

// status lists the services in the order of their start.
func (s *supervisor) status() []ServiceStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []ServiceStatus
	for _, name := range s.machine.services {
		service := s.services[name]
		all = append(all, ServiceStatus{Name: name, Running: service.running(), Since: service.since})
	}
	return all
}
