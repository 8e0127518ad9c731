"""What fake_api_server.py answers below /try/; its text says what each name does."""
import json
import socket
import struct
import time


def echo(handler, **headers):
    handler.send_json(200, {
        "verb": handler.command, "path": handler.path, "content_type": handler.headers.get("Content-Type", ""),
        "accept": handler.headers.get("Accept", ""), "body": handler.body.decode(), "connection": handler.client_address[2],
        "requests": handler.seen}, **headers)


def reset(handler):
    """What the client gets is a RST."""
    handler.wfile.flush()
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    socket.socket.close(handler.connection)  # without a word of TLS
    handler.close_connection = True


def event(kind, name, version):
    return json.dumps({"type": kind, "object": {"metadata": {"name": name, "resourceVersion": str(version)}}}) + "\n"


class Chunks:
    """An answer without an end, as watches are."""

    def __init__(self, handler):
        self.out = handler.wfile
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()

    def send(self, text):
        self.out.write(b"%x\r\n%s\r\n" % (len(text), text.encode()))

    def end(self):
        self.out.write(b"0\r\n\r\n")


def watch(handler, name):
    if name == "watch-late":
        handler.connection.recv(1)
        return
    if name == "watch-410":
        handler.send_status(410, "too old resource version")
        return
    chunks = Chunks(handler)
    lines = [event("ADDED", "a", 1), event("MODIFIED", "a", 2), event("DELETED", "a", 3)]
    if name == "watch":
        text = "".join(lines)
        for piece in (text[:7], text[7:100], text[100:101], text[101:]):
            chunks.send(piece)
        chunks.end()
        return
    handler.close_connection = True
    chunks.send(lines[0] + lines[1])
    if name == "watch-hang":
        handler.connection.recv(1)  # until the client goes
    elif name == "watch-cut":
        chunks.send(lines[2][:10])
        socket.socket.shutdown(handler.connection, socket.SHUT_RDWR)  # without a word of TLS or HTTP
    while name == "watch-flood":
        chunks.send(lines[0] * 100)
    while name == "watch-long":
        chunks.send("x" * 65536)
    while name == "watch-drip":
        chunks.send(lines[0])
        time.sleep(0.02)


def collection(handler):
    if "watch=true" in handler.path:
        chunks = Chunks(handler)
        chunks.send(event("ADDED", "d", 12))
        chunks.send(json.dumps({"type": "ERROR", "object": {"code": 410, "message": "too old"}}) + "\n")
        chunks.end()
        return
    items = [{"metadata": {"name": name, "resourceVersion": "3"}} for name in "abc"]
    pages = ({"items": items[2:], "metadata": {"resourceVersion": "10"}} if "continue=next%2F1" in handler.path
             else {"items": items[:2], "metadata": {"resourceVersion": "10", "continue": "next/1"}})
    handler.send_json(200, pages)


def drip(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "20")
    handler.end_headers()
    for _ in range(20):
        handler.wfile.write(b" ")
        time.sleep(0.02)


def answer(handler, name):
    if name == "echo" or name.startswith("echo/"):
        echo(handler)
    elif name.startswith("status-"):
        handler.send_status(int(name.removeprefix("status-")), "as asked\n")
    elif name.startswith("retry-"):
        handler.send_json(429, {"message": "too many"}, Retry_After=name.removeprefix("retry-"))
    elif name == "rotate" and handler.seen == 1:
        handler.server.change_token()
        handler.send_status(401, "Unauthorized")
    elif name == "rotate":
        echo(handler)
    elif name == "expel":
        handler.send_status(401, "Unauthorized")
    elif name == "new-ca":
        handler.server.use_certificate("other-server.crt")
        echo(handler)
    elif name == "close":
        handler.close_connection = True
        echo(handler)
    elif name == "reset":
        echo(handler)
        handler.connection.recv(1)
        reset(handler)
    elif name == "reset-before":
        reset(handler)
    elif name == "drip":
        drip(handler)
    elif name.startswith("watch"):
        watch(handler, name)
    elif name == "api/list":
        collection(handler)
    else:
        handler.close_connection = True
        if not handler.misbehave(name):
            handler.send_status(404, "no such trick")
