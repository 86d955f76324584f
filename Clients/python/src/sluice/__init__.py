"""A client for Sluice, a publish/subscribe broker with exact demand.

>>> import asyncio, sluice
>>> async def main():
...     async with sluice.connect("127.0.0.1") as client:
...         async with client.producer("orders") as producer:
...             await producer.publish(b"order 1", key="eu")
...         async for record in client.topic("orders", from_="earliest"):
...             print(record.offset, record.text)
...             break
>>> asyncio.run(main())
0 order 1

A record is sent only when the program has requested it: each step of a loop requests one, and ``prefetch=`` requests more ahead.
"""

from .client import Client, connect
from .errors import (
    AuthenticationError,
    ClientClosedError,
    ConnectionLostError,
    ErrorCode,
    NoRespondersError,
    ProtocolError,
    PublicationError,
    ReplyError,
    RequestTimeoutError,
    SluiceError,
    SubscriptionError,
    TopicFailed,
)
from .info import BrokerInfo, ConnectionInfo, ConsumerInfo, Problem, Settings, TopicInfo, TopicSummary
from .options import ReconnectPolicy
from .plans import (
    Condition,
    Start,
    has_header,
    has_key,
    header,
    header_prefix,
    key,
    key_prefix,
    last,
    offset,
    since,
)
from .publishing import Producer
from .records import (
    Batch,
    Delivery,
    Event,
    Lag,
    Live,
    Matched,
    Producers,
    Record,
    Restarted,
    Rewound,
    Unmatched,
)
from .requesting import Responder
from .subscriptions import BatchSubscription, EventSubscription, GroupSubscription, Subscription, Topic
from .subscriptions import any_value as json

__version__ = "0.9.0"

__all__ = [
    "AuthenticationError",
    "Batch",
    "BatchSubscription",
    "BrokerInfo",
    "Client",
    "ClientClosedError",
    "Condition",
    "ConnectionInfo",
    "ConnectionLostError",
    "ConsumerInfo",
    "Delivery",
    "ErrorCode",
    "Event",
    "EventSubscription",
    "GroupSubscription",
    "Lag",
    "Live",
    "Matched",
    "NoRespondersError",
    "Problem",
    "Producer",
    "Producers",
    "ProtocolError",
    "PublicationError",
    "ReconnectPolicy",
    "Record",
    "ReplyError",
    "RequestTimeoutError",
    "Responder",
    "Restarted",
    "Rewound",
    "Settings",
    "SluiceError",
    "Start",
    "Subscription",
    "SubscriptionError",
    "Topic",
    "TopicFailed",
    "TopicInfo",
    "TopicSummary",
    "Unmatched",
    "connect",
    "has_header",
    "has_key",
    "header",
    "header_prefix",
    "json",
    "key",
    "key_prefix",
    "last",
    "offset",
    "since",
]
