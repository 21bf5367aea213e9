//go:build linux

package lab

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPin(t *testing.T) {
	references := map[string]string{"busybox": "lab.invalid/busybox@sha256:1234"}
	for _, test := range []struct{ name, manifest, want, err string }{
		{
			name:     "a built image gets its digest",
			manifest: "image: lab.invalid/busybox@sha256:DIGEST\nimage: lab.invalid/busybox@sha256:DIGEST\n",
			want:     "image: lab.invalid/busybox@sha256:1234\nimage: lab.invalid/busybox@sha256:1234\n",
		},
		{
			name:     "what is pinned already stays",
			manifest: "image: lab.invalid/busybox@sha256:5678\n",
			want:     "image: lab.invalid/busybox@sha256:5678\n",
		},
		{
			name:     "an image that nobody builds",
			manifest: "image: lab.invalid/other@sha256:DIGEST\n",
			err:      `no image "other"`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := pin([]byte(test.manifest), references)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v, want one with %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLayoutIsConsistent follows an image from the index down: each digest must
// be that of the blob it names, as containerd checks it.
func TestLayoutIsConsistent(t *testing.T) {
	base, err := layer(map[string]content{"bin/sh": {link: "/bin/busybox"}})
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	w := &layout{tar: tar.NewWriter(&archive), written: map[string]bool{}}
	img := image{name: "some", cmd: []string{"/bin/sh"}, files: map[string]content{"etc/passwd": {text: "root"}}}
	reference, err := w.image(img, base)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	files := untar(t, archive.Bytes())

	var index struct{ Manifests []descriptor }
	decode(t, files["index.json"], &index)
	if len(index.Manifests) != 1 {
		t.Fatalf("%d manifests in the index, want 1", len(index.Manifests))
	}
	if name := index.Manifests[0].Annotations["io.containerd.image.name"]; name != reference {
		t.Errorf("the image is named %q, want %q", name, reference)
	}
	if want := "lab.invalid/some@" + index.Manifests[0].Digest; reference != want {
		t.Errorf("reference %q, want %q", reference, want)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	decode(t, blobOf(t, files, index.Manifests[0]), &manifest)
	var config struct {
		RootFS struct {
			Diffs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	decode(t, blobOf(t, files, manifest.Config), &config)
	var layers []string
	for _, l := range manifest.Layers {
		blobOf(t, files, l)
		layers = append(layers, l.Digest)
	}
	if diff := cmp.Diff(layers, config.RootFS.Diffs); diff != "" {
		t.Errorf("the configuration's layers are not the manifest's:\n%s", diff)
	}
	if own := untar(t, blobOf(t, files, manifest.Layers[1])); string(own["etc/passwd"]) != "root" {
		t.Errorf("the image's own layer holds %q", own)
	}
}

func TestSameFilesSameLayer(t *testing.T) {
	files := map[string]content{"b": {text: "2"}, "a": {text: "1"}, "c": {link: "/a"}}
	first, err := layer(files)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		again, err := layer(files)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, again) {
			t.Fatal("the layer depends on more than its files")
		}
	}
}

func untar(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func blobOf(t *testing.T, files map[string][]byte, d descriptor) []byte {
	t.Helper()
	data := files["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
	sum := sha256.Sum256(data)
	if got := "sha256:" + hex.EncodeToString(sum[:]); got != d.Digest || len(data) != d.Size {
		t.Fatalf("blob %s (%d bytes) has digest %s and %d bytes", d.Digest, d.Size, got, len(data))
	}
	return data
}

func decode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}
