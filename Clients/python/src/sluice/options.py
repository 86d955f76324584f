"""Options of a client: where to connect, as which user, and what happens after a lost connection."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Options", "ReconnectPolicy", "Server", "TokenSource", "parse_server"]

#: A token, or a function that returns one, called for each connection and before a token expires.
TokenSource: TypeAlias = "str | Callable[[], str | Awaitable[str]]"

DEFAULT_PORT = 7420


@dataclass(frozen=True, slots=True)
class ReconnectPolicy:
    """Whether and how a client connects again after its connection is lost. Times are in seconds.

    The client waits, then tries its servers in turn. When none answers it waits longer: ``initial_delay``, ``multiplier`` times
    that, up to ``maximum_delay``. A random part of each delay, up to ``jitter`` of it, is left out.
    """

    initial_delay: float = 0.1
    multiplier: float = 2.0
    maximum_delay: float = 10.0
    jitter: float = 0.5
    #: Seconds after the loss when the client gives up; None for never.
    give_up_after: float | None = None
    #: The most attempts after a loss, each server counted; None for no limit.
    attempts: int | None = None
    #: Rounds in which the credentials may be refused after a loss, before the client gives up.
    refusals: int = 3


@dataclass(frozen=True, slots=True)
class Server:
    """The address of a broker."""

    host: str
    port: int

    @property
    def is_on_this_machine(self) -> bool:
        """Whether bytes for it don't leave the machine."""
        if self.host == "localhost":
            return True
        try:
            address = ipaddress.ip_address(self.host)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return (mapped or address).is_loopback

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_server(text: str) -> Server:
    """Parses ``HOST``, ``HOST:PORT`` or ``[IPv6]:PORT``.

    Raises:
        ValueError: the text isn't such an address.
    """
    host, port = text, ""
    if text.startswith("["):
        host, separator, rest = text[1:].partition("]")
        if not separator or (rest and not rest.startswith(":")):
            raise ValueError(f"{text!r} isn't an address; write HOST:PORT or [IPv6]:PORT")
        port = rest[1:]
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    if not host or (port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536)):
        raise ValueError(f"{text!r} isn't an address; write HOST:PORT or [IPv6]:PORT")
    return Server(host, int(port) if port else DEFAULT_PORT)


@dataclass(frozen=True, slots=True)
class Options:
    """Everything that :func:`sluice.connect` was given."""

    servers: tuple[Server, ...]
    name: str = ""
    user: str | None = None
    password: str | None = None
    token: TokenSource | None = None
    tls: ssl.SSLContext | None = None
    allow_plaintext_credentials: bool = False
    server_hostname: str | None = None
    reconnect: ReconnectPolicy | None = ReconnectPolicy()
    connect_timeout: float = 10.0
    keepalive: float = 0.0
    direct: bool = True
    close_timeout: float = 5.0


def tls_context(
    tls: bool | ssl.SSLContext,
    ca_file: str | None,
    certificate: str | None,
    key: str | None,
) -> ssl.SSLContext | None:
    """Returns the context for ``tls=`` and the files; None without TLS. The certificate of the broker is always verified."""
    if isinstance(tls, ssl.SSLContext):
        return tls
    if not (tls or ca_file or certificate):
        return None
    context = ssl.create_default_context(cafile=ca_file)
    if certificate:
        context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["sluice/1"])
    return context
