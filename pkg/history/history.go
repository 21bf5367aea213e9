// Package history keeps manifests and attempts on this machine, because events
// vanish after an hour and the canary is deleted by the next attempt.
//
// Below its folder: CLUSTER/NAMESPACE/NAME/manifest.yaml, and for each attempt
// attempts/TIME-UID/ with evidence.yaml and verdict.json.
package history

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/report"
)

// Store is the history of one cluster.
type Store struct {
	root    string
	cluster string
}

// Folder is where the history lies unless the user says otherwise: the state
// folder of the platform.
func Folder(getenv func(string) string) (string, error) {
	if dir := getenv("VLAN50_STATE_DIR"); dir != "" {
		return dir, nil
	}
	if dir := getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "kubectl-vlan50"), nil
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		dir, err := os.UserConfigDir()
		return filepath.Join(dir, "kubectl-vlan50", "state"), err
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "kubectl-vlan50"), err
}

// Open gives the history of the cluster behind an API server's URL.
func Open(root, server string) *Store {
	return &Store{root: root, cluster: fileName(server)}
}

// Machine is a random id of this folder, made at the first use: it tells the
// lock whether an earlier run was on this machine.
func (s *Store) Machine() (string, error) {
	path := filepath.Join(s.root, "machine")
	data, err := os.ReadFile(path)
	if err == nil && len(data) > 0 {
		return strings.TrimSpace(string(data)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	id := make([]byte, 8)
	if _, err := rand.Read(id); err != nil {
		return "", err
	}
	return hex.EncodeToString(id), write(path, []byte(hex.EncodeToString(id)+"\n"))
}

// SaveManifest implements canary.Store.
func (s *Store) SaveManifest(pod *corev1.Pod) (string, error) {
	data, err := evidence.YAML(pod)
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.folder(evidence.Ref{Namespace: pod.Namespace, Name: pod.Name}), "manifest.yaml")
	return path, write(path, data)
}

// LoadManifest implements canary.Store.
func (s *Store) LoadManifest(ref evidence.Ref) (*corev1.Pod, string, error) {
	path := filepath.Join(s.folder(ref), "manifest.yaml")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, path, err
	}
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		return nil, path, fmt.Errorf("%s: %w", path, err)
	}
	return pod, path, nil
}

// SaveAttempt implements canary.Store.
func (s *Store) SaveAttempt(result canary.Result) (string, error) {
	ref := result.Evidence.Canary
	folder := filepath.Join(s.folder(ref), "attempts",
		result.Attempt.StartedAt.UTC().Format("20060102T150405.000Z")+"-"+fileName(string(result.UID)))
	var saved bytes.Buffer
	if err := evidence.Save(&saved, result.Evidence); err != nil {
		return "", err
	}
	document, err := json.MarshalIndent(report.Result(ref, result), "", "  ")
	if err != nil {
		return "", err
	}
	if err := write(filepath.Join(folder, "verdict.json"), append(document, '\n')); err != nil {
		return "", err
	}
	path := filepath.Join(folder, "evidence.yaml")
	return path, write(path, saved.Bytes())
}

func (s *Store) folder(ref evidence.Ref) string {
	return filepath.Join(s.root, s.cluster, fileName(ref.Namespace), fileName(ref.Name))
}

// fileName makes a name that is safe on every file system, and the same for
// the same text.
func fileName(text string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		}
		return '_'
	}, strings.TrimPrefix(strings.TrimPrefix(text, "https://"), "http://"))
	if strings.Trim(name, ".") == "" {
		return "_"
	}
	if len(name) > longestName {
		sum := sha256.Sum256([]byte(text))
		name = name[:longestName-2*shortSum-1] + "-" + hex.EncodeToString(sum[:shortSum])
	}
	return name
}

const (
	// longestName leaves room, in the 255 bytes that file systems have for a name,
	// for what is put around it. Names in a cluster may have 253.
	longestName = 120
	// shortSum keeps names apart that begin alike, in bytes.
	shortSum = 6
)

// write puts a file in place whole or not at all; only its owner may read it,
// as manifests can carry what is nobody else's business.
func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}
