"""Heads of HTTP requests, bounded: uvicorn's parser gathers one as long as it comes, whoever sends it."""

from __future__ import annotations

from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST_HEAD: Final = 512 * 1024
"""More than is read from a connection at once, so that what came before in the same piece does not count much."""


class BoundedHeads(HttpToolsProtocol):
    """uvicorn's protocol, which refuses a request whose head does not end."""

    _heading = False
    _head = 0

    def data_received(self, data: bytes) -> None:
        """Take what came; once too much of a head did, answer and close."""
        super().data_received(data)
        if self._heading:
            self._head += len(data)
            if self._head > LONGEST_HEAD and not self.transport.is_closing():
                self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        """A head begins."""
        self._heading, self._head = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """It ends."""
        self._heading = False
        super().on_headers_complete()
