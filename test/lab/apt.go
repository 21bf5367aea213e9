//go:build linux

package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// aptConf keeps apt-get from what machines hang on an update: that writes wherever
// it likes.
const aptConf = `#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
`

// apt is apt-get that writes in one folder alone, and nothing of the machine's.
type apt struct {
	dir     string
	options []string
}

func newApt(dir string) (apt, error) {
	conf := filepath.Join(dir, "apt.conf")
	err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "archives", "partial"), 0o755),
		os.MkdirAll(filepath.Join(dir, "lists", "partial"), 0o755),
	)
	if err == nil {
		err = os.WriteFile(conf, []byte(aptConf), 0o644)
	}
	return apt{dir, []string{"-c", conf, "-o", "Dir::Cache=" + dir}}, err
}

// download fetches a package into a folder. Package lists may be missing or old on
// this machine: after a failure apt gets its own.
func (a apt) download(ctx context.Context, into, pkg string) error {
	if a.run(ctx, into, "download", pkg) == nil {
		return nil
	}
	a.options = append(a.options, "-o", "Dir::State::lists="+filepath.Join(a.dir, "lists"))
	if err := a.run(ctx, into, "update"); err != nil {
		return err
	}
	return a.run(ctx, into, "download", pkg)
}

func (a apt) run(ctx context.Context, dir string, args ...string) error {
	return run(ctx, dir, append(append([]string{"apt-get"}, a.options...), args...)...)
}
