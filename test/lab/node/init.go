//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// Names under which the lab's program starts itself again.
const (
	initName = "vlan50-lab-init"
	nodeName = "vlan50-lab-node"
)

// Namespaces are the lab's own, as the flags of clone(2).
const Namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// Command gives the command that starts the lab's first process, in namespaces
// of its own. It inherits the reading end of the leash, the writing end of the
// progress pipe and the listener that the API server is reached by.
func Command(state string, leash, progress, listener *os.File) *exec.Cmd {
	return newInit(state, first, leash, progress, listener)
}

// newInit is the first process of a node in namespaces of its own.
func newInit(state string, m machine, files ...*os.File) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe") //nolint:noctx // the node outlives whoever starts it
	cmd.Args = []string{initName, m.name, state, strconv.Itoa(len(files))}
	// What marks the processes of a lab shell must not mark the next lab.
	cmd.Env = Environment()
	cmd.ExtraFiles = files
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: Namespaces,
		Setsid:     true,
	}
	return cmd
}

// StateFolder is the state folder of the lab whose first process has this command
// line; empty for any other process.
func StateFolder(args []string) string {
	if len(args) != 4 || args[0] != initName || args[1] != Name {
		return ""
	}
	return args[2]
}

// Main takes over where the process was started by Command, and says so.
func Main(args []string) (code int, mine bool) {
	if len(args) != 4 || args[0] != initName && args[0] != nodeName {
		return 0, false
	}
	var err error
	switch {
	case args[0] == initName:
		err = initialize(args)
	case args[1] == Second:
		err = runJoined()
	default:
		err = runFirst(args[2])
	}
	fmt.Fprintln(os.Stderr, err)
	return 1, true
}

// initialize is the first process of the PID namespace. It starts the node,
// reaps orphans (every container ends as one) and takes all down with it when
// the node ends.
func initialize(args []string) error {
	name, state := args[1], args[2]
	inherited, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(state, LockFile(name)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.FcntlFlock(lock.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK}); err != nil {
		return fmt.Errorf("another %s is running: %w", name, err)
	}
	cmd := exec.Command("/proc/self/exe") //nolint:noctx // lives as long as this process
	cmd.Args = append([]string{nodeName}, args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	for i := range inherited {
		cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(leashFD+i), "inherited"))
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
			endAll()
			return errors.New("the node has ended")
		}
	}
}

// endAll ends all other processes of the namespace while this one holds the lock:
// the kernel, which would end them as well, lets go of the lock first.
func endAll() {
	for {
		_ = syscall.Kill(-1, syscall.SIGKILL)
		if _, err := syscall.Wait4(-1, nil, 0, nil); errors.Is(err, syscall.ECHILD) {
			return
		}
	}
}

// runFirst runs the first node. Until whoever started it has let go of the leash,
// it ends with them: an interrupted start leaves nothing behind.
func runFirst(state string) error {
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

// runJoined runs the second node once its cables are there, and says when it is
// up or why not.
func runJoined() error {
	// None of what it starts may hold them open.
	syscall.CloseOnExec(cabledFD)
	syscall.CloseOnExec(progressFD)
	cabled, progress := os.NewFile(cabledFD, "cabled"), os.NewFile(progressFD, "progress")
	if _, err := io.ReadAll(cabled); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	if err := runSecond(ctx); err != nil {
		fmt.Fprintln(progress, err)
		return err
	}
	fmt.Fprintln(progress, Ready)
	progress.Close()
	select {}
}
