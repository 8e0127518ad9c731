#!/usr/bin/env python3
"""kubectl as far as kubectl-neuron uses it: proxy --unix-socket, get --raw, config view, create --dry-run=client. Other words end with status 1.

FAKE_KUBECTL is a JSON file: path -> answer. An answer is {"status": 200, "body": any JSON}, {"text": "as it is"}, {"file": "beside it"},
{"hang": true} (never answers) or {"cut": true} (ends in the middle). A list of objects at "items" is served in pages, as limit= says. The
key "" holds what is no path: "namespace" of the context, "proxy": "refuse" (it does not start), "log": a file, a line per call; "created": what
create prints. "silent": true: each call ends with status 1 and no word.
"""
import http.server
import json
import os
import socketserver
import sys
import threading
import urllib.parse

PLACE = os.environ["FAKE_KUBECTL"]
with open(PLACE, encoding="utf-8") as known:
    ANSWERS = json.load(known)
OWN = ANSWERS.get("", {})
LOCK = threading.Lock()


def log(line):
    if "log" in OWN:
        with LOCK, open(OWN["log"], "a", encoding="utf-8") as file:
            file.write(line + "\n")


def status_body(code, message):
    return json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code})


def page_of(items, query):
    limit, start = int(query.get("limit", ["500"])[0]), int(query.get("continue", ["0"])[0])
    metadata = {"resourceVersion": "1"}
    if start + limit < len(items):
        metadata["continue"] = str(start + limit)
    return json.dumps({"kind": "List", "metadata": metadata, "items": items[start:start + limit]})


def answer_to(target):
    """(status, text, trick)"""
    url = urllib.parse.urlsplit(target)
    log(target)
    found = ANSWERS.get(urllib.parse.unquote(url.path))
    if found is None:
        return 404, status_body(404, "the server could not find the requested resource"), ""
    trick = next((name for name in ("hang", "cut") if found.get(name)), "")
    if "text" in found:
        return found.get("status", 200), found["text"], trick
    if "file" in found:
        with open(os.path.join(os.path.dirname(PLACE), found["file"]), encoding="utf-8") as file:
            return 200, file.read(), trick
    body = found.get("body", {})
    if isinstance(body, dict) and isinstance(body.get("items"), list):
        return 200, page_of(body["items"], urllib.parse.parse_qs(url.query)), trick
    return found.get("status", 200), json.dumps(body), trick


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def address_string(self):
        return ""

    def do_GET(self):  # noqa: N802
        status, text, trick = answer_to(self.path)
        if trick == "hang":
            self.rfile.read(1)  # until the client leaves
            return
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:len(body) // 2] if trick == "cut" else body)
        self.close_connection = self.close_connection or trick == "cut"


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 256


def proxy(words):
    if OWN.get("proxy") == "refuse":
        sys.exit("error: unknown flag: --unix-socket")
    path = next(word.split("=", 1)[1] for word in words if word.startswith("--unix-socket="))
    server = Server(path, Handler)
    print("Starting to serve on " + path, flush=True)
    server.serve_forever()


def get_raw(target):
    status, text, trick = answer_to(target)
    if trick == "hang":
        threading.Event().wait()
    if status == 200:
        sys.stdout.write(text[:len(text) // 2] if trick == "cut" else text)
        return
    reason = {403: "Forbidden", 404: "NotFound", 503: "ServiceUnavailable"}.get(status, "InternalError")
    try:
        message = json.loads(text)["message"]
    except (ValueError, KeyError, TypeError):
        message = text
    sys.exit(f"Error from server ({reason}): {message}")


def main():
    words = sys.argv[1:]
    log("kubectl " + " ".join(words))
    if OWN.get("silent"):
        sys.exit(1)
    if words[:1] == ["proxy"]:
        return proxy(words)
    if words[:2] == ["get", "--raw"]:
        return get_raw(words[2])
    if words[:2] == ["config", "view"]:
        return print(OWN.get("namespace", ""), end="")
    if words[:2] == ["create", "--dry-run=client"] and "created" in OWN:
        return print(OWN["created"])
    return sys.exit("error: unknown command")


if __name__ == "__main__":
    main()
