package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"neuron-agent.test/suite"
)

// ProbeImage is what workload pods run.
const ProbeImage = suite.ProbeImage

// prepareImages returns the archives that every node gets: the probe and what is in the directory of built images, or, where no
// directory is named, a stand-in for the agent's.
func prepareImages(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	probe := filepath.Join(dir, "probe.tar")
	if err := suite.WriteProbeImage(probe); err != nil {
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

// standInPrograms are all programs of an image, relative to the build directory.
var standInPrograms = []string{"bin/neuron-agent", "bin/neuron-ls", "bin/neuron-top", "bin/neuron-sim",
	"libexec/neuron-node-agent/neuron-topology"}

// writeStandIns writes an archive for each image that the manifests name, from the stripped programs of the build directory and
// the libraries that ldd names: run.sh --stand-in, for a quick look without building images.
func writeStandIns(dir string) ([]string, error) {
	manifest, err := os.ReadFile(Manifest("static/neuron-agent.yaml"))
	if err != nil {
		return nil, err
	}
	tag := regexp.MustCompile(`image: localhost/neuron-agent(:\S+)`).FindSubmatch(manifest)[1]
	contents := map[string]string{}
	for _, program := range standInPrograms {
		stripped := filepath.Join(dir, filepath.Base(program))
		if _, err := suite.Run("strip", "-o", stripped, filepath.Join(env.bin, "..", program)); err != nil {
			return nil, err
		}
		contents["usr/"+program] = stripped
		output, err := suite.Run("ldd", stripped)
		if err != nil {
			return nil, err
		}
		for _, found := range regexp.MustCompile(`(/\S+) \(0x`).FindAllStringSubmatch(output, -1) {
			contents[strings.TrimPrefix(found[1], "/")] = found[1]
		}
	}
	var files []suite.ArchiveFile
	for inside, source := range contents {
		text, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		files = append(files, suite.ArchiveFile{Name: inside, Mode: 0o755, Data: text})
	}
	var archives []string
	for _, name := range []string{"neuron-agent", "neuron-agent-sim"} {
		archive := filepath.Join(dir, "stand-in-"+name+".tar")
		if err := suite.WriteImage(archive, "localhost/"+name+string(tag), nil, files); err != nil {
			return nil, err
		}
		archives = append(archives, archive)
	}
	return archives, nil
}
