#!/usr/bin/env python3
"""A TLS server on loopback that answers as an API server does, or as none should.

usage: fake_api_server.py DIR     ends when its standard input ends

Writes into DIR: ca.crt (which signed its certificate for 127.0.0.1), other-ca.crt (which did not), token. Prints its port, and serves.
Connections are kept. GET /api/v1/nodes/NAME: NAME decides: trn2 (has the label neuron-agent/simulate=trn2.3xlarge), typo (=trn1.32xlargee), number, plain (no such
label), bare (no labels), forbidden, missing, busy, redirect, garbage, list, huge, headers (without end), slow (a byte now
and then), silent, cut. late: busy for the first three requests, then as trn2.
/try/NAME, any method, what it says about requests and connections; watches have query watch=true:
  echo            an object: verb, path, content_type, accept, body, connection (its number), requests (to this path)
  status-N        that status; retry-N: 429 with Retry-After: N
  rotate          401, after a new token is in the token file: whoever reads it again is let in
  expel           401 at all times
  new-ca          from the next connection on, its certificate is signed by other-ca.crt
  close, reset    answers as echo, then ends the connection: as HTTP has it, or by a reset when the next request comes
  reset-before    no answer, the connection is reset; drip: a complete answer, a byte now and then
  watch           three lines, chunked in odd pieces, then the end; watch-cut: breaks off within the third
  watch-hang      two lines, then nothing; watch-flood: lines without end; watch-long: one line without end
  watch-drip      lines without end, now and then; watch-late: not even a status; watch-410: a status 410
  api/list        a list in two pages, and a watch that ends with a 410 line at once
"""
import http.server
import json
import os
import ssl
import subprocess
import sys
import threading
import time

import fake_api_tricks

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
    with open(path("server.ext"), "w", encoding="ascii") as file:
        file.write("subjectAltName=IP:127.0.0.1\n")
    openssl("req", *curve, "-keyout", path("server.key"), "-out", path("server.csr"), "-subj", "/CN=kube-apiserver")
    for ca, certificate in (("ca", "server.crt"), ("other-ca", "other-server.crt")):
        openssl("x509", "-req", "-in", path("server.csr"), "-CA", path(ca + ".crt"), "-CAkey", path(ca + ".key"), "-CAcreateserial",
                "-out", path(certificate), "-days", "2", "-extfile", path("server.ext"))


def replace_file(path, text):
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(text)
    os.rename(path + ".new", path)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    requests = {}

    def log_message(self, *_):
        pass

    def send_json(self, status, value, **headers):
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_status(self, code, message, name=""):
        details = {"details": {"name": name}} if name else {}  # of the object; a path that is not served has none
        self.send_json(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code, **details})

    def send_node(self, name):
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
        if name in LABELS:
            metadata["labels"]["neuron-agent/simulate"] = LABELS[name]
        if name == "bare":
            del metadata["labels"]
        self.send_json(200, {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})

    def handle_any(self):
        path = self.path.split("?")[0]
        name = path.removeprefix("/api/v1/nodes/")
        self.seen = self.requests[name] = self.requests.get(name, 0) + 1
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            if self.headers.get("Authorization") != "Bearer " + self.server.token:
                self.send_status(401, "Unauthorized")
            elif path.startswith("/try/"):
                fake_api_tricks.answer(self, path.removeprefix("/try/"))
            elif self.command == "GET":
                self.answer_node(name)
        except OSError:
            self.close_connection = True  # the client has gone, as it should

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815

    def answer_node(self, name):
        if "as=PartialObjectMetadata" not in self.headers.get("Accept", ""):
            self.send_status(406, "only the metadata may be asked for")
        elif name == "late" and self.seen <= 3:
            self.send_status(*STATUS["busy"])
        elif name in STATUS:
            self.send_status(*STATUS[name], name)
        else:
            self.close_connection = True
            if not self.misbehave(name):
                self.send_node(name)

    def misbehave(self, name):
        if name == "redirect":
            self.send_response(302)
            self.send_header("Location", "/api/v1/nodes/trn2")
            self.send_header("Content-Length", "0")
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
    token = TOKEN
    connections = 0

    def handle_error(self, *_):
        pass  # a client that does not trust us breaks the handshake

    def get_request(self):
        connection, address = self.socket.accept()
        connection.settimeout(30)
        self.connections += 1
        return self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), (*address, self.connections)

    def use_certificate(self, name):
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(os.path.join(self.directory, name), os.path.join(self.directory, "server.key"))

    def change_token(self):
        self.token = TOKEN + str(self.connections)
        replace_file(os.path.join(self.directory, "token"), self.token + "\n")


def main():
    server = Server(("127.0.0.1", 0), Handler)
    server.directory = sys.argv[1]
    make_certificates(server.directory)
    server.use_certificate("server.crt")
    replace_file(os.path.join(server.directory, "token"), TOKEN + "\n")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.write(1, b"%d" % server.server_port)  # at once: whoever reads it does not read on
    sys.stdin.read()


if __name__ == "__main__":
    main()
