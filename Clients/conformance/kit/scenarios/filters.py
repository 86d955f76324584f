"""Conditions on records, which the broker checks."""

from __future__ import annotations

from typing import Any

from ..stage import Stage, scenario

RECORDS: list[Any] = [
    ("0", None, ()),
    ("1", "eu", ()),
    ("2", "europe", [("kind", "new")]),
    ("3", "us", [("kind", "newest"), ("n", "3")]),
    ("4", None, [("kind", "old"), ("kind", "new")]),
    ("5", "", [("n", "")]),
]


@scenario(
    {"name": "has-key", "where": [["hasKey"]], "wanted": "1235"},
    {"name": "key", "where": [["key", "eu"]], "wanted": "1"},
    {"name": "empty-key", "where": [["key", ""]], "wanted": "5"},
    {"name": "key-prefix", "where": [["keyPrefix", "eu"]], "wanted": "12"},
    {"name": "has-header", "where": [["hasHeader", "n"]], "wanted": "35"},
    {"name": "header", "where": [["header", "kind", "new"]], "wanted": "24"},
    {"name": "header-prefix", "where": [["headerPrefix", "kind", "new"]], "wanted": "234"},
    {"name": "two", "where": [["hasKey"], ["headerPrefix", "kind", "new"]], "wanted": "23"},
)
async def where(stage: Stage, where: list[list[str]], wanted: str) -> None:
    """Only records that meet all conditions are sent and use demand."""
    client = await stage.client()
    producer = await client.producer(stage.topic)
    await producer.publish(*RECORDS)
    sub = await client.subscribe(stage.topic, where=where)
    await sub.request(len(wanted) + 1)
    found = await sub.take(len(wanted))
    assert "".join(record.text for record in found) == wanted
    assert "".join(f"{record.offset}" for record in found) == wanted
    await sub.expect("live")
    await producer.publish(*RECORDS)
    assert (await sub.take(1))[0].text == wanted[0]


@scenario()
async def resumed(stage: Stage) -> None:
    """After a lost connection, a subscription with conditions continues without duplicate records."""
    proxy = await stage.proxy()
    client, other = await stage.client(proxy.address), await stage.client()
    producer = await other.producer(stage.topic)
    sub = await client.subscribe(stage.topic, where=[["keyPrefix", "a"]], prefetch=8)
    for part in range(4):
        await producer.publish(*((f"{part}{i}", "ab"[i % 2], ()) for i in range(10)))
        assert await sub.texts(5) == [f"{part}{i}" for i in range(0, 10, 2)]
        proxy.cut()
