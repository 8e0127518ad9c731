package suite

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"runtime"
)

// ProbeImage is what workload pods run; it is also the pods' sandbox, since its default command only waits.
const ProbeImage = "localhost/probe:1"

//go:embed probe.sh
var probeScript []byte

// ArchiveFile is a directory where Data is nil.
type ArchiveFile struct {
	Name string
	Mode int64
	Data []byte
}

// WriteProbeImage writes the archive of ProbeImage: a static busybox and the probe.
func WriteProbeImage(path string) error {
	return WriteProbeImageAs(path, ProbeImage, "/bin/busybox", "sleep", "1000000")
}

// WriteProbeImageAs is WriteProbeImage under another name and with another default command.
func WriteProbeImageAs(path, name string, entrypoint ...string) error {
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return err
	}
	stay := []byte("#!/bin/busybox sh\nexec /probe main stay\n")
	return WriteImage(path, name, entrypoint, []ArchiveFile{
		{"bin/", 0o755, nil},
		{"bin/bash", 0o755, stay}, // with which TorchX starts a rank
		{"bin/busybox", 0o755, busybox},
		{"bin/sh", 0o755, []byte("#!/bin/busybox sh\nexec /bin/busybox sh \"$@\"\n")}, // of the specs for UltraServers
		{"out/", 0o777, nil},
		{"probe", 0o755, probeScript},
		{"usr/", 0o755, nil},
		{"usr/bin/", 0o755, nil},
		{"usr/bin/torchrun", 0o755, stay},
		{"usr/sbin/", 0o755, nil},
		{"usr/sbin/sshd", 0o755, stay}, // what the MPI operator starts in a worker
	})
}

// WriteImage writes an image of one layer in the layout of `docker save`, which `ctr images import` reads.
func WriteImage(path, name string, entrypoint []string, files []ArchiveFile) error {
	layer, err := tarOf(files)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config": map[string]any{
			"Entrypoint": entrypoint,
			"Env":        []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{
		"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return err
	}
	image, err := tarOf([]ArchiveFile{
		{"layer.tar", 0o644, layer}, {"config.json", 0o644, config}, {"manifest.json", 0o644, manifest},
	})
	return errors.Join(err, os.WriteFile(path, image, 0o644))
}

func tarOf(files []ArchiveFile) ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	for _, file := range files {
		header := &tar.Header{Name: file.Name, Mode: file.Mode, Size: int64(len(file.Data)), Typeflag: tar.TypeReg}
		if file.Data == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(file.Data); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return buffer.Bytes(), err
}
