package cluster

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// standInPrograms are all programs of an image, relative to the build directory.
var standInPrograms = []string{"bin/neuron-agent", "bin/neuron-ls", "bin/neuron-top", "bin/neuron-sim",
	"libexec/neuron-node-agent/neuron-topology", "libexec/neuron-node-agent/neuron-pods"}

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
		if _, err := run("strip", "-o", stripped, filepath.Join(env.bin, "..", program)); err != nil {
			return nil, err
		}
		contents["usr/"+program] = stripped
		output, err := run("ldd", stripped)
		if err != nil {
			return nil, err
		}
		for _, found := range regexp.MustCompile(`(/\S+) \(0x`).FindAllStringSubmatch(output, -1) {
			contents[strings.TrimPrefix(found[1], "/")] = found[1]
		}
	}
	var files []archiveFile
	for inside, source := range contents {
		text, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		files = append(files, archiveFile{inside, 0o755, text})
	}
	var archives []string
	for _, name := range []string{"neuron-agent", "neuron-agent-sim"} {
		archive := filepath.Join(dir, "stand-in-"+name+".tar")
		if err := writeImage(archive, "localhost/"+name+string(tag), nil, files); err != nil {
			return nil, err
		}
		archives = append(archives, archive)
	}
	return archives, nil
}
