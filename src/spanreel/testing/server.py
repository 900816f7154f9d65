"""A loopback HTTP server on a thread of its own; what it answers is somebody else's business."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spanreel.testing.provider import Reply

Answering = Callable[[str, str, Mapping[str, str], bytes], "Reply"]


class LoopbackServer:
    """Serves from its making until `close`, on a free port of 127.0.0.1, HTTP/1.1 with kept-alive connections."""

    def __init__(self, reply: Answering) -> None:
        self._server = _Server(("127.0.0.1", 0), _handler(reply))
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop taking connections; those that are open end with their client."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay quiet where a client has gone in the middle of a stream, as it may."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _handler(reply: Answering) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Chunks are small writes: without this each would wait for the acknowledgement of the one before.
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = reply(self.command, self.path.partition("?")[0], headers, body)
            try:
                self._send(answer)
            except ConnectionError:
                # The client has closed early, which is its right.
                self.close_connection = True

        do_GET = do_PUT = do_DELETE = do_POST  # noqa: N815  the names that http.server asks for

        def log_message(self, format: str, *arguments: Any) -> None:
            """Stay quiet."""

        def _send(self, answer: Reply) -> None:
            time.sleep(answer.delay / 1000)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if len(answer.pieces) == 1:
                self.send_header("content-length", str(len(answer.pieces[0])))
                self.end_headers()
                self.wfile.write(answer.pieces[0])
                return
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for number, piece in enumerate(answer.pieces):
                if number:
                    time.sleep(answer.hold / 1000)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")

    return Handler
