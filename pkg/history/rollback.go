package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/rollback"
)

// What a rollback takes away lies below CLUSTER/rollback: the manifests of the
// objects of one DaemonSet's rollback in a folder that `kubectl apply -f` takes,
// and the CNI confs of each node, each in a file that describes it.

// SaveObject implements rollback.Store.
func (s *Store) SaveObject(of evidence.Ref, name string, manifest []byte) (string, error) {
	folder := s.objects(of)
	return folder, write(filepath.Join(folder, fileName(strings.TrimSuffix(name, ".yaml"))+".yaml"), manifest)
}

// CloseObjects implements rollback.Store. The folder of a rollback that goes on
// has no time in its name.
func (s *Store) CloseObjects(of evidence.Ref, at time.Time) (string, error) {
	open := s.objects(of)
	closed := open + "." + at.UTC().Format("20060102T150405.000Z")
	err := os.Rename(open, closed)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return closed, err
}

// GoesOn implements rollback.Store.
func (s *Store) GoesOn(of evidence.Ref) bool {
	_, err := os.Stat(s.objects(of))
	return err == nil
}

func (s *Store) objects(of evidence.Ref) string {
	return filepath.Join(s.root, s.cluster, "rollback", "manifests", fileName(of.Namespace+"."+of.Name))
}

// SaveConf implements rollback.Store. One file for each content: a conf that
// comes back and is removed again is the same conf.
func (s *Store) SaveConf(node string, b rollback.Backup) (string, error) {
	data, err := yaml.Marshal(b)
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.confFolder(node), fileName(b.Conf)+"."+fileName(b.SHA256)+".yaml")
	return path, write(path, data)
}

// LoadConfs implements rollback.Store. A copy whose content is not what its
// checksum says is not given out.
func (s *Store) LoadConfs(node string) ([]rollback.Backup, error) {
	entries, err := os.ReadDir(s.confFolder(node))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var kept []rollback.Backup
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".yaml") {
			continue
		}
		path := filepath.Join(s.confFolder(node), entry.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var b rollback.Backup
		if err := yaml.UnmarshalStrict(data, &b); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if rollback.Checksum(b.Content) == b.SHA256 {
			kept = append(kept, b)
		}
	}
	rollback.Newest(kept)
	return kept, nil
}

// SaveImage implements rollback.Store.
func (s *Store) SaveImage(node, image string) error {
	return write(s.imageFile(node), []byte(image+"\n"))
}

// LoadImage implements rollback.Store.
func (s *Store) LoadImage(node string) (string, error) {
	image, err := os.ReadFile(s.imageFile(node))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(image)), err
}

func (s *Store) imageFile(node string) string {
	return filepath.Join(s.confFolder(node), "node-image")
}

func (s *Store) confFolder(node string) string {
	return filepath.Join(s.root, s.cluster, "rollback", "nodes", fileName(node))
}
