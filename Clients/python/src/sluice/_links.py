"""Connections that reconnect when they are lost, and the streams that are opened on each of them."""

from __future__ import annotations

import asyncio
import inspect
import random
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from . import _layout as layout
from ._connection import ERROR, Connection, Hello, Quiet, Welcome
from .errors import (
    REFUSED_CREDENTIALS,
    ClientClosedError,
    ConnectionLostError,
    ErrorCode,
    SluiceError,
)
from .options import Options, ReconnectPolicy, Server, parse_server

if TYPE_CHECKING:
    from ._attachment import Attachment

#: How long the client's broker relays a topic whose node the client could not reach, in seconds.
_RELAY_SECONDS: Final = 60.0
_AUTHENTICATED: Final = 0x08


class Link:
    """The client's connection to its broker, or to another node of the cluster.

    Attachments are opened on the connection while they belong to the link, and again on each later connection.
    """

    def __init__(self, options: Options, servers: tuple[Server, ...], *, home: Link | None = None) -> None:
        self._options = options
        self._servers = servers
        #: The link to the client's own broker; None for that link itself.
        self._home = home
        self._loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._attachments: dict[Attachment, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._server = 0
        self._closed: SluiceError | None = None
        self._nodes: dict[str, Link] = {}
        self._unreachable: dict[str, float] = {}
        self._renewal: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None

    @property
    def welcome(self) -> Welcome | None:
        connection = self._connection
        return connection.welcome if connection else None

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    # Connecting

    async def connect(self) -> None:
        """Makes the first connection: tries each server once.

        Raises:
            SluiceError: no server accepted the client; the error is the last one's.
        """
        error: SluiceError = ConnectionLostError("no server was named")
        for _ in self._servers:
            try:
                self._use(await self._dial())
                return
            except SluiceError as failure:
                error = failure
                self._server = (self._server + 1) % len(self._servers)
        raise error

    async def _dial(self) -> Connection:
        options = self._options
        server = self._servers[self._server]
        has_credentials = options.user is not None or options.token is not None
        if has_credentials and options.tls is None and not server.is_on_this_machine and not options.allow_plaintext_credentials:
            raise SluiceError(
                f"the client's credentials weren't sent to {server}, since the connection isn't encrypted;"
                " use tls=True, or allow it by allow_plaintext_credentials=True"
            )
        return await Connection.open(
            server.host,
            server.port,
            await self._hello(),
            self._lost,
            tls=options.tls,
            server_hostname=options.server_hostname if self._home is None else None,
            timeout=options.connect_timeout,
        )

    async def _hello(self) -> Hello:
        options = self._options
        hello = Hello(options.name, keepalive=int(options.keepalive * 1000))
        if options.token is not None:
            return replace(hello, method=2, secret=await _token(options))
        if options.user is not None:
            return replace(hello, method=1, user=options.user, secret=options.password or "")
        return hello

    def _use(self, connection: Connection) -> None:
        if connection.is_closed:
            raise ConnectionLostError("the connection was lost right after the handshake")
        self._connection = connection
        self._schedule_renewal()
        for attachment in list(self._attachments):
            attachment.open_on(connection)

    def _lost(self, connection: Connection, error: SluiceError) -> None:
        if self._connection is not connection:
            return
        self._connection = None
        if self._renewal is not None:
            self._renewal.cancel()
        if self._closed is not None:
            return
        if self._home is not None:
            self._give_back()
        elif self._options.reconnect is None or error.code == ErrorCode.ACCESS_REVOKED:
            self.shut(error)
        else:
            self._task = self._loop.create_task(self._reconnect(self._options.reconnect))

    async def _reconnect(self, policy: ReconnectPolicy) -> None:
        begin = self._loop.time()
        delay = policy.initial_delay
        attempts = refusals = 0
        error: SluiceError = ConnectionLostError("the connection was lost")
        self._server = (self._server + 1) % len(self._servers)
        while True:
            pause = delay * (1 - policy.jitter * random.random())
            delay = min(delay * policy.multiplier, policy.maximum_delay)
            if policy.give_up_after is not None:
                pause = max(0.0, min(pause, begin + policy.give_up_after - self._loop.time()))
            await asyncio.sleep(pause)
            was_refused = False
            for _ in self._servers:
                attempts += 1
                try:
                    self._use(await self._dial())
                    return None
                except SluiceError as failure:
                    error = failure
                    was_refused |= failure.code in REFUSED_CREDENTIALS
                self._server = (self._server + 1) % len(self._servers)
                if policy.attempts is not None and attempts >= policy.attempts:
                    return self.shut(error)
            refusals = refusals + 1 if was_refused else 0
            is_late = policy.give_up_after is not None and self._loop.time() - begin >= policy.give_up_after
            if refusals >= policy.refusals or is_late:
                return self.shut(error)

    # Attachments

    def add(self, attachment: Attachment) -> None:
        """Opens an attachment, now or when there is a connection.

        Raises:
            SluiceError: the link is closed.
        """
        if self._closed is not None:
            raise self._closed
        self._attachments[attachment] = None
        attachment.link = self
        connection = self._connection
        if connection is not None and not connection.is_leaving:
            attachment.open_on(connection)

    def remove(self, attachment: Attachment) -> None:
        self._attachments.pop(attachment, None)

    @property
    def attachments(self) -> list[Attachment]:
        return list(self._attachments)

    # Other nodes

    def redirect(self, attachment: Attachment, address: str) -> None:
        """Opens an attachment at the node that serves its topic, or requests a relay from the client's broker."""
        home = self._home or self
        self.remove(attachment)
        if not self._options.direct or home.is_unreachable(address):
            attachment.relay = True
            home.reopen(attachment)
            return
        link = home._nodes.get(address)
        if link is None:
            try:
                server = parse_server(address)
            except ValueError:
                attachment.relay = True
                home.reopen(attachment)
                return
            link = home._nodes[address] = Link(self._options, (server,), home=home)
            link._task = self._loop.create_task(link._reach(address))
        link.add(attachment)

    async def _reach(self, address: str) -> None:
        assert self._home is not None
        try:
            await self.connect()
        except SluiceError:
            self._home._unreachable[address] = self._loop.time() + _RELAY_SECONDS
            for attachment in self.attachments:
                attachment.relay = True
            self._give_back()

    def is_unreachable(self, address: str) -> bool:
        until = self._unreachable.get(address)
        return until is not None and self._loop.time() < until

    def _give_back(self) -> None:
        """Called when the node can't be reached: opens its streams at the client's broker again."""
        home = self._home
        assert home is not None
        for address, link in list(home._nodes.items()):
            if link is self:
                del home._nodes[address]
        attachments, self._attachments = self.attachments, {}
        self._closed = ConnectionLostError("the connection to a node of the cluster was lost")
        for attachment in attachments:
            home.reopen(attachment)

    def reopen(self, attachment: Attachment) -> None:
        """Opens an attachment again at this link, after the pause that it requests."""
        if self._closed is not None:
            attachment.end(self._closed)
            return
        self._attachments[attachment] = None
        attachment.link = self
        attachment.pause_then_open()

    def open(self, attachment: Attachment) -> None:
        """Opens an attachment after its pause, if it still belongs to this link."""
        connection = self._connection
        if attachment in self._attachments and connection is not None and not connection.is_leaving:
            attachment.open_on(connection)

    # Credentials

    def _schedule_renewal(self) -> None:
        welcome = self.welcome
        if welcome is not None and welcome.expires is not None and callable(self._options.token):
            self._renew_before(welcome.expires)

    def _renew_before(self, expires: int) -> None:
        left = expires / 1000 - time.time()
        # After four fifths of the remaining time, and in any case before the last seconds.
        self._renewal = self._loop.call_later(max(left * 0.8, 0.1), self._renew)

    def _renew(self) -> None:
        self._renewing = self._loop.create_task(self._send_credentials())

    async def _send_credentials(self) -> None:
        connection = self._connection
        if connection is None:
            return
        try:
            secret = await _token(self._options)
        except Exception:
            self.renewal_failed()
            return
        if self._connection is connection:
            renewal = _Renewal(self)
            number = connection.begin(renewal)
            connection.send(layout.encode("AUTHENTICATE", number, method=2, secret=secret))

    def renewed(self, expires: int) -> None:
        if expires != layout.U64_MAX:
            self._renew_before(expires)

    def renewal_failed(self) -> None:
        self._renewal = self._loop.call_later(1.0, self._renew)

    # Ending

    def shut(self, error: SluiceError) -> None:
        """Ends the link and all its streams with an error. Further attachments get the same error."""
        if self._closed is None:
            self._closed = error
        if self._renewal is not None:
            self._renewal.cancel()
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        for link in list(self._nodes.values()):
            link.shut(error)
        attachments, self._attachments = self.attachments, {}
        for attachment in attachments:
            attachment.end(error)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @property
    def closed(self) -> SluiceError | None:
        return self._closed


class _Renewal(Quiet):
    """The request that renews the credentials of a connection."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def frame(self, number: int, values: dict[str, Any]) -> bool:
        if number == _AUTHENTICATED:
            self._link.renewed(values["expires"])
        elif number == ERROR:
            self._link.renewal_failed()
        return True


async def _token(options: Options) -> str:
    token = options.token
    if callable(token):
        value = token()
        return await value if inspect.isawaitable(value) else value
    return token or ""


def closed_error() -> ClientClosedError:
    """Returns the error of calls on a closed client."""
    return ClientClosedError("the client is closed", retry=False)
