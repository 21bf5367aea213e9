//go:build lab && linux

package lab_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vlan50/kubectl-vlan50/test/buildcache"
	"github.com/vlan50/kubectl-vlan50/test/lab"
	"github.com/vlan50/kubectl-vlan50/test/lab/node"
)

// TestMain gives the tests a lab, and leaves the machine as it was found: with
// the lab that was up, or with none.
func TestMain(m *testing.M) {
	if code, mine := node.Main(os.Args); mine {
		os.Exit(code)
	}
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := lab.Check(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 1
	}
	var err error
	if programDir, err = os.MkdirTemp("", "vlan50-lab-test-"); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 1
	}
	defer os.RemoveAll(programDir)
	_, openErr := lab.Open()
	if openErr != nil {
		before := machine(func(args ...any) { log.Fatal(args...) })
		defer func() {
			if err := downAsBefore(context.WithoutCancel(ctx), before); err != nil {
				fmt.Fprintln(os.Stderr, "lab:", err)
				code = 1
			}
		}()
	}
	l, err := lab.Up(ctx, os.Stderr)
	if err == nil {
		err = l.Reset(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 1
	}
	// The tests know nothing of signals: they end here, and the lab with them
	// where it is theirs.
	defer context.AfterFunc(ctx, func() {
		if openErr != nil {
			_ = lab.Down(context.WithoutCancel(ctx), os.Stderr)
		}
		os.RemoveAll(programDir)
		os.Exit(1)
	})()
	code = m.Run()
	if openErr != nil {
		return code
	}
	if l, err = lab.Up(ctx, os.Stderr); err == nil {
		err = l.Restore(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		return 1
	}
	return code
}

// downAsBefore ends the lab, and wants the machine as it was before all tests.
func downAsBefore(ctx context.Context, before snapshot) error {
	if err := lab.Down(ctx, os.Stderr); err != nil {
		return err
	}
	after := machine(func(args ...any) { log.Fatal(args...) })
	if diff := cmp.Diff(snapshot{}, after.without(before)); diff != "" {
		return fmt.Errorf("all tests together left something:\n%s", diff)
	}
	return nil
}

// open gives the lab that TestMain has started.
func open(t *testing.T) *lab.Lab {
	t.Helper()
	l, err := lab.Open()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// projectFile is the path of a file of the project.
func projectFile(t *testing.T, path ...string) string {
	t.Helper()
	root, err := buildcache.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(append([]string{root}, path...)...)
}
