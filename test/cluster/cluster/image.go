package cluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// ProbeImage is what workload pods run; it is also the pods' sandbox, since its default command only waits.
const ProbeImage = "localhost/probe:1"

//go:embed probe.sh
var probeScript []byte

// archiveFile is a directory where data is nil.
type archiveFile struct {
	name string
	mode int64
	data []byte
}

// prepareImages returns the archives that every node gets: the probe and what is in the directory of built images, or, where no
// directory is named, a stand-in for the agent's.
func prepareImages(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	probe := filepath.Join(dir, "probe.tar")
	if err := writeProbeImage(probe); err != nil {
		return nil, err
	}
	if env.images == "" {
		standIns, err := writeStandIns(dir)
		return append([]string{probe}, standIns...), err
	}
	built, _ := filepath.Glob(filepath.Join(env.images, "neuron-agent-*-"+runtime.GOARCH+".tar"))
	if len(built) == 0 {
		return nil, fmt.Errorf("no archive neuron-agent-*-%s.tar in %s", runtime.GOARCH, env.images)
	}
	return append([]string{probe}, built...), nil
}

func writeProbeImage(path string) error {
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return err
	}
	return writeImage(path, ProbeImage, []string{"/bin/busybox", "sleep", "1000000"}, []archiveFile{
		{"bin/", 0o755, nil},
		{"bin/busybox", 0o755, busybox},
		{"out/", 0o777, nil},
		{"probe", 0o755, probeScript},
	})
}

// writeImage writes an image of one layer in the layout of `docker save`, which `ctr images import` reads.
func writeImage(path, name string, entrypoint []string, files []archiveFile) error {
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
	image, err := tarOf([]archiveFile{
		{"layer.tar", 0o644, layer}, {"config.json", 0o644, config}, {"manifest.json", 0o644, manifest},
	})
	return errors.Join(err, os.WriteFile(path, image, 0o644))
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
