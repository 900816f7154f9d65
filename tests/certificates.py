"""Certificates for tests, made by the machine's openssl: an authority, and what it signs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from spanreel_collector.access import Tls


def make_tls(folder: Path) -> tuple[Tls, Path, tuple[Path, Path]]:
    """A server's files, with which it asks callers for certificates; the authority's, and a caller's with its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.fail("openssl is not installed, which makes the certificates of this test")

    def run(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], cwd=folder, check=True, capture_output=True)

    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    run(*new, "-x509", "-days", "2", "-subj", "/CN=tests", "-keyout", "ca.key", "-out", "ca.pem")
    for name in ("server", "caller"):
        run(*new, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        (folder / "ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n", encoding="ascii")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "ext", "-days", "2")
        run("x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem")
    tls = Tls(str(folder / "server.pem"), str(folder / "server.key"), str(folder / "ca.pem"))
    return tls, folder / "ca.pem", (folder / "caller.pem", folder / "caller.key")
