#!/usr/bin/env python3
"""A small API server for whole programs: TLS on loopback, a token, and objects in memory at their paths.

usage: fake_cluster.py DIR     ends when its standard input ends

Files and port as fake_api_server.py. Serves /version, the group resource.k8s.io, and any object below /api/v1 and
/apis/<group>/<version>: get, list (field selectors over metadata.name, spec.nodeName, spec.driver), watch, create with name or
generateName, replace with conflicts, merge patch, delete. All versions of a group show the same objects. What it does not do:
validation, defaults, paging, finalizers.
"""
import http.server
import json
import os
import sys
import threading
import urllib.parse
import uuid

import fake_api_server

KINDS = {"nodes": "Node", "pods": "Pod", "resourceslices": "ResourceSlice", "resourceclaims": "ResourceClaim",
         "events": "Event"}
GIT_VERSION = "v1.36.3"


class Store:
    """Objects by (plural, namespace, name), and all that ever happened to them."""

    def __init__(self):
        self.changed = threading.Condition()
        self.objects = {}
        self.events = []  # (version, type, key, object)
        self.version = 1

    def put(self, kind, key, value):  # with the lock
        self.version += 1
        metadata = value.setdefault("metadata", {})
        metadata.update(name=key[2], resourceVersion=str(self.version))
        metadata.setdefault("uid", str(uuid.uuid4()))
        metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        if key[1]:
            metadata["namespace"] = key[1]
        if kind == "DELETED":
            self.objects.pop(key)
        else:
            self.objects[key] = value
        self.events.append((self.version, kind, key, value))
        self.changed.notify_all()
        return value


def merge(target, patch):
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, dict) and isinstance(target.get(name), dict):
            merge(target[name], value)
        else:
            target[name] = value


def field(value, path):
    for name in path.split("."):
        value = value.get(name, {}) if isinstance(value, dict) else {}
    return value if isinstance(value, str) else ""


def split(path):
    """(api version, plural, namespace, name), the last two "" where the path has none; None for no such path."""
    parts = [urllib.parse.unquote(part) for part in path.strip("/").split("/")]
    if parts[:2] == ["api", "v1"]:
        version, rest = "v1", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        version, rest = "/".join(parts[1:3]), parts[3:]
    else:
        return None
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    return (version, rest[0], namespace, rest[1] if len(rest) > 1 else "") if rest and rest[0] in KINDS else None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store = Store()

    def log_message(self, *_):
        pass

    def send_json(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_status(self, code, reason, message, name=""):
        details = {"details": {"name": name}} if name else {}  # of the object; a path that is not served has none
        self.send_json(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code,
                              **details})

    def serve(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        url = urllib.parse.urlsplit(self.path)
        if self.headers.get("Authorization") != "Bearer " + fake_api_server.TOKEN:
            return self.send_status(401, "Unauthorized", "Unauthorized")
        if url.path == "/version":
            return self.send_json(200, {"major": "1", "minor": GIT_VERSION.split(".")[1], "gitVersion": GIT_VERSION})
        if url.path in ("/apis/resource.k8s.io", "/apis/resource.k8s.io/"):
            versions = [{"groupVersion": "resource.k8s.io/v1", "version": "v1"}]
            return self.send_json(200, {"kind": "APIGroup", "apiVersion": "v1", "name": "resource.k8s.io", "versions": versions,
                                        "preferredVersion": versions[0]})
        where = split(url.path)
        if where is None:
            return self.send_status(404, "NotFound", "the server could not find the requested resource")
        query = dict(urllib.parse.parse_qsl(url.query))
        if not where[3] and self.command == "GET":
            return self.watch(where, query) if query.get("watch") in ("true", "1") else self.list(where, query)
        with self.store.changed:
            answer = self.act(where, body)
        return self.send_json(*answer) if isinstance(answer[1], dict) else self.send_status(*answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve

    def selected(self, where, query, key, value):
        terms = [term.split("=", 1) for term in query.get("fieldSelector", "").replace("==", "=").split(",") if term]
        return key[0] == where[1] and where[2] in ("", key[1]) and all(field(value, path) == want for path, want in terms)

    def shown(self, where, value):
        return {**value, "apiVersion": where[0], "kind": KINDS[where[1]]}

    def list(self, where, query):
        with self.store.changed:
            items = [self.shown(where, value) for key, value in sorted(self.store.objects.items()) if self.selected(where, query, key, value)]
            version = str(self.store.version)
        self.send_json(200, {"kind": KINDS[where[1]] + "List", "apiVersion": where[0], "metadata": {"resourceVersion": version}, "items": items})

    def watch(self, where, query):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        seen = int(query.get("resourceVersion") or 0)
        while True:
            with self.store.changed:
                if self.store.version <= seen:
                    self.store.changed.wait(5)
                news = [event for event in self.store.events if event[0] > seen]
                seen = self.store.version
            for _, kind, key, value in news:
                if self.selected(where, query, key, value):
                    self.send_chunk({"type": kind, "object": self.shown(where, value)})
            if not news:
                self.send_chunk({"type": "BOOKMARK", "object": {"kind": KINDS[where[1]], "apiVersion": where[0],
                                                                "metadata": {"resourceVersion": str(seen)}}})

    def send_chunk(self, value):
        line = json.dumps(value).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.flush()

    def act(self, where, body):
        key, store = where[1:], self.store
        if self.command == "POST":
            metadata = body.get("metadata", {})
            name = metadata.get("name") or metadata.get("generateName", "") + uuid.uuid4().hex[:5]
            key = (where[1], where[2], name)
            if key in store.objects:
                return 409, "AlreadyExists", f'{where[1]} "{name}" already exists'
            metadata["generation"] = 1
            return 201, self.shown(where, store.put("ADDED", key, body))
        old = store.objects.get(key)
        if old is None:
            return 404, "NotFound", f'{where[1]} "{where[3]}" not found', where[3]
        if self.command == "GET":
            return 200, self.shown(where, old)
        if self.command == "DELETE":
            return 200, self.shown(where, store.put("DELETED", key, json.loads(json.dumps(old))))
        if self.command == "PATCH":
            new = json.loads(json.dumps(old))
            merge(new, body)
        else:
            new = body
            given = new.get("metadata", {}).get("resourceVersion", "")
            if given and given != old["metadata"]["resourceVersion"]:
                return 409, "Conflict", f'{where[1]} "{where[3]}": the object has been modified'
        new.setdefault("metadata", {}).update(uid=old["metadata"]["uid"], generation=old["metadata"].get("generation", 1) + 1)
        return 200, self.shown(where, store.put("MODIFIED", key, new))


def main():
    directory = sys.argv[1]
    fake_api_server.make_certificates(directory)
    server = fake_api_server.Server(("127.0.0.1", 0), Handler)
    server.directory = directory
    server.use_certificate("server.crt")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    fake_api_server.replace_file(os.path.join(directory, "token"), fake_api_server.TOKEN + "\n")
    os.write(1, b"%d" % server.server_port)
    sys.stdin.read()


if __name__ == "__main__":
    main()
