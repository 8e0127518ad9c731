#!/usr/bin/env python3
"""A TLS server on loopback that answers GET /api/v1/nodes/NAME as an API server does, or as none should.

usage: fake_api_server.py DIR     ends when its standard input ends

Writes into DIR: ca.crt (which signed its certificate for 127.0.0.1), other-ca.crt (which did not), token. Prints its port, and serves.
NAME decides: trn2 (has the label neuron-agent/simulate=trn2.3xlarge), typo (=trn1.32xlargee), number, plain (no such
label), bare (no labels), forbidden, missing, busy, redirect, garbage, list, huge, headers (without end), slow (a byte now
and then), silent, cut. late: busy for the first three requests, then as trn2.
"""
import http.server
import json
import os
import ssl
import subprocess
import sys
import threading
import time

TOKEN = "header.good-token.signature"
LABELS = {"trn2": "trn2.3xlarge", "late": "trn2.3xlarge", "typo": "trn1.32xlargee", "number": 7}
STATUS = {"forbidden": (403, 'nodes "forbidden" is forbidden: User "system:serviceaccount:kube-system:neuron-agent" cannot get'),
          "missing": (404, 'nodes "missing" not found'), "busy": (503, "the server is not ready")}


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_certificates(directory):
    path = lambda name: os.path.join(directory, name)  # noqa: E731
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for name in ("ca", "other-ca"):
        openssl("req", "-x509", *curve, "-keyout", path(name + ".key"), "-out", path(name + ".crt"), "-subj", "/CN=" + name, "-days", "2")
    openssl("req", *curve, "-keyout", path("server.key"), "-out", path("server.csr"), "-subj", "/CN=kube-apiserver")
    with open(path("server.ext"), "w", encoding="ascii") as file:
        file.write("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", path("server.csr"), "-CA", path("ca.crt"), "-CAkey", path("ca.key"), "-CAcreateserial",
            "-out", path("server.crt"), "-days", "2", "-extfile", path("server.ext"))


class Handler(http.server.BaseHTTPRequestHandler):
    requests = {}

    def log_message(self, *_):
        pass

    def send_json(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_status(self, code, message):
        self.send_json(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code})

    def send_node(self, name):
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
        if name in LABELS:
            metadata["labels"]["neuron-agent/simulate"] = LABELS[name]
        if name == "bare":
            del metadata["labels"]
        self.send_json(200, {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})

    def do_GET(self):  # noqa: N802
        name = self.path.removeprefix("/api/v1/nodes/")
        seen = self.requests[name] = self.requests.get(name, 0) + 1
        try:
            if self.headers.get("Authorization") != "Bearer " + TOKEN:
                self.send_status(401, "Unauthorized")
            elif "as=PartialObjectMetadata" not in self.headers.get("Accept", ""):
                self.send_status(406, "only the metadata may be asked for")
            elif name == "late" and seen <= 3:
                self.send_status(*STATUS["busy"])
            elif name in STATUS:
                self.send_status(*STATUS[name])
            elif not self.misbehave(name):
                self.send_node(name)
        except OSError:
            pass  # the client has gone, as it should

    def misbehave(self, name):
        if name == "redirect":
            self.send_response(302)
            self.send_header("Location", "/api/v1/nodes/trn2")
            self.end_headers()
        elif name == "garbage":
            self.wfile.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
        elif name == "list":
            self.send_json(200, [])
        elif name == "huge":
            self.send_response(200)
            self.end_headers()
            while True:
                self.wfile.write(b"[" * 65536)
        elif name == "headers":
            self.send_response(200)
            self.flush_headers()
            while True:
                self.wfile.write(b"X-More: " + b"x" * 1000 + b"\r\n")
        elif name == "slow":
            self.send_response(200)
            self.end_headers()
            while True:
                self.wfile.write(b" ")
                time.sleep(0.05)
        elif name == "silent":
            self.connection.recv(1)  # until the client gives up
        elif name == "cut":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
            self.connection.close()
        else:
            return False
        return True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a client that does not trust us breaks the handshake

    def get_request(self):
        connection, address = self.socket.accept()
        connection.settimeout(30)
        return self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address


def main():
    directory = sys.argv[1]
    make_certificates(directory)
    server = Server(("127.0.0.1", 0), Handler)
    server.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.tls.load_cert_chain(os.path.join(directory, "server.crt"), os.path.join(directory, "server.key"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with open(os.path.join(directory, "token"), "w", encoding="ascii") as file:
        file.write(TOKEN + "\n")
    os.write(1, b"%d" % server.server_port)  # at once: whoever reads it does not read on
    sys.stdin.read()


if __name__ == "__main__":
    main()
