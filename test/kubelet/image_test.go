package kubelettest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"os"
	"runtime"
)

// imageName is what pods ask for; it exists only in our containerd.
const imageName = "localhost/probe:1"

//go:embed probe.sh
var probeScript []byte

type archiveFile struct {
	name string
	mode int64
	data []byte // nil: a directory
}

// writeImage writes an image archive (the layout of `docker save`, which `ctr images import` reads): a
// static busybox and the probe. The same image is the pods' sandbox: its default command only waits.
func writeImage(path string) error {
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return err
	}
	layer, err := tarOf([]archiveFile{
		{"bin/", 0o755, nil},
		{"bin/busybox", 0o755, busybox},
		{"out/", 0o777, nil},
		{"probe", 0o755, probeScript},
	})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{"/bin/busybox", "sleep", "1000000"}},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{
		"Config": "config.json", "RepoTags": []string{imageName}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return err
	}
	image, err := tarOf([]archiveFile{
		{"layer.tar", 0o644, layer}, {"config.json", 0o644, config}, {"manifest.json", 0o644, manifest},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, image, 0o644)
}

func tarOf(files []archiveFile) ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	for _, file := range files {
		header := &tar.Header{Name: file.name, Mode: file.mode, Size: int64(len(file.data)), Typeflag: tar.TypeReg}
		if file.data == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(file.data); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return buffer.Bytes(), err
}
