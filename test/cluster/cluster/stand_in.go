package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// writeStandIn writes an image under the name that the manifests ask for, from the programs of the build directory and the
// libraries that ldd names, for a tree in which no image was built.
func writeStandIn(path string) error {
	manifest, err := os.ReadFile(Manifest("static/neuron-agent.yaml"))
	if err != nil {
		return err
	}
	image := regexp.MustCompile(`image: (\S+)`).FindSubmatch(manifest)
	if image == nil {
		return fmt.Errorf("no image in %s", Manifest("static/neuron-agent.yaml"))
	}
	programs := map[string]string{
		"usr/bin/neuron-agent":                          filepath.Join(env.bin, "neuron-agent"),
		"usr/libexec/neuron-node-agent/neuron-topology": filepath.Join(env.bin, "../libexec/neuron-node-agent/neuron-topology"),
	}
	contents := map[string]string{}
	for inside, program := range programs {
		contents[inside] = program
		output, err := run("ldd", program)
		if err != nil {
			return err
		}
		for _, found := range regexp.MustCompile(`(/\S+) \(0x`).FindAllStringSubmatch(output, -1) {
			contents[strings.TrimPrefix(found[1], "/")] = found[1]
		}
	}
	var files []archiveFile
	for inside, source := range contents {
		text, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		files = append(files, archiveFile{inside, 0o755, text})
	}
	return writeImage(path, string(image[1]), nil, files)
}
