package history_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vlan50/kubectl-vlan50/pkg/api/v1alpha1"
	"github.com/vlan50/kubectl-vlan50/pkg/canary"
	"github.com/vlan50/kubectl-vlan50/pkg/evidence"
	"github.com/vlan50/kubectl-vlan50/pkg/history"
	"github.com/vlan50/kubectl-vlan50/pkg/verdict"
)

var (
	ref   = evidence.Ref{Namespace: "downloads", Name: "vlan50-canary"}
	began = time.Date(2026, 1, 15, 12, 0, 0, 250_000_000, time.FixedZone("", 3600))
)

func manifest() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ref.Namespace, Name: ref.Name,
			Annotations: map[string]string{"k8s.v1.cni.cncf.io/networks": "vlan50"},
		},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "canary", Image: "busybox"}}},
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// onlyOwner checks that nobody else may read what lies below a folder.
func onlyOwner(t *testing.T, root string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		return // modes say nothing there
	}
	check(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s may be read by others: %s", path, info.Mode())
		}
		if strings.HasPrefix(entry.Name(), ".new-") {
			t.Errorf("%s was left behind", path)
		}
		return err
	}))
}

func TestFolder(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	tests := map[string]struct {
		variables map[string]string
		want      string
	}{
		"named":       {map[string]string{"VLAN50_STATE_DIR": "/named", "XDG_STATE_HOME": "/xdg"}, "/named"},
		"XDG":         {map[string]string{"XDG_STATE_HOME": "/xdg"}, filepath.Join("/xdg", "kubectl-vlan50")},
		"the default": {nil, filepath.Join(home, ".local", "state", "kubectl-vlan50")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if name == "the default" && runtime.GOOS != "linux" {
				t.Skip("the default differs by platform")
			}
			got, err := history.Folder(func(key string) string { return test.variables[key] })
			if err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestManifestComesBackAsItWas(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state")
	store := history.Open(root, "https://192.0.2.10:6443")
	none, _, err := store.LoadManifest(ref)
	if none != nil || err != nil {
		t.Fatalf("before anything was saved: %v, %v", none, err)
	}
	path, err := store.SaveManifest(manifest())
	check(t, err)
	if want := filepath.Join(root, "192.0.2.10_6443", "downloads", "vlan50-canary", "manifest.yaml"); path != want {
		t.Errorf("saved in %s, want %s", path, want)
	}
	pod, from, err := store.LoadManifest(ref)
	check(t, err)
	if diff := cmp.Diff(manifest(), pod); diff != "" || from != path {
		t.Errorf("loaded from %s (-want +got):\n%s", from, diff)
	}
	onlyOwner(t, root)

	newer := manifest()
	newer.Spec.Containers[0].Image = "busybox:2"
	_, err = store.SaveManifest(newer)
	check(t, err)
	pod, _, err = store.LoadManifest(ref)
	check(t, err)
	if pod.Spec.Containers[0].Image != "busybox:2" {
		t.Error("the newer manifest was not taken")
	}
}

func TestManifestOfAnotherClusterOrCanaryIsAnother(t *testing.T) {
	root := t.TempDir()
	_, err := history.Open(root, "https://a:6443").SaveManifest(manifest())
	check(t, err)
	for name, look := range map[string]struct {
		server string
		ref    evidence.Ref
	}{
		"another cluster":   {"https://b:6443", ref},
		"another namespace": {"https://a:6443", evidence.Ref{Namespace: "media", Name: ref.Name}},
		"another name":      {"https://a:6443", evidence.Ref{Namespace: ref.Namespace, Name: "other"}},
	} {
		t.Run(name, func(t *testing.T) {
			if pod, _, err := history.Open(root, look.server).LoadManifest(look.ref); pod != nil || err != nil {
				t.Errorf("got %v, %v", pod, err)
			}
		})
	}
}

func TestManifestThatCannotBeReadIsAnError(t *testing.T) {
	store := history.Open(t.TempDir(), "https://a:6443")
	path, err := store.SaveManifest(manifest())
	check(t, err)
	for name, content := range map[string]string{"broken": "spec: [", "with a field nobody knows": "spec:\n  restartPolice: Never\n"} {
		t.Run(name, func(t *testing.T) {
			check(t, os.WriteFile(path, []byte(content), 0o600))
			if pod, _, err := store.LoadManifest(ref); pod != nil || err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, %v", pod, err)
			}
		})
	}
}

func result() canary.Result {
	return canary.Result{
		UID:     "11111111-2222-4333-8444-555555555555",
		Verdict: verdict.Verdict{Outcome: verdict.Pass, Cause: verdict.OK, Message: "attached"},
		Attempt: canary.Attempt{StartedAt: began, Number: 1},
		Evidence: evidence.Evidence{
			CollectedAt: began, Canary: evidence.Ref{Namespace: ref.Namespace, Name: ref.Name, UID: "11111111-2222-4333-8444-555555555555"},
			DaemonSet: evidence.Ref{Namespace: "kube-system", Name: "kube-multus-ds"},
			Collected: map[evidence.Resource]bool{evidence.Pods: true}, Pods: []corev1.Pod{*manifest()},
		},
	}
}

func TestAttemptIsSavedWithItsEvidence(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state")
	store := history.Open(root, "https://a:6443")
	path, err := store.SaveAttempt(result())
	check(t, err)
	folder := filepath.Join(root, "a_6443", "downloads", "vlan50-canary", "attempts", "20260115T110000.250Z-11111111-2222-4333-8444-555555555555")
	if path != filepath.Join(folder, "evidence.yaml") {
		t.Errorf("saved in %s, want it in %s", path, folder)
	}
	file, err := os.Open(path)
	check(t, err)
	defer file.Close()
	loaded, err := evidence.Load(file, evidence.Options{})
	check(t, err)
	if loaded.Canary.UID != result().UID || len(loaded.Pods) != 1 || loaded.Pods[0].Name != ref.Name {
		t.Errorf("loaded: %+v", loaded)
	}
	data, err := os.ReadFile(filepath.Join(folder, "verdict.json"))
	check(t, err)
	var document v1alpha1.CanaryVerdict
	check(t, json.Unmarshal(data, &document))
	if document.Kind != "CanaryVerdict" || document.Status.Verdict != "pass" || document.UID != result().UID || document.Status.Attempt == nil {
		t.Errorf("verdict.json: %+v", document)
	}
	onlyOwner(t, root)
}

// A retest that was blocked has no Pod of its own, and is kept too.
func TestAttemptWithoutAPod(t *testing.T) {
	blocked := result()
	blocked.UID, blocked.Evidence.Canary.UID = "", ""
	path, err := history.Open(t.TempDir(), "https://a:6443").SaveAttempt(blocked)
	check(t, err)
	if got, want := filepath.Base(filepath.Dir(path)), "20260115T110000.250Z-_"; got != want {
		t.Errorf("saved in %s, want %s", got, want)
	}
}

// Names come from the cluster and from files: none leads out of the folder.
func TestHostileNamesStayInTheFolder(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state")
	for name, hostile := range map[string]string{
		"a parent": "..", "a path": "../../etc/x", "an absolute path": "/etc/x", "a Windows path": `..\..\x`, "a drive": "C:x",
		"a stream": "x:y", "controls": "a\x1b[2J\x00b", "nothing": "", "a dot": ".",
	} {
		t.Run(name, func(t *testing.T) {
			store := history.Open(root, "https://"+hostile)
			pod := manifest()
			pod.Namespace, pod.Name = hostile, hostile
			path, err := store.SaveManifest(pod)
			check(t, err)
			inside, err := filepath.Rel(root, path)
			if err != nil || strings.Count(inside, string(filepath.Separator)) != 3 || strings.ContainsAny(inside, "\x00\x1b:\\*?\"<>|") || slices.Contains(strings.Split(inside, string(filepath.Separator)), "..") {
				t.Errorf("saved in %q", inside)
			}
			back, _, err := store.LoadManifest(evidence.Ref{Namespace: hostile, Name: hostile})
			if err != nil || back == nil {
				t.Errorf("not found again: %v", err)
			}
		})
	}
}

func TestMachineIsTheSameEachTime(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state")
	first, err := history.Open(root, "https://a").Machine()
	check(t, err)
	again, err := history.Open(root, "https://b").Machine()
	check(t, err)
	other, err := history.Open(t.TempDir(), "https://a").Machine()
	check(t, err)
	if first == "" || first != again || first == other || strings.ContainsAny(first, "/\n ") {
		t.Errorf("machines %q, %q, %q", first, again, other)
	}
	onlyOwner(t, root)
}

// A folder that cannot be written to is told, before anything is deleted.
func TestFolderThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o600))
	store := history.Open(filepath.Join(file, "state"), "https://a")
	if _, err := store.SaveManifest(manifest()); err == nil {
		t.Error("a manifest was saved below a file")
	}
	if _, err := store.Machine(); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("machine: %v", err)
	}
	if _, err := store.SaveAttempt(result()); err == nil {
		t.Error("an attempt was saved below a file")
	}
}

// Names in a cluster may be longer than a file system takes with what stands
// around them.
func TestLongNames(t *testing.T) {
	t.Parallel()
	store := history.Open(t.TempDir(), "https://cluster.example:6443")
	of := evidence.Ref{Namespace: "kube-system", Name: strings.Repeat("d", 253)}
	one, other := strings.Repeat("n", 250)+"-a", strings.Repeat("n", 250)+"-b"
	for _, name := range []string{one, other, one} {
		if _, err := store.SaveObject(of, "18-networkattachmentdefinition.downloads."+name+".yaml", []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := store.CloseObjects(of, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "18-networkattachmentdefinition.*.yaml"))
	if err != nil || len(files) != 2 {
		t.Errorf("want two files, got %v (%v)", files, err)
	}
}

// A rollback that goes on has the folder of the one that was cut short; the next
// one has a folder of its own.
func TestFolderOfARollback(t *testing.T) {
	t.Parallel()
	store := history.Open(t.TempDir(), "https://cluster.example:6443")
	of := evidence.Ref{Namespace: "kube-system", Name: "kube-multus-ds"}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	save := func(name string) string {
		t.Helper()
		folder, err := store.SaveObject(of, name, []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		return folder
	}
	if store.GoesOn(of) {
		t.Error("a rollback goes on that nobody has begun")
	}
	if cut, on := save("50-march.yaml"), save("51-march.yaml"); cut != on {
		t.Errorf("a run that goes on writes to %s, not to %s", on, cut)
	}
	if !store.GoesOn(of) || store.GoesOn(evidence.Ref{Namespace: "multus", Name: "multus"}) {
		t.Error("it is not told which rollback goes on")
	}
	march, err := store.CloseObjects(of, at)
	if err != nil {
		t.Fatal(err)
	}
	save("50-june.yaml")
	june, err := store.CloseObjects(of, at.AddDate(0, 3, 0))
	if err != nil || june == march {
		t.Fatalf("both rollbacks have folder %s (%v)", june, err)
	}
	for folder, want := range map[string]string{march: "50-march.yaml 51-march.yaml", june: "50-june.yaml"} {
		entries, err := os.ReadDir(folder)
		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%s has %s, want %s (%v)", folder, got, want, err)
		}
	}
	if store.GoesOn(of) {
		t.Error("a rollback goes on that has come to its end")
	}
	if folder, err := store.CloseObjects(of, at); err != nil || folder != "" {
		t.Errorf("nothing was saved since, and %q is closed (%v)", folder, err)
	}
}

func TestImageOfANode(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "state")
	store := history.Open(root, "https://cluster.example:6443")
	if image, err := store.LoadImage("node-1"); err != nil || image != "" {
		t.Errorf("%q, %v", image, err)
	}
	const want = "registry.example/multus-thick@sha256:00"
	check(t, store.SaveImage("node-1", "another"))
	check(t, store.SaveImage("node-1", want))
	if image, err := store.LoadImage("node-1"); err != nil || image != want {
		t.Errorf("%q, %v", image, err)
	}
	if image, err := store.LoadImage("node-2"); err != nil || image != "" {
		t.Errorf("another node has %q, %v", image, err)
	}
	if kept, err := store.LoadConfs("node-1"); err != nil || len(kept) > 0 {
		t.Errorf("it is taken for a conf: %v, %v", kept, err)
	}
	onlyOwner(t, root)
}
