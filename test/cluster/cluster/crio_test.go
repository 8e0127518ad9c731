package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"neuron-agent.test/suite"
)

func TestImageNames(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "image.tar")
	if err := suite.WriteImage(archive, "localhost/some:1", []string{"/bin/true"}, nil); err != nil {
		t.Fatal(err)
	}
	if names, err := imageNames(archive); err != nil || !slices.Equal(names, []string{"localhost/some:1"}) {
		t.Errorf("names %q, %v", names, err)
	}
	if err := os.Truncate(archive, 512); err != nil {
		t.Fatal(err)
	}
	if names, err := imageNames(archive); err == nil {
		t.Errorf("of a part of an archive: names %q", names)
	}
}
