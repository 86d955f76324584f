"""TLS, credentials, and redirections."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from scripted import Peer, ScriptedBroker

import sluice
from sluice.errors import ErrorCode
from sluice.options import Server
from sluice.testing import Broker


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    subprocess.run([ROOT / "scripts/certs.sh", folder], check=True, capture_output=True)
    return folder


async def test_tls_verifies_the_broker(program: str, certificates: Path) -> None:
    options = ["--tls-cert", str(certificates / "server.pem"), "--tls-key", str(certificates / "server.key")]
    with Broker(*options, program=program, tls=True) as broker:
        async with sluice.connect(broker.address, ca_file=str(certificates / "authority.pem")) as client:
            assert (await client.create_topic("t")).name == "t"
        with pytest.raises(sluice.SluiceError, match="certificate"):
            await sluice.connect(broker.address, tls=True)
        context = ssl.create_default_context(cafile=str(certificates / "authority.pem"))
        context.set_alpn_protocols(["sluice/1"])
        async with sluice.connect(broker.address, tls=context) as client:
            assert client.is_connected


async def test_a_client_proves_itself_by_a_certificate(program: str, certificates: Path) -> None:
    paths = {name: str(certificates / name) for name in ("server.pem", "server.key", "client.pem", "client.key", "authority.pem")}
    options = [
        "--tls-cert", paths["server.pem"], "--tls-key", paths["server.key"], "--tls-client-ca", paths["authority.pem"],
        "--tls-client-certs", "required", "--auth", "on",
    ]  # fmt: skip
    with Broker(*options, program=program, tls=True) as broker:
        known = {"certificate": paths["client.pem"], "certificate_key": paths["client.key"], "ca_file": paths["authority.pem"]}
        async with sluice.connect(broker.address, **known) as client:
            assert client.identity == "client"
        with pytest.raises(sluice.ConnectionLostError):
            await sluice.connect(broker.address, ca_file=paths["authority.pem"])


@pytest.mark.parametrize("credentials", [{"user": "ann", "password": "secret"}, {"token": "secret"}])
async def test_secrets_are_not_sent_in_the_open(credentials: dict[str, str]) -> None:
    for server in ("192.0.2.1", "[2001:db8::1]:7420", "broker.example"):
        with pytest.raises(sluice.SluiceError, match="isn't encrypted") as caught:
            await sluice.connect(server, **credentials)
        assert not caught.value.retry
    with pytest.raises(sluice.ConnectionLostError):
        await sluice.connect("192.0.2.1", allow_plaintext_credentials=True, connect_timeout=0.1, **credentials)


@pytest.mark.parametrize(
    ("host", "is_here"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("::ffff:127.0.0.1", True), ("localhost", True),
     ("10.0.0.1", False), ("0.0.0.0", False), ("127.evil.org", False), ("::ffff:10.0.0.1", False)],
)  # fmt: skip
def test_what_stays_on_the_machine(host: str, is_here: bool) -> None:
    assert Server(host, 7420).is_on_this_machine == is_here


async def test_refused_credentials_are_an_error_of_their_own() -> None:
    async def refuse(peer: Peer) -> None:
        hello = (await peer.expect("HELLO"))[1]
        assert (hello["method"], hello["user"], hello["secret"]) == (1, "ann", "wrong")
        peer.send("ERROR", 0, code=ErrorCode.AUTHENTICATION_FAILED, message="wrong user or password")

    async with ScriptedBroker(refuse) as broker:
        with pytest.raises(sluice.AuthenticationError, match="wrong user") as caught:
            await sluice.connect(broker.address, user="ann", password="wrong")
        assert not caught.value.retry


async def test_a_token_is_renewed_before_it_expires() -> None:
    renewed = asyncio.Event()
    tokens = iter(["first", "second"])

    async def token() -> str:
        return next(tokens)

    async def script(peer: Peer) -> None:
        import time

        from sluice import _layout as layout

        hello = (await peer.expect("HELLO"))[1]
        assert (hello["method"], hello["secret"]) == (2, "first")
        peer.send(
            "WELCOME", 0, version=1, longest_frame=1 << 20, longest_record=1 << 18, streams=8, broker=1,
            expires=int(time.time() * 1000) + 500,
        )  # fmt: skip
        stream, values = await peer.expect("AUTHENTICATE")
        assert values["secret"] == "second"
        peer.send("AUTHENTICATED", stream, identity="ann", expires=layout.U64_MAX)
        renewed.set()

    async with ScriptedBroker(script) as broker, sluice.connect(broker.address, token=token):
        await renewed.wait()


async def test_a_redirected_subscription_is_opened_at_the_topics_node() -> None:
    async def node(peer: Peer) -> None:
        await peer.welcome()
        stream, frame = await peer.subscribed()
        assert frame["topic"] == "t"
        peer.send("COMPLETE", stream, kind=0)

    async with ScriptedBroker(node) as other:

        async def home(peer: Peer) -> None:
            hello = await peer.welcome()
            assert hello["features"] == 1
            stream, _ = await peer.expect("SUBSCRIBE")
            peer.send("REDIRECT", stream, node="b", address=other.address)

        async with ScriptedBroker(home) as broker, sluice.connect(broker.address) as client:
            assert [record async for record in client.topic("t")] == []


async def test_a_node_that_cannot_be_reached_is_relayed_by_the_clients_broker() -> None:
    async def home(peer: Peer) -> None:
        await peer.welcome()
        stream, _ = await peer.expect("SUBSCRIBE")
        peer.send("REDIRECT", stream, node="b", address="127.0.0.1:1")
        flags = await relayed(peer)
        assert flags == 0x10

    async def relayed(peer: Peer) -> int:
        header = await peer.reader.readexactly(12)
        length, flags, stream = int.from_bytes(header[:4], "little"), header[5], int.from_bytes(header[8:], "little")
        while header[4] != 0x10:
            await peer.reader.readexactly(length)
            header = await peer.reader.readexactly(12)
            length, flags, stream = int.from_bytes(header[:4], "little"), header[5], int.from_bytes(header[8:], "little")
        await peer.reader.readexactly(length)
        peer.send("SUBSCRIBED", stream, epoch=1)
        peer.send("COMPLETE", stream, kind=0)
        return flags

    async with ScriptedBroker(home) as broker, sluice.connect(broker.address) as client:
        assert [record async for record in client.topic("t")] == []


async def test_a_topic_that_moves_is_opened_again_on_the_same_connection() -> None:
    async def script(peer: Peer) -> None:
        await peer.welcome()
        for _ in range(3):
            stream, _ = await peer.expect("SUBSCRIBE")
            peer.send("ERROR", stream, code=ErrorCode.TOPIC_MOVED, message="the topic moves")
            while True:
                name, _, _ = await peer.read()
                if name == "SUBSCRIBE":
                    peer.send("SUBSCRIBED", stream, epoch=1)
                    peer.send("COMPLETE", stream, kind=0)
                    return

    async with ScriptedBroker(script) as broker, sluice.connect(broker.address) as client:
        assert [record async for record in client.topic("t")] == []
