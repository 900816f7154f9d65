"""The HTTP clients where exchanges are caught: one module each, a table of `ClientPoint`s at its end."""

from spanreel.clients.aiohttp import AIOHTTP
from spanreel.clients.botocore import BOTOCORE
from spanreel.clients.httpx import HTTPX, HTTPX2
from spanreel.clients.lm15 import LM15
from spanreel.clients.requests import REQUESTS
from spanreel.exchange import ClientPoint

CLIENTS: tuple[ClientPoint, ...] = (*HTTPX, *HTTPX2, *AIOHTTP, *BOTOCORE, *REQUESTS, *LM15)
