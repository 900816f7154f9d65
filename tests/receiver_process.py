"""A receiver of our own in a process by itself, to be killed and measured: ``python receiver_process.py STORE_URL``.

Prints its ports of HTTP and gRPC when it listens; ends cleanly on SIGTERM.
"""

from __future__ import annotations

import socket
import sys

import uvicorn

from spanreel_collector.access import Access
from spanreel_collector.receiver.committing import Committer
from spanreel_collector.receiver.grpc import start_grpc
from spanreel_collector.receiver.http import receiver_app
from spanreel_collector.receiver.receiving import Receiver
from spanreel_collector.stores.opening import open_store


def main(url: str) -> None:
    store = open_store(url)
    committer = Committer(store.append).start()
    receiver, access = Receiver(committer), Access()
    listening = socket.create_server(("127.0.0.1", 0))
    server = start_grpc(receiver, access, ("127.0.0.1", 0))
    print(listening.getsockname()[1], server.port, flush=True)
    uvicorn.Server(uvicorn.Config(receiver_app(receiver, access), log_level="warning", lifespan="off")).run([listening])
    server.stop(5)
    committer.close()
    store.close()


if __name__ == "__main__":
    main(sys.argv[1])
