"""The broker's reports on topics, cursors, connections and itself, and the settings of topics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypedDict

__all__ = [
    "BrokerInfo",
    "ConnectionInfo",
    "ConsumerInfo",
    "Problem",
    "Settings",
    "TopicInfo",
    "TopicSummary",
]

U64_MAX: Final = 0xFFFF_FFFF_FFFF_FFFF


class Settings(TypedDict, total=False):
    """Settings of a topic. All others have the broker's defaults.

    Durations are in seconds, sizes in bytes; None means no limit.
    """

    replay_records: int | None
    replay_bytes: int | None
    replay_age: float | None
    scope: Literal["forever", "connected"]
    flow: Literal["free", "lossless", "fastest"]
    connect: Literal["immediate", "manual"] | int
    buffer_records: int
    buffer_bytes: int
    without_subscribers: Literal["buffer", "hold", "drop"]
    lag: Literal["skip", "fail"]
    compact: bool
    auto_delete: bool
    storage: Literal["memory", "durable"]
    sync: Literal["always", "os"] | float
    when_producer_lost: float | None


_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "scope": ("forever", "connected"),
    "flow": ("free", "lossless", "fastest"),
    "without_subscribers": ("buffer", "hold", "drop"),
    "lag": ("skip", "fail"),
    "storage": ("memory", "durable"),
}
_KEYS: Final = {
    "replay_records": 1,
    "replay_bytes": 2,
    "replay_age": 3,
    "scope": 4,
    "flow": 5,
    "connect": 6,
    "buffer_records": 7,
    "buffer_bytes": 8,
    "without_subscribers": 9,
    "lag": 10,
    "compact": 11,
    "auto_delete": 12,
    "storage": 13,
    "sync": 14,
    "when_producer_lost": 15,
}
_NAMES: Final = {number: name for name, number in _KEYS.items()}


def encode_settings(settings: Settings | None) -> tuple[tuple[int, int], ...]:
    """Returns the settings as keys and values of the protocol.

    Raises:
        ValueError: a setting doesn't exist, or its value isn't valid.
    """
    pairs = []
    for name, value in (settings or {}).items():
        if name not in _KEYS:
            raise ValueError(f"{name} isn't a setting of a topic; there are {', '.join(_KEYS)}")
        pairs.append((_KEYS[name], _encode_setting(name, value)))
    return tuple(pairs)


def _encode_setting(name: str, value: Any) -> int:
    if name in _WORDS:
        if value not in _WORDS[name]:
            raise ValueError(f"{name}={value!r} isn't one of {', '.join(_WORDS[name])}")
        return _WORDS[name].index(value)
    if name in ("connect", "sync") and isinstance(value, str) and value not in ("immediate", "manual", "always", "os"):
        raise ValueError(f"{name}={value!r} isn't a value of this setting")
    if name == "connect":
        return {"immediate": 0, "manual": U64_MAX}[value] if isinstance(value, str) else int(value)
    if name == "sync":
        return {"always": 0, "os": U64_MAX}[value] if isinstance(value, str) else int(value * 1000)
    if name == "when_producer_lost":
        return 0 if value is None else int(value * 1000)
    if value is None:
        return U64_MAX
    return int(value * 1000) if name == "replay_age" else int(value)


def decode_settings(pairs: list[dict[str, Any]]) -> Settings:
    """Returns the settings of a TOPIC_INFO. Settings that this version doesn't know are left out."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name = _NAMES.get(pair["key"])
        if name is not None:
            settings[name] = _decode_setting(name, pair["value"])
    return settings  # type: ignore[return-value]


def _decode_setting(name: str, value: int) -> Any:
    if name in _WORDS:
        words = _WORDS[name]
        return words[value] if value < len(words) else str(value)
    if name in ("compact", "auto_delete"):
        return bool(value)
    if name == "connect":
        return {0: "immediate", U64_MAX: "manual"}.get(value, value)
    if name == "sync":
        return {0: "always", U64_MAX: "os"}.get(value, value / 1000)
    if name == "when_producer_lost":
        return value / 1000 if value else None
    if value == U64_MAX:
        return None
    return value / 1000 if name == "replay_age" else value


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic in a list."""

    name: str
    epoch: int
    #: The lowest offset that can be delivered.
    floor: int
    #: The offset of the next record.
    head: int
    records: int
    bytes: int
    state: Literal["open", "completed", "failed"]
    failure: tuple[int, str] | None
    subscriptions: int
    publications: int
    is_durable: bool


@dataclass(frozen=True, slots=True)
class ConsumerInfo:
    """A durable cursor or a consumer group of a topic."""

    name: str
    kind: Literal["cursor", "group"]
    next_offset: int
    #: Records that aren't delivered yet.
    lag: int
    members: int
    #: Deliveries that members haven't settled.
    unacknowledged: int
    redeliveries: int
    dead_letters: int
    #: Seconds for which no client has used it; 0 while it is in use.
    idle: float
    #: Records of a group that wait for the time of their retry.
    delayed: int
    #: Seconds until the first of them is delivered again; 0 without any.
    next_retry: float


@dataclass(frozen=True, slots=True)
class TopicInfo(TopicSummary):
    """A topic with its settings, subscriptions and publications."""

    settings: Settings
    #: The broker's values about subscriptions, publications and the rest, by the names of the protocol's page.
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """A client's connection, from the view of the broker."""

    id: int
    client: str
    identity: str
    peer: str
    security: str
    #: Seconds since it was accepted.
    age: float
    subscriptions: int
    publications: int
    received_bytes: int
    sent_bytes: int


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that the broker has found and an operator should look at."""

    severity: Literal["critical", "warning"]
    kind: str
    sentence: str
    topic: str | None
    #: When it began, in milliseconds since 1970-01-01 UTC.
    since: int


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """The broker's state."""

    #: Seconds since the broker has started.
    uptime: float
    #: The broker's clock, in milliseconds since 1970-01-01 UTC.
    time: int
    problems: list[Problem]
    #: Counters and gauges by the names of the broker's metrics.
    numbers: dict[str, int]


_STATES: Final = ("open", "completed", "failed")


def _summary_fields(values: dict[str, Any]) -> dict[str, Any]:
    state = values["state"]
    return {
        "name": values["topic"],
        "epoch": values["epoch"],
        "floor": values["first offset"],
        "head": values["next offset"],
        "records": values["records"],
        "bytes": values["bytes"],
        "state": _STATES[state],
        "failure": (values["code"], values["message"]) if state == 2 else None,
        "subscriptions": values["subscriptions"],
        "publications": values["publications"],
        "is_durable": values["storage"] == 1,
    }


def topic_summary(values: dict[str, Any]) -> TopicSummary:
    return TopicSummary(**_summary_fields(values))


def topic_info(values: dict[str, Any]) -> TopicInfo:
    details = {key: value for key, value in values.items() if key not in ("summary", "settings")}
    return TopicInfo(**_summary_fields(values["summary"]), settings=decode_settings(values["settings"]), details=details)


def consumer_info(values: dict[str, Any]) -> ConsumerInfo:
    """Returns an element of CURSORS."""
    return ConsumerInfo(
        name=values["name"],
        kind="group" if values["kind"] else "cursor",
        next_offset=values["next offset"],
        lag=max(0, values["end"] - values["next offset"]),
        members=values["members"],
        unacknowledged=values["outstanding"],
        redeliveries=values["redeliveries"],
        dead_letters=values["dead letters"],
        idle=values["idle"] / 1000,
        delayed=values["delayed"],
        next_retry=values["next retry"] / 1000,
    )


def connection_info(values: dict[str, Any]) -> ConnectionInfo:
    return ConnectionInfo(
        id=values["connection"],
        client=values["client"],
        identity=values["identity"],
        peer=values["peer"],
        security=values["security"],
        age=values["age"] / 1000,
        subscriptions=values["subscriptions"],
        publications=values["publications"],
        received_bytes=values["received"],
        sent_bytes=values["sent"],
    )


def broker_info(values: dict[str, Any]) -> BrokerInfo:
    problems = [
        Problem(
            severity="warning" if problem["severity"] else "critical",
            kind=problem["kind"],
            sentence=problem["sentence"],
            topic=problem["topic"] or None,
            since=problem["since"],
        )
        for problem in values["problems"]
    ]
    numbers = {number["name"]: number["value"] for number in values["numbers"]}
    return BrokerInfo(uptime=values["uptime"] / 1000, time=values["time"], problems=problems, numbers=numbers)
