"""A busy simulated node: neuron-sim's host, load and kubelet, the real agent over TLS, two pods that hold hardware."""
import os
import subprocess

from processes import GaveUp, free_port

INSTANCE_TYPE = "trn2.48xlarge"
NODE_NAME = "node-1"
PODS = ["pod train neuron=4 efa=4", "pod serve neuron=1 efa=1"]


class SimulatedNode:
    """Started by the constructor; `target` is HOST:PORT of its /metrics, which `ca` verifies."""

    def __init__(self, processes, programs, directory):
        self._programs, self._directory = programs, directory
        self.root = os.path.join(directory, "root")
        kubelet = os.path.join(directory, "kubelet")
        os.makedirs(os.path.join(kubelet, "device-plugins"))
        os.makedirs(os.path.join(kubelet, "pod-resources"))
        self.run("neuron-sim", "node", self.root, "--instance-type", INSTANCE_TYPE)
        self._make_certificate()
        with open(os.path.join(self.root, "dev/kmsg"), "w", encoding="utf-8") as log:
            log.write("6,1,0,-;Neuron Driver Started with Version:2.21.37.0\n")
        self._kubelet = processes.start(
            "kubelet", [self.path("neuron-sim"), "kubelet", "--kubelet-dir", kubelet, "--wait-for", "neuron=16", "--wait-for", "efa=16", "--timeout", "60s"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.target = f"127.0.0.1:{free_port()}"
        processes.start("agent", [
            self.path("neuron-agent"), "run", "--root", self.root, "--kubelet-dir", kubelet, "--node-name", NODE_NAME,
            "--scan-interval", "1s", "--kernel-log", "on", "--metrics-address", self.target, "--metrics-tls-cert", self.ca, "--metrics-tls-key", self.key])
        for pod in PODS:
            answer = self.ask(pod)
            if "admitted" not in answer or "not started" in answer:
                raise GaveUp(answer)
        # Afterwards, since a container does not start on cores that are busy.
        processes.start("load", [self.path("neuron-sim"), "load", self.root, "--step", "500ms"])

    def path(self, program):
        return os.path.join(self._programs, program)

    def has(self, program):
        return os.path.exists(self.path(program))

    def run(self, program, *arguments):
        done = subprocess.run([self.path(program), *arguments], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise GaveUp(f"{program} {' '.join(arguments)}: {done.stderr}{done.stdout}")
        return done.stdout

    def _make_certificate(self):
        self.ca, self.key = os.path.join(self._directory, "tls.crt"), os.path.join(self._directory, "tls.key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                        "-subj", "/CN=neuron-monitor-service", "-addext", "subjectAltName=IP:127.0.0.1,DNS:neuron-monitor-service",
                        "-keyout", self.key, "-out", self.ca], check=True, capture_output=True)

    def ask(self, command):
        """One command to the kubelet; what it prints."""
        self._kubelet.stdin.write(command + "\necho (end)\n")
        self._kubelet.stdin.flush()
        lines = []
        for line in self._kubelet.stdout:
            if line.strip() == "(end)":
                return "".join(lines)
            lines.append(line)
        raise GaveUp(f"the kubelet ended at {command!r}")

    def set(self, target, *actions):
        self.run("neuron-sim", "set", self.root, target, *actions)
