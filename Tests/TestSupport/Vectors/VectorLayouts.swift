import SluiceWire

// Each frame's fields, by their names in `Protocol.md`.

let subscribedLayout = VectorLayout(
  Subscribed(epoch: 0, nextOffset: 0, liveOffset: 0), .integer("epoch", \.epoch),
  .integer("next offset", \.nextOffset), .integer("live offset", \.liveOffset), .flag("gaps", \.gaps),
  .flag("continues", \.continues), .flag("shareable", \.isShareable))

private let positionLayout = VectorLayout(
  TopicPosition(topic: "", epoch: 0, nextOffset: 0), .text("topic", \.topic), .integer("epoch", \.epoch),
  .integer("next offset", \.nextOffset))

private let stateLayout = VectorLayout(
  StateEntry(key: [], value: []), .bytes("key", \.key), .bytes("value", \.value))

private let cursorLayout = VectorLayout(
  CursorInfo(
    name: "", kind: .cursor, epoch: 0, nextOffset: 0, end: 0, members: 0, outstanding: 0, idle: 0),
  .text("name", \.name), .named("kind", \.kind), .integer("epoch", \.epoch),
  .integer("next offset", \.nextOffset), .integer("end", \.end), .integer("members", \.members),
  .integer("outstanding", \.outstanding), .integer("idle", \.idle), .integer("bytes", \.bytes),
  .integer("age", \.age), .integer("redeliveries", \.redeliveries), .integer("dead letters", \.deadLetters),
  .integer("abandoned", \.abandoned), .integer("missed", \.missed), .integer("delayed", \.delayed),
  .integer("next retry", \.nextRetry))

private let summaryLayout = VectorLayout(
  TopicSummary(
    topic: "", epoch: 0, firstOffset: 0, nextOffset: 0, bytes: 0, ending: nil, subscriptions: 0,
    publications: 0),
  .text("topic", \.topic), .integer("epoch", \.epoch), .integer("first offset", \.firstOffset),
  .integer("next offset", \.nextOffset), .integer("bytes", \.bytes),
  .custom {
    let (state, code, message): (UInt8, UInt32, String) =
      switch $0.ending {
      case nil: (0, 0, "")
      case .finished: (1, 0, "")
      case .failure(let code, let message): (2, code.rawValue, message)
      }
    $1.set("state", state)
    $1.set("code", code)
    $1.set("message", message)
  } set: {
    switch try $1.integer("state", as: UInt8.self) {
    case 0: $0.ending = nil
    case 1: $0.ending = .finished
    default:
      $0.ending = .failure(code: ErrorCode(rawValue: try $1.integer("code")), message: try $1.text("message"))
    }
  },
  .integer("subscriptions", \.subscriptions), .integer("publications", \.publications),
  .integer("records", \.records),
  .custom {
    $1.set("storage", UInt8($0.storage.rawValue))
  } set: {
    $0.storage = try $1.integer("storage", as: UInt8.self) == 0 ? .memory : .durable
  })

private let subscriptionLayout = VectorLayout(
  TopicInfo.Subscription(
    connection: 0, client: "", stream: 0, state: .replaying, nextOffset: 0, granted: 0, sent: 0),
  .integer("connection", \.connection), .text("client", \.client), .integer("stream", \.stream),
  .named("state", \.state), .integer("next offset", \.nextOffset), .integer("granted", \.granted),
  .integer("sent", \.sent), .integer("holding", \.holding), .named("limit", \.limit),
  .integer("last minute", \.lastMinute), .integer("last five minutes", \.lastFiveMinutes),
  .text("consumer", \.consumer), .named("slowness", \.slowness), .integer("slow", \.slow),
  .integer("age", \.age), .text("node", \.node))

private let publicationLayout = VectorLayout(
  TopicInfo.Publication(connection: 0, client: "", stream: 0, granted: 0, received: 0),
  .integer("connection", \.connection), .text("client", \.client), .integer("stream", \.stream),
  .integer("granted", \.granted), .integer("received", \.received), .integer("waiting", \.waiting),
  .named("reason", \.reason), .text("node", \.node))

private let holdLayout = VectorLayout(
  TopicInfo.Hold(reason: .none, milliseconds: 0, lastMinute: 0, lastFiveMinutes: 0),
  .named("reason", \.reason), .integer("milliseconds", \.milliseconds),
  .integer("last minute", \.lastMinute), .integer("last five minutes", \.lastFiveMinutes))

private let consumerLayout = VectorLayout(
  TopicInfo.Consumer(name: "", kind: .cursor, nextOffset: 0, lag: 0), .text("name", \.name),
  .named("kind", \.kind), .integer("next offset", \.nextOffset), .integer("lag", \.lag),
  .integer("bytes", \.bytes),
  .integer("age", \.age), .integer("members", \.members), .integer("unacknowledged", \.unacknowledged),
  .integer("redeliveries", \.redeliveries), .integer("dead letters", \.deadLetters),
  .integer("abandoned", \.abandoned), .integer("missed", \.missed), .integer("idle", \.idle),
  .integer("delayed", \.delayed), .integer("next retry", \.nextRetry))

private let droppedLayout = VectorLayout(
  DroppedRecords(), .integer("records by records", \.[.records].records),
  .integer("bytes by records", \.[.records].bytes), .integer("records by bytes", \.[.bytes].records),
  .integer("bytes by bytes", \.[.bytes].bytes), .integer("records by age", \.[.age].records),
  .integer("bytes by age", \.[.age].bytes), .integer("records by trim", \.[.trim].records),
  .integer("bytes by trim", \.[.trim].bytes))

private let storageLayout = VectorLayout(
  StorageStatus(), .named("state", \.state), .integer("since", \.since), .integer("used", \.used),
  .integer("limit", \.limit))

private let completeField = VectorLayout<Complete>.Field.custom {
  switch $0.ending {
  case .finished:
    $1.set("kind", 0 as UInt8)
    $1.set("code", 0 as UInt32)
    $1.set("message", "")
  case .failure(let code, let message):
    $1.set("kind", 1 as UInt8)
    $1.set("code", code.rawValue)
    $1.set("message", message)
  }
} set: {
  let code = ErrorCode(rawValue: try $1.integer("code"))
  $0.ending =
    try $1.integer("kind", as: UInt8.self) == 0
    ? .finished : .failure(code: code, message: try $1.text("message"))
}

private let versionsField = VectorLayout<Hello>.Field.custom {
  $1.set("lowest version", $0.versions.lowerBound)
  $1.set("highest version", $0.versions.upperBound)
} set: {
  $0.versions = try $1.integer("lowest version")...$1.integer("highest version")
}

/// A frame's layout without its type.
public struct AnyVectorLayout: Sendable {
  public let type: FrameType
  /// Decodes a body into fields.
  public let fields: @Sendable ([UInt8]) throws -> VectorFields
  /// Encodes fields as a body.
  public let body: @Sendable (VectorFields) throws -> [UInt8]
  /// The error that decoding a body throws, if any.
  public let error: @Sendable ([UInt8]) -> WireError?

  init<F: Frame>(_ layout: VectorLayout<F>) {
    type = F.type
    fields = { body in layout.fields(of: try Self.decode(body)) }
    body = { fields in Array(try layout.value(from: fields).encoded(stream: 1)[FrameHeader.size...]) }
    error = { body in
      do throws(WireError) {
        let _: F = try Self.decode(body)
        return nil
      } catch {
        return error
      }
    }
  }

  init(
    _ type: FrameType, fields: @escaping @Sendable ([UInt8]) throws -> VectorFields,
    body: @escaping @Sendable (VectorFields) throws -> [UInt8]
  ) {
    self.type = type
    self.fields = fields
    self.body = body
    error = { body in
      do {
        _ = try fields(body)
        return nil
      } catch {
        return error as? WireError
      }
    }
  }

  /// Decodes from memory of exactly that size.
  private static func decode<F: Frame>(_ body: [UInt8]) throws(WireError) -> F {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: body.count, alignment: 1)
    defer { memory.deallocate() }
    memory.copyBytes(from: body)
    return try F(body: UnsafeRawBufferPointer(memory))
  }

  /// The layouts of all types of frames, by type number.
  public static let all: [UInt8: AnyVectorLayout] = Dictionary(
    uniqueKeysWithValues: table.map { ($0.type.rawValue, $0) })

  private static let table: [AnyVectorLayout] =
    connection + subscriptions + publications + topics + broker + [.batch(.deliver), .batch(.publish)]

  private static let connection = [
    AnyVectorLayout(
      VectorLayout(
        Hello(maximumFrame: 0, keepalive: 0, name: ""), versionsField, .integer("features", \.features),
        .integer("longest frame", \.maximumFrame), .integer("keepalive", \.keepalive), .text("name", \.name),
        .credentials(\.credentials))),
    AnyVectorLayout(
      VectorLayout(
        Welcome(
          maximumFrame: 0, maximumRecord: 0, maximumStreams: 0, keepalive: 0, broker: 0, software: ""),
        .integer("version", \.version), .integer("features", \.features),
        .integer("longest frame", \.maximumFrame), .integer("longest record", \.maximumRecord),
        .integer("streams", \.maximumStreams), .integer("keepalive", \.keepalive),
        .integer("broker", \.broker), .text("software", \.software), .text("identity", \.identity),
        .integer("expires", \.expires))),
    AnyVectorLayout(VectorLayout(Ping(token: 0), .integer("token", \.token))),
    AnyVectorLayout(VectorLayout(Pong(token: 0), .integer("token", \.token))),
    AnyVectorLayout(
      VectorLayout(
        GoAway(code: .shuttingDown, message: ""), .named("code", \.code), .text("message", \.message))),
    AnyVectorLayout(
      VectorLayout(Fault(code: .lagged, message: ""), .named("code", \.code), .text("message", \.message))),
    AnyVectorLayout(VectorLayout(Authenticate(.none), .credentials(\.credentials))),
    AnyVectorLayout(
      VectorLayout(Authenticated(identity: ""), .text("identity", \.identity), .integer("expires", \.expires))
    ),
  ]

  private static let subscriptions = [
    AnyVectorLayout(
      VectorLayout(
        Subscribe(topic: "", grantedThrough: 0), .text("topic", \.topic), .start(\.start), .lag(\.lag),
        .named("if missing", \.ifMissing), .flag("flags", \.wantsProducers), .integer("epoch", \.epoch),
        .integer("granted through", \.grantedThrough), .text("cursor", \.cursor),
        .filter(\.filter), .settings(\.settings))),
    AnyVectorLayout(subscribedLayout),
    AnyVectorLayout(
      VectorLayout(
        Demand(grantedThrough: 0), .integer("granted through", \.grantedThrough),
        .integer("bytes through", \.bytesThrough))),
    AnyVectorLayout(VectorLayout(Live(nextOffset: 0), .integer("next offset", \.nextOffset))),
    AnyVectorLayout(
      VectorLayout(
        Lag(missed: 0, nextOffset: 0), .integer("missed", \.missed), .integer("next offset", \.nextOffset))),
    AnyVectorLayout(VectorLayout(Cancel())),
    AnyVectorLayout(VectorLayout(Cancelled(), .flag("flags", \.hasStartedOver))),
    AnyVectorLayout(VectorLayout(Producers(count: 0), .integer("count", \.count))),
    AnyVectorLayout(
      VectorLayout(Redirect(node: "", address: ""), .text("node", \.node), .text("address", \.address))),
    AnyVectorLayout(VectorLayout(Complete(.finished), completeField)),
    AnyVectorLayout(
      VectorLayout(
        SubscribePattern(pattern: "", grantedThrough: 0), .text("pattern", \.pattern), .start(\.start),
        .lag(\.lag), .flag("more", \.more), .integer("granted through", \.grantedThrough), .filter(\.filter),
        .list("positions", \.positions, positionLayout))),
    AnyVectorLayout(
      VectorLayout(
        Positions([], more: false), .flag("more", \.more), .list("positions", \.positions, positionLayout))),
    AnyVectorLayout(
      VectorLayout(
        Matched(number: 0, topic: "", place: Subscribed(epoch: 0, nextOffset: 0, liveOffset: 0)),
        .integer("number", \.number), .text("topic", \.topic), .integer("epoch", \.place.epoch),
        .integer("next offset", \.place.nextOffset), .integer("live offset", \.place.liveOffset),
        .flag("gaps", \.place.gaps), .flag("continues", \.place.continues))),
    AnyVectorLayout(VectorLayout(Unmatched(number: 0), .integer("number", \.number))),
    AnyVectorLayout(VectorLayout(SelectTopic(number: 0), .integer("number", \.number))),
    AnyVectorLayout(
      VectorLayout(
        Lend(grantedThrough: 0, pacedThrough: 0), .integer("granted through", \.grantedThrough),
        .integer("paced through", \.pacedThrough), .flag("recall", \.recalls))),
    AnyVectorLayout(
      VectorLayout(
        Offer(returned: 0, waits: false, isPaced: false), .integer("returned", \.returned),
        .flag("waits", \.waits), .flag("paced", \.isPaced))),
    AnyVectorLayout(
      VectorLayout(
        Origin(node: "", connection: 0, client: ""), .text("node", \.node),
        .integer("connection", \.connection), .text("client", \.client))),
    AnyVectorLayout(VectorLayout(Floor(floor: 0), .integer("floor", \.floor))),
    AnyVectorLayout(
      VectorLayout(
        JoinGroup(topic: "", group: "", grantedThrough: 0), .text("topic", \.topic), .text("group", \.group),
        .start(\.start), .named("acknowledgement", \.settings.acknowledgement),
        .named("order", \.settings.order), .named("if missing", \.ifMissing),
        .integer("deadline", \.settings.deadline),
        .integer("deliveries", \.settings.deliveries), .text("dead letters", \.settings.deadLetters),
        .integer("granted through", \.grantedThrough), .filter(\.settings.filter),
        .custom {
          guard $0.settings.retryBackoff != .none else { return }
          $1.set("first backoff", $0.settings.retryBackoff.first)
          $1.set("longest backoff", $0.settings.retryBackoff.longest)
        } set: {
          guard $1.values["first backoff"] != nil else { return }
          $0.settings.retryBackoff = JoinGroup.Backoff(
            first: try $1.integer("first backoff"), longest: try $1.integer("longest backoff"))
        })),
    AnyVectorLayout(VectorLayout(Deliveries(count: 0), .integer("count", \.count))),
    AnyVectorLayout(
      VectorLayout(
        Settle(.acknowledge, delivery: 0, firstOffset: 0, count: 0), .named("verdict", \.verdict),
        .integer("delivery", \.delivery), .integer("first offset", \.firstOffset), .integer("count", \.count),
        .custom {
          if $0.delay != Settle.byBackoff { $1.set("delay", $0.delay) }
        } set: {
          if $1.values["delay"] != nil { $0.delay = try $1.integer("delay") }
        })),
    AnyVectorLayout(VectorLayout(Commit(nextOffset: 0), .integer("next offset", \.nextOffset))),
  ]

  private static let publications = [
    AnyVectorLayout(
      VectorLayout(
        PublishOpen(topic: "", acknowledgement: .none), .text("topic", \.topic),
        .named("acknowledgement", \.acknowledgement), .named("role", \.role),
        .integer("producer", \.producer), .integer("first sequence", \.firstSequence),
        .settings(\.settings),
        .custom {
          guard $0.known.epoch != 0 else { return }
          $1.set("known epoch", $0.known.epoch)
          $1.set("known offset", $0.known.nextOffset)
        } set: {
          guard $1.values["known epoch"] != nil else { return }
          $0.known = KnownHistory(
            epoch: try $1.integer("known epoch"), nextOffset: try $1.integer("known offset"))
        })),
    AnyVectorLayout(
      VectorLayout(
        PublishOpened(epoch: 0, grantedThrough: 0), .integer("epoch", \.epoch),
        .integer("granted through", \.grantedThrough), .integer("bytes through", \.bytesThrough),
        .integer("next sequence", \.nextSequence),
        .custom {
          if let offset = $0.lostFrom { $1.set("lost from", offset) }
        } set: {
          if $1.values["lost from"] != nil { $0.lostFrom = try $1.integer("lost from") as UInt64 }
        })),
    AnyVectorLayout(
      VectorLayout(
        Ack(through: 0, lastOffset: 0), .integer("through", \.through), .integer("last offset", \.lastOffset))
    ),
    AnyVectorLayout(VectorLayout(Connected())), AnyVectorLayout(VectorLayout(Disconnected())),
  ]

  private static let topics = [
    AnyVectorLayout(
      VectorLayout(
        TopicCreate(topic: "", settings: TopicSettings()), .text("topic", \.topic), .settings(\.settings))),
    AnyVectorLayout(VectorLayout(TopicShow(topic: ""), .text("topic", \.topic))),
    AnyVectorLayout(
      VectorLayout(
        TopicInfo(
          summary: summaryLayout.blank(), settings: TopicSettings(), subscriptions: [], publications: []),
        .custom {
          $1.values["summary"] = .object(summaryLayout.fields(of: $0.summary).values)
        } set: {
          $0.summary = try summaryLayout.value(from: $1["summary"].fields)
        }, .settings(\.settings), .list("subscriptions", \.subscriptions, subscriptionLayout),
        .list("publications", \.publications, publicationLayout),
        .custom {
          $1.values["dropped"] = .object(droppedLayout.fields(of: $0.dropped).values)
          $1.values["storage"] = .object(storageLayout.fields(of: $0.storage).values)
        } set: {
          $0.dropped = try droppedLayout.value(from: $1["dropped"].fields)
          $0.storage = try storageLayout.value(from: $1["storage"].fields)
        }, .flag("flags", \.isStated),
        .integer("without producers", \.withoutProducers), .list("holds", \.holds, holdLayout),
        .integer("consumers in all", \.consumerCount), .list("consumers", \.consumers, consumerLayout))),
    AnyVectorLayout(VectorLayout(TopicList(limit: 0), .text("after", \.after), .integer("limit", \.limit))),
    AnyVectorLayout(
      VectorLayout(
        Topics(topics: [], more: false), .flag("more", \.more), .list("topics", \.topics, summaryLayout))),
    AnyVectorLayout(VectorLayout(TopicDelete(topic: ""), .text("topic", \.topic))),
    AnyVectorLayout(VectorLayout(Done())),
    AnyVectorLayout(VectorLayout(TopicConnect(topic: ""), .text("topic", \.topic))),
    AnyVectorLayout(VectorLayout(TopicDisconnect(topic: ""), .text("topic", \.topic))),
    AnyVectorLayout(
      VectorLayout(
        CursorList(topic: "", limit: 0), .text("topic", \.topic), .text("after", \.after),
        .integer("limit", \.limit))),
    AnyVectorLayout(
      VectorLayout(
        Cursors(cursors: [], more: false), .flag("more", \.more), .list("cursors", \.cursors, cursorLayout))),
    AnyVectorLayout(
      VectorLayout(
        CursorMove(topic: "", name: "", to: .replay), .text("topic", \.topic), .text("name", \.name),
        .start(\.start))),
    AnyVectorLayout(
      VectorLayout(CursorDelete(topic: "", name: ""), .text("topic", \.topic), .text("name", \.name))),
    AnyVectorLayout(
      VectorLayout(
        TopicSet(topic: "", settings: TopicSettings()), .text("topic", \.topic), .settings(\.settings))),
    AnyVectorLayout(
      VectorLayout(
        TopicTrim(topic: "", .newest(0)), .text("topic", \.topic),
        .custom {
          switch $0.limit {
          case .from(let value):
            $1.set("limit", 0 as UInt8)
            $1.set("value", value)
          case .newest(let value):
            $1.set("limit", 1 as UInt8)
            $1.set("value", value)
          }
        } set: {
          let value: UInt64 = try $1.integer("value")
          switch try $1.integer("limit", as: UInt8.self) {
          case 0: $0.limit = .from(value)
          case 1: $0.limit = .newest(value)
          case let other: throw TestFailure("limit \(other) isn't defined")
          }
        })),
  ]

  private static let broker = [
    AnyVectorLayout(
      VectorLayout(ConnectionList(limit: 0), .integer("after", \.after), .integer("limit", \.limit))),
    AnyVectorLayout(
      VectorLayout(
        Connections(connections: [], more: false), .flag("more", \.more),
        .list("connections", \.connections, connectionLayout))),
    AnyVectorLayout(VectorLayout(ConnectionClose(connection: 0), .integer("connection", \.connection))),
    AnyVectorLayout(
      VectorLayout(
        StateList(topic: "", kind: .producer), .text("topic", \.topic), .named("kind", \.kind),
        .bytes("after", \.after))),
    AnyVectorLayout(
      VectorLayout(
        TopicStates(epoch: 0, nextOffset: 0, states: [], more: false), .integer("epoch", \.epoch),
        .integer("next offset", \.nextOffset), .flag("more", \.more), .list("states", \.states, stateLayout))),
    AnyVectorLayout(
      VectorLayout(
        StateRestore(topic: "", kind: .producer, origin: 0, states: []), .text("topic", \.topic),
        .named("kind", \.kind), .integer("origin", \.origin), .list("states", \.states, stateLayout))),
    AnyVectorLayout(VectorLayout(BrokerShow())),
    AnyVectorLayout(
      VectorLayout(
        BrokerInfo(
          time: 0, uptime: 0, storage: StorageStatus(), stopped: 0, stoppedTopics: [], numbers: []),
        .integer("time", \.time), .integer("uptime", \.uptime),
        .custom {
          $1.values["storage"] = .object(storageLayout.fields(of: $0.storage).values)
        } set: {
          $0.storage = try storageLayout.value(from: $1["storage"].fields)
        }, .integer("stopped", \.stopped), .list("stopped topics", \.stoppedTopics, stoppedLayout),
        .list("numbers", \.numbers, numberLayout), .list("problems", \.problems, problemLayout),
        .list("problem kinds", \.problemKinds, problemKindLayout))),
    AnyVectorLayout(
      VectorLayout(
        ClusterShow(nodes: 0, shards: 0), .text("after", \.after), .integer("nodes", \.nodes),
        .integer("first shard", \.firstShard), .integer("shards", \.shards))),
    AnyVectorLayout(
      VectorLayout(
        ClusterInfo(
          name: "", unreadiness: "", engine: ClusterInfo.Engine(isConnected: false), nodes: [], shardCount: 0,
          shards: []),
        .text("name", \.name), .text("unreadiness", \.unreadiness),
        .custom {
          $1.values["engine"] = .object(engineLayout.fields(of: $0.engine).values)
        } set: {
          $0.engine = try engineLayout.value(from: $1["engine"].fields)
        }, .flag("more nodes", \.moreNodes), .list("nodes", \.nodes, nodeLayout),
        .integer("shard count", \.shardCount), .flag("more shards", \.moreShards),
        .list("shards", \.shards, shardLayout), .list("numbers", \.numbers, numberLayout))),
    AnyVectorLayout(
      VectorLayout(ClusterDrain(node: "", wanted: false), .text("node", \.node), .flag("wanted", \.wanted))),
    AnyVectorLayout(
      VectorLayout(ClusterMove(shard: 0, node: ""), .integer("shard", \.shard), .text("node", \.node))),
  ]

  private static let engineLayout = VectorLayout(
    ClusterInfo.Engine(isConnected: false), .flag("connected", \.isConnected), .flag("unsafe", \.isUnsafe),
    .text("server", \.server), .integer("commit latency", \.commitLatency),
    .custom {
      $1.set(
        "problems",
        $0.problems.map { text in
          var fields = VectorFields()
          fields.set("problem", text)
          return fields
        })
    } set: {
      $0.problems = try $1.list("problems").map { try $0.text("problem") }
    })

  private static let nodeLayout = VectorLayout(
    ClusterInfo.Node(name: "", address: "", version: "", state: .live, shards: 0, silence: 0),
    .text("name", \.name), .text("address", \.address), .text("version", \.version),
    .named("state", \.state), .integer("shards", \.shards), .integer("silence", \.silence),
    .text("problem", \.problem))

  private static let shardLayout = VectorLayout(
    ClusterInfo.Shard(number: 0, state: .held, owner: "", term: 0, target: "", pin: ""),
    .integer("number", \.number), .named("state", \.state), .text("owner", \.owner),
    .integer("term", \.term), .text("target", \.target), .text("pin", \.pin))

  private static let connectionLayout = VectorLayout(
    ConnectionInfo(
      connection: 0, client: "", identity: "", peer: "", security: "", age: 0, subscriptions: 0,
      publications: 0, buffered: 0),
    .integer("connection", \.connection), .text("client", \.client), .text("identity", \.identity),
    .text("peer", \.peer), .text("security", \.security), .integer("age", \.age),
    .integer("subscriptions", \.subscriptions), .integer("publications", \.publications),
    .integer("buffered", \.buffered), .integer("received", \.received), .integer("sent", \.sent))

  private static let stoppedLayout = VectorLayout(
    BrokerInfo.StoppedTopic(topic: "", reason: .none, milliseconds: 0), .text("topic", \.topic),
    .named("reason", \.reason), .integer("milliseconds", \.milliseconds))

  private static let problemLayout = VectorLayout(
    BrokerInfo.Problem(severity: .warning, since: 0, sentence: ""), .named("severity", \.severity),
    .integer("since", \.since), .text("sentence", \.sentence), .text("kind", \.kind),
    .text("topic", \.topic), .text("consumer", \.consumer), .integer("connection", \.connection))

  private static let problemKindLayout = VectorLayout(
    BrokerInfo.ProblemKind(kind: "", severity: .warning, since: 0, count: 0, sentence: ""),
    .text("kind", \.kind), .named("severity", \.severity), .integer("since", \.since),
    .integer("count", \.count), .text("sentence", \.sentence))

  private static let numberLayout = VectorLayout(
    BrokerInfo.Number(name: "", value: 0), .text("name", \.name), .integer("value", \.value))
}
