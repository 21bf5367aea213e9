//go:build linux

package node

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Names under which the lab's program starts itself again.
const (
	initName = "vlan50-lab-init"
	nodeName = "vlan50-lab-node"
)

// LockFile is locked by the lab as long as it lives; the kernel tells by whom.
const LockFile = "lab.lock"

// Command gives the command that starts the lab's first process, in namespaces
// of its own. It inherits the listener that the API server is reached by, the
// reading end of the leash and the writing end of the progress pipe.
func Command(state string, listener, leash, progress *os.File) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe") //nolint:noctx // the lab outlives whoever starts it
	cmd.Args = []string{initName, state}
	cmd.ExtraFiles = []*os.File{listener, leash, progress}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Setsid:     true,
	}
	return cmd
}

// Main takes over where the process was started by Command, and says so.
func Main(args []string) (code int, mine bool) {
	if len(args) != 2 {
		return 0, false
	}
	var err error
	switch args[0] {
	case initName:
		err = initialize(args[1])
	case nodeName:
		err = runNode(args[1])
	default:
		return 0, false
	}
	fmt.Fprintln(os.Stderr, err)
	return 1, true
}

// initialize is the first process of the PID namespace. It starts the node,
// reaps orphans (every container ends as one) and takes all down with it when
// the node ends.
func initialize(state string) error {
	lock, err := os.OpenFile(filepath.Join(state, LockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.FcntlFlock(lock.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK}); err != nil {
		return fmt.Errorf("another lab is running: %w", err)
	}
	cmd := exec.Command("/proc/self/exe") //nolint:noctx // lives as long as this process
	cmd.Args = []string{nodeName, state}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	for fd := uintptr(listenerFD); fd <= progressFD; fd++ {
		cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(fd, "inherited"))
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for _, file := range cmd.ExtraFiles {
		file.Close()
	}
	for {
		pid, err := syscall.Wait4(-1, nil, 0, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return err
		}
		if pid == cmd.Process.Pid {
			return errors.New("the node has ended")
		}
	}
}

// runNode runs the node. Until whoever started it has let go of the leash, it
// ends with them: an interrupted start leaves nothing behind.
func runNode(state string) error {
	leash, progress := os.NewFile(leashFD, "leash"), os.NewFile(progressFD, "progress")
	go func() {
		if data, _ := io.ReadAll(leash); len(data) == 0 {
			fmt.Fprintln(os.Stderr, "the start was interrupted")
			os.Exit(1)
		}
	}()
	err := run(state, progress)
	fmt.Fprintln(progress, err)
	return err
}
