//go:build linux

package lab

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// imagePrefix is that of every image of the lab. No registry has that name, so
// an image that is missing on the node can never be had from elsewhere.
const imagePrefix = "lab.invalid/"

// image is one image: files over the applets of busybox.
type image struct {
	name  string
	cmd   []string
	files map[string]content
}

// content is that of one path in an image: one of its fields is set.
type content struct {
	host string // a program of the host
	text string
	link string // what a symlink points to
}

func images(programs map[string]string) []image {
	// The link is where the daemon looks for network namespaces.
	multus := map[string]content{"var/run": {link: "/run"}}
	for _, name := range []string{"install_multus", "multus-daemon", "multus-shim", "passthru"} {
		multus["usr/src/multus-cni/bin/"+name] = content{host: programs[name]}
	}
	plugins := map[string]content{}
	for _, name := range []string{"macvlan", "static"} {
		plugins["opt/cni-plugins/"+name] = content{host: programs[name]}
	}
	return []image{
		{name: "pause", cmd: []string{"/bin/tail", "-f", "/dev/null"}},
		{name: "busybox", cmd: []string{"/bin/sh"}},
		{name: "multus-thick", cmd: []string{"/usr/src/multus-cni/bin/multus-daemon"}, files: multus},
		{name: "cni-plugins", cmd: []string{"/bin/sh"}, files: plugins},
	}
}

// writeImages writes all images as one OCI archive and gives their full
// references by name, digests included.
func writeImages(ctx context.Context, archive string, programs map[string]string) (map[string]string, error) {
	base, err := baseLayer(ctx, programs["busybox"])
	if err != nil {
		return nil, err
	}
	file, err := os.Create(archive)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	w := &layout{tar: tar.NewWriter(file), written: map[string]bool{}}
	references := map[string]string{}
	for _, img := range images(programs) {
		if references[img.name], err = w.image(img, base); err != nil {
			return nil, fmt.Errorf("writing the image %s: %w", img.name, err)
		}
	}
	if err := w.finish(); err != nil {
		return nil, err
	}
	return references, file.Close()
}

// baseLayer has busybox and a link for each of its applets.
func baseLayer(ctx context.Context, busybox string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("asking busybox for its applets: %w", err)
	}
	files := map[string]content{
		"bin/busybox": {host: busybox},
		// Without it the daemon cannot tell that it runs as root.
		"etc/passwd": {text: "root:x:0:0:root:/root:/bin/sh\n"},
	}
	for applet := range strings.FieldsSeq(string(out)) {
		if applet != "busybox" {
			files["bin/"+applet] = content{link: "/bin/busybox"}
		}
	}
	return layer(files)
}

// layer is a tar archive without times and owners: the same files give the same
// digest.
func layer(files map[string]content) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := writeContent(w, name, files[name]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func writeContent(w *tar.Writer, name string, c content) error {
	switch {
	case c.link != "":
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: c.link, Mode: 0o777})
	case c.text != "":
		return writeFile(w, name, 0o644, []byte(c.text))
	default:
		data, err := os.ReadFile(c.host)
		if err != nil {
			return err
		}
		return writeFile(w, name, 0o755, data)
	}
}

func writeFile(w *tar.Writer, name string, mode int64, data []byte) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// descriptor points to a blob of an OCI layout.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// layout writes an OCI image layout.
type layout struct {
	tar       *tar.Writer
	written   map[string]bool
	manifests []descriptor
}

const (
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
)

func (w *layout) image(img image, base []byte) (reference string, err error) {
	own, err := layer(img.files)
	if err != nil {
		return "", err
	}
	var layers []descriptor
	var diffs []string
	for _, data := range [][]byte{base, own} {
		blob, err := w.blob(layerType, data)
		if err != nil {
			return "", err
		}
		layers, diffs = append(layers, blob), append(diffs, blob.Digest)
	}
	config, err := w.document(configType, map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Cmd": img.cmd, "Env": []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": diffs},
	})
	if err != nil {
		return "", err
	}
	manifest, err := w.document(manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": layers,
	})
	if err != nil {
		return "", err
	}
	reference = imagePrefix + img.name + "@" + manifest.Digest
	manifest.Annotations = map[string]string{"io.containerd.image.name": reference}
	w.manifests = append(w.manifests, manifest)
	return reference, nil
}

func (w *layout) document(mediaType string, content any) (descriptor, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return descriptor{}, err
	}
	return w.blob(mediaType, data)
}

func (w *layout) blob(mediaType string, data []byte) (descriptor, error) {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	blob := descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(data)}
	if w.written[digest] {
		return blob, nil
	}
	w.written[digest] = true
	return blob, writeFile(w.tar, path.Join("blobs/sha256", digest), 0o644, data)
}

func (w *layout) finish() error {
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": w.manifests})
	if err != nil {
		return err
	}
	if err := writeFile(w.tar, "oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	if err := writeFile(w.tar, "index.json", 0o644, index); err != nil {
		return err
	}
	return w.tar.Close()
}

// unpinned is an image reference of a manifest whose digest is known only when
// the image has been built.
var unpinned = regexp.MustCompile(regexp.QuoteMeta(imagePrefix) + `([a-z-]+)@sha256:DIGEST`)

// pin puts the digests of the images into a manifest.
func pin(manifest []byte, references map[string]string) ([]byte, error) {
	var missing error
	pinned := unpinned.ReplaceAllFunc(manifest, func(match []byte) []byte {
		name := string(unpinned.FindSubmatch(match)[1])
		reference, ok := references[name]
		if !ok {
			missing = fmt.Errorf("the lab has no image %q", name)
		}
		return []byte(reference)
	})
	return pinned, missing
}
