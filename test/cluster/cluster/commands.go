package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// CodeLines returns the lines that are indented as code under a heading of a document of the tree, up to the next heading of
// any level, without the indentation. What the reader of a document types is thereby what runs.
func CodeLines(t testing.TB, document, heading string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(env.tree, document))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	inside := false
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "#") {
			inside = strings.TrimLeft(line, "# ") == heading
		} else if code, is := strings.CutPrefix(line, "    "); inside && is {
			lines = append(lines, code)
		}
	}
	if len(lines) == 0 {
		t.Fatalf("%s has no code under %q", document, heading)
	}
	return lines
}

// KubectlLines are those of CodeLines that call kubectl.
func KubectlLines(t testing.TB, document, heading string) []string {
	t.Helper()
	var lines []string
	for _, line := range CodeLines(t, document, heading) {
		if strings.Contains(line, "kubectl ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// Shell runs a line as a user does who stands at the top of the tree, with kubectl and helm in PATH, a kubeconfig and an empty
// home, and returns what it prints. variables are more of the environment, "NAME=value".
func (c *Cluster) Shell(t testing.TB, line string, variables ...string) string {
	t.Helper()
	begin := time.Now()
	command := exec.Command("/bin/sh", "-e", "-u", "-c", line)
	command.Dir = env.tree
	command.Env = append(os.Environ(), "PATH="+Tools()+":"+env.tools+":"+os.Getenv("PATH"), "KUBECONFIG="+c.Kubeconfig,
		"KUBECACHEDIR="+env.inWork("kubectl"), "HOME="+t.TempDir())
	command.Env = append(command.Env, variables...)
	output, err := command.CombinedOutput()
	t.Logf("%s     (%v)\n%s", line, time.Since(begin).Round(time.Millisecond), output)
	if err != nil {
		t.Fatal(err)
	}
	return string(output)
}

// Copy copies a directory of the tree into a new directory, which it returns, under the same name.
func Copy(t testing.TB, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(env.tree, name))); err != nil {
		t.Fatal(err)
	}
	return dir
}
