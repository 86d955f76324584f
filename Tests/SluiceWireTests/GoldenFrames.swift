import SluiceWire
import TestSupport

/// A frame as a value and as the bytes of its body, written by hand from the specification.
struct GoldenFrame: Sendable, CustomStringConvertible {
  let name: String
  let type: UInt8
  let body: [UInt8]
  let frame: any Frame

  init(_ name: String, _ type: UInt8, _ frame: any Frame, _ body: String) {
    self.name = name
    self.type = type
    self.frame = frame
    self.body = [UInt8](hex: body)
  }

  var description: String { name }

  /// The whole frame on this stream.
  func bytes(stream: UInt8) -> [UInt8] {
    let length = body.count
    return [UInt8(length & 0xFF), UInt8(length >> 8), 0, 0, type, 0, 0, 0, stream, 0, 0, 0] + body
  }
}

/// Every type of frame, with ordinary and extreme values. White space separates fields.
let goldenFrames: [GoldenFrame] = [
  GoldenFrame(
    "HELLO", 0x01,
    Hello(
      versions: 1...2, features: 0x8000_0000_0000_0001, maximumFrame: 0x0010_0000, keepalive: 30_000,
      name: "probe"),
    "534c4345 0100 0200 0100000000000080 00001000 30750000 0500 70726f6265 00 0000 0000"),
  GoldenFrame(
    "HELLO without a name", 0x01, Hello(maximumFrame: .max, keepalive: 0, name: ""),
    "534c4345 0100 0100 0000000000000000 ffffffff 00000000 0000 00 0000 0000"),
  GoldenFrame(
    "HELLO with a password", 0x01,
    Hello(maximumFrame: .max, keepalive: 0, name: "", credentials: .password("é", user: "bo")),
    "534c4345 0100 0100 0000000000000000 ffffffff 00000000 0000 01 0200 626f 0200 c3a9"),
  GoldenFrame(
    "WELCOME", 0x02,
    Welcome(
      version: 1, features: 1, maximumFrame: 0x0020_0000, maximumRecord: 0x0010_0000, maximumStreams: 8192,
      keepalive: 5000, broker: 0x0102_0304_0506_0708, software: "sluiced é"),
    """
    534c4345 0100 0000 0100000000000000 00002000 00001000 00200000 88130000 0807060504030201
    0a00 736c7569636564 20 c3a9 0000 ffffffffffffffff
    """),
  GoldenFrame(
    "WELCOME with an identity", 0x02,
    Welcome(
      maximumFrame: 1, maximumRecord: 1, maximumStreams: 1, keepalive: 0, broker: 0, software: "",
      identity: "bo", expires: 0x0102),
    """
    534c4345 0100 0000 0000000000000000 01000000 01000000 01000000 00000000 0000000000000000
    0000 0200 626f 0201000000000000
    """),
  GoldenFrame("PING", 0x03, Ping(token: 0x1122_3344_5566_7788), "8877665544332211"),
  GoldenFrame("PONG", 0x04, Pong(token: .max), "ffffffffffffffff"),
  GoldenFrame("GOAWAY", 0x05, GoAway(code: .shuttingDown, message: "bye"), "08000000 0300 627965"),
  GoldenFrame("ERROR", 0x06, Fault(code: .unknownTopic, message: "no"), "66000000 0200 6e6f"),
  GoldenFrame(
    "ERROR of an unknown code", 0x06, Fault(code: ErrorCode(rawValue: .max), message: ""), "ffffffff 0000"),

  GoldenFrame("AUTHENTICATE", 0x07, Authenticate(.token("a.b")), "02 0000 0300 612e62"),
  GoldenFrame("AUTHENTICATE of a node", 0x07, Authenticate(.node(onBehalfOf: "u")), "03 0100 75 0000"),
  GoldenFrame(
    "AUTHENTICATE with a password", 0x07, Authenticate(.password("p", user: "u")), "01 0100 75 0100 70"),
  GoldenFrame("AUTHENTICATE with nothing", 0x07, Authenticate(.none), "00 0000 0000"),
  GoldenFrame(
    "AUTHENTICATED", 0x08, Authenticated(identity: "bo", expires: 0x0102), "0200 626f 0201000000000000"),
  GoldenFrame(
    "AUTHENTICATED for ever", 0x08, Authenticated(identity: ""), "0000 ffffffffffffffff"),

  GoldenFrame(
    "SUBSCRIBE from replay", 0x10, Subscribe(topic: "a.b", grantedThrough: 0),
    """
    0300 612e62 00 00 0000 0000000000000000 0000000000000000 0000000000000000 0000
    04000000 00000000 00000000
    """),
  GoldenFrame(
    "SUBSCRIBE from the earliest", 0x10,
    Subscribe(topic: "a", start: .earliest, lag: .fail, grantedThrough: 7),
    "0100 61 01 01 0000 0000000000000000 0000000000000000 0700000000000000 0000 04000000 00000000 00000000"),
  GoldenFrame(
    "SUBSCRIBE to the new", 0x10, Subscribe(topic: "a", start: .new, grantedThrough: .max),
    "0100 61 02 00 0000 0000000000000000 0000000000000000 ffffffffffffffff 0000 04000000 00000000 00000000"),
  GoldenFrame(
    "SUBSCRIBE from the last", 0x10, Subscribe(topic: "a", start: .last(258), grantedThrough: 1),
    "0100 61 03 00 0000 0201000000000000 0000000000000000 0100000000000000 0000 04000000 00000000 00000000"),
  GoldenFrame(
    "SUBSCRIBE from an offset", 0x10,
    Subscribe(topic: "a", start: .offset(.max - 1), epoch: 0x0A0B_0C0D_0E0F_1011, grantedThrough: 1),
    "0100 61 04 00 0000 feffffffffffffff 11100f0e0d0c0b0a 0100000000000000 0000 04000000 00000000 00000000"),
  GoldenFrame(
    "SUBSCRIBE to a topic that must exist", 0x10, Subscribe(topic: "a", ifMissing: .fail, grantedThrough: 1),
    "0100 61 00 00 01 00 0000000000000000 0000000000000000 0100000000000000 0000 04000000 00000000 00000000"),
  GoldenFrame(
    "SUBSCRIBE from a time before 1970", 0x10, Subscribe(topic: "a", start: .time(-2), grantedThrough: 1),
    "0100 61 05 00 0000 feffffffffffffff 0000000000000000 0100000000000000 0000 04000000 00000000 00000000"),
  GoldenFrame(
    "SUBSCRIBED", 0x11, Subscribed(epoch: 1, nextOffset: 2, liveOffset: 0x0300),
    "0100000000000000 0200000000000000 0003000000000000 00 000000"),
  GoldenFrame(
    "SUBSCRIBED with gaps", 0x11, Subscribed(epoch: 1, nextOffset: 2, liveOffset: 3, gaps: true),
    "0100000000000000 0200000000000000 0300000000000000 01 000000"),
  GoldenFrame(
    "SUBSCRIBED in a life that continues another", 0x11,
    Subscribed(epoch: 2, nextOffset: 2, liveOffset: 3, continues: true),
    "0200000000000000 0200000000000000 0300000000000000 00 01 0000"),
  GoldenFrame(
    "SUBSCRIBE with a cursor", 0x10, Subscribe(topic: "a", grantedThrough: 1, cursor: "bill"),
    """
    0100 61 00 00 0000 0000000000000000 0000000000000000 0100000000000000 0400 62696c6c
    04000000 00000000 00000000
    """),
  GoldenFrame(
    "SUBSCRIBE with a filter", 0x10,
    Subscribe(
      topic: "a", grantedThrough: 1,
      filter: RecordFilter([
        .init(.key, .exists), .init(.key, .hasPrefix([0x65, 0x75])), .init(.header("h"), .equals([])),
        .init(.header("hé"), .exists),
      ])),
    """
    0100 61 00 00 0000 0000000000000000 0000000000000000 0100000000000000 0000
    32000000 04000000 06000000 00 00 0000 0000 08000000 00 02 0000 0200 6575 07000000 01 01 0100 68 0000
    09000000 01 00 0300 68c3a9 0000 00000000
    """),
  GoldenFrame(
    "SUBSCRIBE_PATTERN", 0x19, SubscribePattern(pattern: "a.>", grantedThrough: 7),
    "0300 612e3e 00 00 00 00 0000000000000000 0700000000000000 04000000 00000000 00000000"),
  GoldenFrame(
    "SUBSCRIBE_PATTERN with positions", 0x19,
    SubscribePattern(
      pattern: "*", start: .last(3), lag: nil, grantedThrough: 1,
      filter: RecordFilter([.init(.key, .exists)]),
      positions: [
        TopicPosition(topic: "a", epoch: 1, nextOffset: 2),
        TopicPosition(topic: "b", epoch: 3, nextOffset: 4),
      ], more: true),
    """
    0100 2a 03 02 01 00 0300000000000000 0100000000000000 0e000000 01000000 06000000 00 00 0000 0000
    02000000 13000000 0100 61 0100000000000000 0200000000000000 13000000 0100 62 0300000000000000 0400000000000000
    """),
  GoldenFrame(
    "POSITIONS", 0x1A, Positions([TopicPosition(topic: "a", epoch: 1, nextOffset: 2)], more: false),
    "00 01000000 13000000 0100 61 0100000000000000 0200000000000000"),
  GoldenFrame("POSITIONS, none and more", 0x1A, Positions([], more: true), "01 00000000"),
  GoldenFrame(
    "MATCHED", 0x1B,
    Matched(number: 5, topic: "a.b", place: Subscribed(epoch: 1, nextOffset: 2, liveOffset: 3, gaps: true)),
    "05000000 0300 612e62 0100000000000000 0200000000000000 0300000000000000 01 000000"),
  GoldenFrame("UNMATCHED", 0x1C, Unmatched(number: .max), "ffffffff"),
  GoldenFrame("SELECT_TOPIC", 0x1D, SelectTopic(number: 0x0102), "02010000"),
  GoldenFrame(
    "LEND", 0x64, Lend(grantedThrough: 0x0102, pacedThrough: .max, recalls: true),
    "0201000000000000 ffffffffffffffff 01 00000000000000"),
  GoldenFrame(
    "OFFER", 0x65, Offer(returned: 3, waits: true, isPaced: false), "0300000000000000 01 00 000000000000"),
  GoldenFrame(
    "ORIGIN", 0xC0, Origin(node: "b2", connection: 18, client: "c"),
    "0200 6232 1200000000000000 0100 63"),
  GoldenFrame("FLOOR", 0xC1, Floor(floor: 258), "0201000000000000"),
  GoldenFrame(
    "JOIN", 0x28, JoinGroup(topic: "t", group: "g", grantedThrough: 9),
    "0100 74 0100 67 00 00 00 00 0000000000000000 00000000 00000000 0000 0900000000000000 04000000 00000000"),
  GoldenFrame(
    "JOIN with all settings", 0x28,
    JoinGroup(
      topic: "t", group: "g", start: .time(-1),
      settings: JoinGroup.Settings(
        acknowledgement: .explicit, order: .byKey, deadline: 30_000, deliveries: 5, deadLetters: "t.dead",
        filter: RecordFilter([.init(.header("h"), .hasPrefix([1]))])), ifMissing: .fail, grantedThrough: 0),
    """
    0100 74 0100 67 05 01 01 01 ffffffffffffffff 30750000 05000000 0600 742e64656164 0000000000000000
    10000000 01000000 08000000 01 02 0100 68 0100 01
    """),
  GoldenFrame("DELIVERIES", 0x29, Deliveries(count: 2), "02000000"),
  GoldenFrame(
    "SETTLE, acknowledge", 0x2A, Settle(.acknowledge, delivery: 1, firstOffset: 0x0102, count: 3),
    "00 000000 01000000 0201000000000000 03000000"),
  GoldenFrame(
    "SETTLE, retry", 0x2A, Settle(.retry, delivery: .max, firstOffset: .max, count: 0),
    "01 000000 ffffffff ffffffffffffffff 00000000"),
  GoldenFrame(
    "SETTLE, reject", 0x2A, Settle(.reject, delivery: 2, firstOffset: 0, count: .max),
    "02 000000 02000000 0000000000000000 ffffffff"),
  GoldenFrame(
    "SETTLE, extend", 0x2A, Settle(.extend, delivery: 2, firstOffset: 0, count: 1),
    "03 000000 02000000 0000000000000000 01000000"),
  GoldenFrame("COMMIT", 0x2B, Commit(nextOffset: 0x0102), "0201000000000000"),
  GoldenFrame(
    "CURSOR_LIST", 0x39, CursorList(topic: "t", after: "c", limit: 10), "0100 74 0100 63 0a000000"),
  GoldenFrame(
    "CURSORS", 0x3A,
    Cursors(
      cursors: [
        CursorInfo(
          name: "c", kind: .cursor, epoch: 1, nextOffset: 2, end: 3, members: 0, outstanding: 0, idle: 4,
          bytes: 10, age: 11),
        CursorInfo(
          name: "g", kind: .group, epoch: 5, nextOffset: 6, end: 7, members: 8, outstanding: 9, idle: 0,
          redeliveries: 12, deadLetters: 13, abandoned: 14, missed: 15, delayed: 16, nextRetry: 17),
      ], more: true),
    """
    01 02000000 70000000 0100 63 00 0100000000000000 0200000000000000 0300000000000000 00000000 0000000000000000
    0400000000000000 0a00000000000000 0b00000000000000 0000000000000000 0000000000000000 0000000000000000
    0000000000000000 0000000000000000 0000000000000000
    70000000 0100 67 01 0500000000000000 0600000000000000 0700000000000000 08000000
    0900000000000000 0000000000000000 ffffffffffffffff ffffffffffffffff 0c00000000000000 0d00000000000000
    0e00000000000000 0f00000000000000 1000000000000000 1100000000000000
    """),
  GoldenFrame(
    "CURSOR_MOVE", 0x3B, CursorMove(topic: "t", name: "c", to: .offset(5)),
    "0100 74 0100 63 04 000000 0500000000000000"),
  GoldenFrame("CURSOR_DELETE", 0x3C, CursorDelete(topic: "t", name: "c"), "0100 74 0100 63"),
  GoldenFrame(
    "TOPIC_SET", 0x3D, TopicSet(topic: "t", settings: TopicSettings(replayRecords: 5)),
    "0100 74 01000000 0a000000 0100 0500000000000000"),
  GoldenFrame(
    "TOPIC_TRIM from an offset", 0x3E, TopicTrim(topic: "t", .from(258)), "0100 74 00 000000 0201000000000000"
  ),
  GoldenFrame(
    "TOPIC_TRIM to the newest", 0x3E, TopicTrim(topic: "t", .newest(3)), "0100 74 01 000000 0300000000000000"),
  GoldenFrame("CONNECTION_LIST", 0x40, ConnectionList(after: 7, limit: 10), "0700000000000000 0a000000"),
  GoldenFrame(
    "CONNECTIONS", 0x41,
    Connections(
      connections: [
        ConnectionInfo(
          connection: 1, client: "c", identity: "i", peer: "p", security: "s", age: 2, subscriptions: 3,
          publications: 4, buffered: 5, received: 6, sent: 7)
      ], more: true),
    """
    01 01000000 3c000000 0100000000000000 0100 63 0100 69 0100 70 0100 73 0200000000000000 03000000 04000000
    0500000000000000 0600000000000000 0700000000000000
    """),
  GoldenFrame("CONNECTION_CLOSE", 0x42, ConnectionClose(connection: 9), "0900000000000000"),
  GoldenFrame("BROKER_SHOW", 0x43, BrokerShow(), ""),
  GoldenFrame(
    "BROKER_INFO", 0x44,
    BrokerInfo(
      time: 1, uptime: 2, storage: StorageStatus(state: .full, since: 3, used: 4, limit: 5), stopped: 6,
      stoppedTopics: [BrokerInfo.StoppedTopic(topic: "t", reason: .storageFull, milliseconds: 7)],
      numbers: [BrokerInfo.Number(name: "topics", value: 8)],
      problems: [
        BrokerInfo.Problem(
          severity: .warning, since: 9, sentence: "s", kind: "k", topic: "t", consumer: "c", connection: 10)
      ],
      problemKinds: [
        BrokerInfo.ProblemKind(kind: "k", severity: .warning, since: 11, count: 12, sentence: "s")
      ]),
    """
    0100000000000000 0200000000000000 19000000 02 0300000000000000 0400000000000000 0500000000000000 06000000
    01000000 0c000000 0100 74 02 0700000000000000 01000000 10000000 0600 746f70696373 0800000000000000
    01000000 1d000000 01 0900000000000000 0100 73 0100 6b 0100 74 0100 63 0a00000000000000
    01000000 13000000 0100 6b 01 0b00000000000000 0c000000 0100 73
    """),
  GoldenFrame(
    "STATE_LIST of producers", 0x45, StateList(topic: "t", kind: .producer), "0100 74 01 000000 00000000"),
  GoldenFrame(
    "STATE_LIST of groups behind one", 0x45, StateList(topic: "t", kind: .group, after: [0x67]),
    "0100 74 03 000000 01000000 67"),
  GoldenFrame(
    "STATES", 0x46,
    TopicStates(
      epoch: 7, nextOffset: 12,
      states: [StateEntry(key: [0, 0, 0, 0, 0, 0, 0, 9], value: [1, 5, 0, 0, 0, 0, 0, 0, 0])], more: true),
    """
    0700000000000000 0c00000000000000 01 01000000 19000000 08000000 0000000000000009 09000000 01 0500000000000000
    """),
  GoldenFrame(
    "STATE_RESTORE", 0x47,
    StateRestore(
      topic: "t", kind: .producer, origin: 4,
      states: [StateEntry(key: [0, 0, 0, 0, 0, 0, 0, 9], value: [1, 5, 0, 0, 0, 0, 0, 0, 0])]),
    """
    0100 74 01 000000 0400000000000000 01000000 19000000 08000000 0000000000000009 09000000 01 0500000000000000
    """),
  GoldenFrame(
    "CLUSTER_SHOW", 0x60, ClusterShow(after: "n", nodes: 1, firstShard: 2, shards: 3),
    "0100 6e 01000000 02000000 03000000"),
  GoldenFrame(
    "CLUSTER_INFO", 0x61,
    ClusterInfo(
      name: "n", unreadiness: "u",
      engine: ClusterInfo.Engine(
        isConnected: true, isUnsafe: false, server: "s", commitLatency: 1, problems: ["p"]),
      moreNodes: true,
      nodes: [
        ClusterInfo.Node(
          name: "n", address: "a", version: "v", state: .drained, shards: 2, silence: 3, problem: "w")
      ],
      shardCount: 4, moreShards: false,
      shards: [ClusterInfo.Shard(number: 5, state: .moving, owner: "o", term: 6, target: "t", pin: "p")],
      numbers: [BrokerInfo.Number(name: "n", value: 7)]),
    """
    0100 6e 0100 75 18000000 01 00 0100 73 0100000000000000 01000000 03000000 0100 70
    01 01000000 19000000 0100 6e 0100 61 0100 76 02 02000000 0300000000000000 0100 77 04000000
    00 01000000 16000000 05000000 01 0100 6f 0600000000000000 0100 74 0100 70
    01000000 0b000000 0100 6e 0700000000000000
    """),
  GoldenFrame("CLUSTER_DRAIN", 0x62, ClusterDrain(node: "n", wanted: true), "0100 6e 01"),
  GoldenFrame("CLUSTER_MOVE", 0x63, ClusterMove(shard: 1, node: "n"), "01000000 0100 6e"),
  GoldenFrame("DEMAND", 0x12, Demand(grantedThrough: 0x0102), "0201000000000000 ffffffffffffffff"),
  GoldenFrame(
    "DEMAND of bytes", 0x12, Demand(grantedThrough: 1, bytesThrough: 0x0304),
    "0100000000000000 0403000000000000"),
  GoldenFrame(
    "DEMAND without limit", 0x12, Demand(grantedThrough: Credit.unlimited),
    "ffffffffffffffff ffffffffffffffff"),
  GoldenFrame(
    "SUBSCRIBE that wants PRODUCERS", 0x10, Subscribe(topic: "a", grantedThrough: 1, wantsProducers: true),
    "0100 61 00 00 00 01 0000000000000000 0000000000000000 0100000000000000 0000 04000000 00000000 00000000"),
  GoldenFrame("PRODUCERS", 0x1E, Producers(count: 258), "02010000"),
  GoldenFrame(
    "REDIRECT", 0x09, Redirect(node: "b", address: "b.example:7420"),
    "0100 62 0e00 622e6578616d706c653a37343230"),
  GoldenFrame("LIVE", 0x14, Live(nextOffset: 9), "0900000000000000"),
  GoldenFrame("LAG", 0x15, Lag(missed: 3, nextOffset: 12), "0300000000000000 0c00000000000000"),
  GoldenFrame("CANCEL", 0x16, Cancel(), ""),
  GoldenFrame("CANCELLED", 0x17, Cancelled(), "00"),
  GoldenFrame("CANCELLED, started over", 0x17, Cancelled(hasStartedOver: true), "01"),
  GoldenFrame("COMPLETE, finished", 0x18, Complete(.finished), "00 000000 00000000 0000"),
  GoldenFrame(
    "COMPLETE, failed", 0x18, Complete(.failure(code: .producerFailure, message: "disk")),
    "01 000000 c8000000 0400 6469736b"),

  GoldenFrame(
    "PUBLISH_OPEN without acknowledgement", 0x20, PublishOpen(topic: "t", acknowledgement: .none),
    "0100 74 00 000000 0000000000000000 0000000000000000 00000000"),
  GoldenFrame(
    "PUBLISH_OPEN, received", 0x20,
    PublishOpen(topic: "t", acknowledgement: .received, producer: 0x0102_0304_0506_0708, firstSequence: 258),
    "0100 74 01 000000 0807060504030201 0201000000000000 00000000"),
  GoldenFrame(
    "PUBLISH_OPEN, durable", 0x20,
    PublishOpen(topic: "t", acknowledgement: .durable, producer: .max, firstSequence: 1 << 62),
    "0100 74 02 000000 ffffffffffffffff 0000000000000040 00000000"),
  GoldenFrame(
    "PUBLISH_OPEN of a source", 0x20, PublishOpen(topic: "t", acknowledgement: .none, role: .source),
    "0100 74 00 01 0000 0000000000000000 0000000000000000 00000000"),
  GoldenFrame(
    "PUBLISH_OPEN of a requester", 0x20,
    PublishOpen(topic: "t", acknowledgement: .received, role: .requester),
    "0100 74 01 02 0000 0000000000000000 0000000000000000 00000000"),
  GoldenFrame(
    "PUBLISH_OPENED", 0x21, PublishOpened(epoch: 5, grantedThrough: 65_536),
    "0500000000000000 0000010000000000 ffffffffffffffff 0000000000000000"),
  GoldenFrame(
    "PUBLISH_OPENED with a limit of bytes", 0x21,
    PublishOpened(epoch: 5, grantedThrough: 1, bytesThrough: 2),
    "0500000000000000 0100000000000000 0200000000000000 0000000000000000"),
  GoldenFrame(
    "PUBLISH_OPEN with settings", 0x20,
    PublishOpen(topic: "t", acknowledgement: .none, settings: stayingConnected),
    "0100 74 00 00 0000 0000000000000000 0000000000000000 01000000 0a000000 0600 0200000001000000"),
  GoldenFrame(
    "SUBSCRIBE with settings", 0x10, Subscribe(topic: "a", grantedThrough: 1, settings: stayingConnected),
    """
    0100 61 00 00 00 00 0000000000000000 0000000000000000 0100000000000000 0000 04000000 00000000
    01000000 0a000000 0600 0200000001000000
    """),
  GoldenFrame("CONNECTED", 0x24, Connected(), ""),
  GoldenFrame("DISCONNECTED", 0x25, Disconnected(), ""),
  GoldenFrame(
    "PUBLISH_OPENED for a producer that comes back", 0x21,
    PublishOpened(epoch: 5, grantedThrough: 65_538, nextSequence: 2),
    "0500000000000000 0200010000000000 ffffffffffffffff 0200000000000000"),
  GoldenFrame("ACK", 0x23, Ack(through: 10, lastOffset: 11), "0a00000000000000 0b00000000000000"),

  GoldenFrame(
    "TOPIC_CREATE with defaults", 0x30, TopicCreate(topic: "t", settings: TopicSettings()), "0100 74 00000000"
  ),
  GoldenFrame(
    "TOPIC_CREATE with settings", 0x30,
    TopicCreate(
      topic: "t",
      settings: TopicSettings(replayRecords: 5, replayBytes: TopicSettings.unlimited, replayAge: 0)),
    "0100 74 03000000 0a000000 0100 0500000000000000 0a000000 0200 ffffffffffffffff 0a000000 0300 0000000000000000"
  ),
  GoldenFrame(
    "TOPIC_CREATE with all settings", 0x30, TopicCreate(topic: "t", settings: everySetting),
    """
    0100 74 0f000000
    0a000000 0100 0100000000000000 0a000000 0200 0200000000000000 0a000000 0300 0300000000000000
    0a000000 0400 0100000000000000 0a000000 0500 0200000000000000 0a000000 0600 0700000000000000
    0a000000 0700 0800000000000000 0a000000 0800 0900000000000000 0a000000 0900 0200000000000000
    0a000000 0a00 0100000000000000 0a000000 0b00 0100000000000000 0a000000 0c00 0100000000000000
    0a000000 0d00 0100000000000000 0a000000 0e00 0a00000000000000 0a000000 0f00 0b00000000000000
    """),
  GoldenFrame("TOPIC_CONNECT", 0x37, TopicConnect(topic: "t"), "0100 74"),
  GoldenFrame("TOPIC_DISCONNECT", 0x38, TopicDisconnect(topic: "t"), "0100 74"),
  GoldenFrame(
    "SUBSCRIBE with the topic's lag", 0x10, Subscribe(topic: "a", lag: nil, grantedThrough: 1),
    "0100 61 00 02 0000 0000000000000000 0000000000000000 0100000000000000 0000 04000000 00000000 00000000"),
  GoldenFrame("TOPIC_SHOW", 0x31, TopicShow(topic: "t.u"), "0300 742e75"),
  GoldenFrame(
    "TOPIC_INFO", 0x32,
    TopicInfo(
      summary: TopicSummary(
        topic: "t", epoch: 1, firstOffset: 2, nextOffset: 3, bytes: 4, ending: nil, subscriptions: 1,
        publications: 1),
      settings: TopicSettings(replayBytes: 6),
      subscriptions: [
        TopicInfo.Subscription(
          connection: 7, client: "c", stream: 8, state: .live, nextOffset: 9, granted: .max, sent: 10,
          holding: 11, limit: .buffer, lastMinute: 930, lastFiveMinutes: 710, consumer: "g",
          slowness: .network, slow: 25, age: 26, node: "x")
      ],
      publications: [
        TopicInfo.Publication(
          connection: 11, client: "", stream: 12, granted: 13, received: 14, waiting: 15,
          reason: .storageFull, node: "y")
      ],
      dropped: dropped,
      storage: StorageStatus(state: .full, since: 22, used: 23, limit: 24), isStated: true,
      withoutProducers: 25,
      holds: [
        TopicInfo.Hold(reason: .storageBacklog, milliseconds: 25, lastMinute: 26, lastFiveMinutes: 27)
      ], consumerCount: 28,
      consumers: [
        TopicInfo.Consumer(
          name: "g", kind: .group, nextOffset: 29, lag: 30, bytes: 31, age: 32, members: 33,
          unacknowledged: 34, redeliveries: 35, deadLetters: 36, abandoned: 37, missed: 38, idle: 39,
          delayed: 40, nextRetry: 41)
      ]),
    """
    3b000000 0100 74 0100000000000000 0200000000000000 0300000000000000 0400000000000000
    00 00000000 0000 01000000 01000000 0100000000000000 00
    01000000 0a000000 0200 0600000000000000
    01000000 4c000000 0700000000000000 0100 63 08000000 01 0900000000000000 ffffffffffffffff 0a00000000000000
    0b00000000000000 02 a203 c602 0100 67 03 1900000000000000 1a00000000000000 0100 78
    01000000 2a000000 0b00000000000000 0000 0c000000 0d00000000000000 0e00000000000000 0f00000000000000 02 0100 79
    40000000
    1000000000000000 1100000000000000 1200000000000000 1300000000000000 1400000000000000 1500000000000000
    1600000000000000 1700000000000000
    19000000 02 1600000000000000 1700000000000000 1800000000000000
    01 1900000000000000
    01000000 0d000000 04 1900000000000000 1a00 1b00
    1c000000
    01000000 68000000 0100 67 01 1d00000000000000 1e00000000000000 1f00000000000000 2000000000000000
    21000000 2200000000000000 2300000000000000 2400000000000000 2500000000000000 2600000000000000
    2700000000000000 2800000000000000 2900000000000000
    """),
  GoldenFrame("TOPIC_LIST", 0x33, TopicList(after: "a", limit: 64), "0100 61 40000000"),
  GoldenFrame("TOPICS, none", 0x34, Topics(topics: [], more: false), "00 00000000"),
  GoldenFrame(
    "TOPICS", 0x34,
    Topics(
      topics: [
        TopicSummary(
          topic: "x", epoch: 0, firstOffset: 0, nextOffset: 0, bytes: 0, ending: .finished, subscriptions: 2,
          publications: 3),
        TopicSummary(
          topic: "y", epoch: .max, firstOffset: 0, nextOffset: 1, bytes: 0,
          ending: .failure(code: ErrorCode(rawValue: 1000), message: "m"), subscriptions: 0, publications: 0,
          records: 9, storage: .durable),
      ], more: true),
    """
    01 02000000
    3b000000 0100 78 0000000000000000 0000000000000000 0000000000000000 0000000000000000 01 00000000 0000 02000000 03000000
    0000000000000000 00
    3c000000 0100 79 ffffffffffffffff 0000000000000000 0100000000000000 0000000000000000 02 e8030000 0100 6d 00000000 00000000
    0900000000000000 01
    """),
  GoldenFrame("TOPIC_DELETE", 0x35, TopicDelete(topic: "t"), "0100 74"),
  GoldenFrame("DONE", 0x36, Done(), ""),
]

/// A single setting.
private let stayingConnected: TopicSettings = {
  var settings = TopicSettings()
  settings.connect = .autoStay(2)
  return settings
}()

private let dropped: DroppedRecords = {
  var dropped = DroppedRecords()
  dropped[.records] = .init(records: 16, bytes: 17)
  dropped[.bytes] = .init(records: 18, bytes: 19)
  dropped[.age] = .init(records: 20, bytes: 21)
  dropped[.trim] = .init(records: 22, bytes: 23)
  return dropped
}()

/// Every setting with another value than its default.
private let everySetting: TopicSettings = {
  var settings = TopicSettings(replayRecords: 1, replayBytes: 2, replayAge: 3)
  settings.scope = .whileConnected
  settings.flow = .fastest
  settings.connect = .auto(7)
  settings.bufferRecords = 8
  settings.bufferBytes = 9
  settings.withoutSubscribers = .drop
  settings.lag = .fail
  settings.compact = true
  settings.autoDelete = true
  settings.storage = .durable
  settings.sync = .interval(10)
  settings.whenProducerLost = .fail(after: 11)
  return settings
}()
