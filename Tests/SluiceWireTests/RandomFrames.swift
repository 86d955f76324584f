import SluiceWire
import TestSupport

/// Frames of every type with random values, with many extremes.
struct RandomFrames {
  var random: SeededRandom

  mutating func next() -> any Frame {
    let makers: [(inout RandomFrames) -> any Frame] = [
      { $0.hello() }, { $0.welcome() },
      { Ping(token: $0.integer()) }, { Pong(token: $0.integer()) },
      { GoAway(code: $0.code(), message: $0.text(1024)) },
      { Fault(code: $0.code(), message: $0.text(1024)) },
      { $0.subscribe() },
      { $0.subscribed() },
      {
        SubscribePattern(
          pattern: $0.text(300), start: $0.start(), lag: $0.lag(), grantedThrough: $0.integer(),
          filter: $0.filter(), positions: $0.list { $0.position() }, more: .random(using: &$0.random))
      },
      { frames in Positions(frames.list { $0.position() }, more: .random(using: &frames.random)) },
      { Matched(number: $0.integer(), topic: $0.text(300), place: $0.subscribed()) },
      { Floor(floor: $0.integer()) },
      { Origin(node: $0.text(255), connection: $0.integer(), client: $0.text(255)) },
      { Unmatched(number: $0.integer()) }, { SelectTopic(number: $0.integer()) },
      {
        Lend(
          grantedThrough: $0.integer(), pacedThrough: $0.integer(), recalls: .random(using: &$0.random))
      },
      {
        Offer(
          returned: $0.integer(), waits: .random(using: &$0.random), isPaced: .random(using: &$0.random))
      },
      {
        JoinGroup(
          topic: $0.text(300), group: $0.text(300), start: $0.start(), settings: $0.groupSettings(),
          ifMissing: $0.ifMissing(), grantedThrough: $0.integer())
      },
      { Deliveries(count: $0.integer()) },
      { frames in
        let count: UInt32 = frames.integer()
        return Settle(
          Settle.Verdict.allCases.randomElement(using: &frames.random)!, delivery: frames.integer(),
          firstOffset: min(frames.integer(), .max - UInt64(count)), count: count, delay: frames.integer())
      },
      { Commit(nextOffset: $0.integer()) },
      { CursorList(topic: $0.text(300), after: $0.text(300), limit: $0.integer()) },
      { frames in Cursors(cursors: frames.list { $0.cursor() }, more: .random(using: &frames.random)) },
      { CursorMove(topic: $0.text(300), name: $0.text(300), to: $0.start()) },
      { CursorDelete(topic: $0.text(300), name: $0.text(300)) },
      { TopicSet(topic: $0.text(300), settings: $0.settings()) },
      { frames in
        let value: UInt64 = frames.integer()
        return TopicTrim(
          topic: frames.text(300), .random(using: &frames.random) ? .from(value) : .newest(value))
      },
      { StateList(topic: $0.text(300), kind: .group, after: Array($0.text(200).utf8)) },
      { frames in
        TopicStates(
          epoch: frames.integer(), nextOffset: frames.integer(),
          states: frames.list { StateEntry(key: Array($0.text(200).utf8), value: Array($0.text(300).utf8)) },
          more: .random(using: &frames.random))
      },
      { frames in
        StateRestore(
          topic: frames.text(300), kind: .producer, origin: frames.integer(),
          states: frames.list { StateEntry(key: Array($0.text(200).utf8), value: Array($0.text(300).utf8)) })
      },
      { ConnectionList(after: $0.integer(), limit: $0.integer()) },
      { frames in
        Connections(connections: frames.list { $0.connection() }, more: .random(using: &frames.random))
      },
      { ConnectionClose(connection: $0.integer()) }, { _ in BrokerShow() },
      { frames in
        BrokerInfo(
          time: frames.integer(), uptime: frames.integer(), storage: StorageStatus(used: frames.integer()),
          stopped: frames.integer(),
          stoppedTopics: frames.list {
            BrokerInfo.StoppedTopic(topic: $0.text(300), reason: .storageFull, milliseconds: $0.integer())
          }, numbers: frames.list { BrokerInfo.Number(name: $0.text(300), value: $0.integer()) },
          problems: frames.list {
            BrokerInfo.Problem(
              severity: .init(rawValue: $0.integer()), since: $0.integer(), sentence: $0.text(900),
              kind: $0.text(64), topic: $0.text(255), consumer: $0.text(255), connection: $0.integer())
          },
          problemKinds: frames.list {
            BrokerInfo.ProblemKind(
              kind: $0.text(64), severity: .init(rawValue: $0.integer()), since: $0.integer(),
              count: $0.integer(), sentence: $0.text(900))
          })
      },
      {
        ClusterShow(
          after: $0.text(300), nodes: $0.integer(), firstShard: $0.integer(), shards: $0.integer())
      },
      { $0.clusterInfo() },
      { ClusterDrain(node: $0.text(300), wanted: .random(using: &$0.random)) },
      { ClusterMove(shard: $0.integer(), node: $0.text(300)) },
      { Demand(grantedThrough: $0.integer(), bytesThrough: $0.integer()) },
      { Redirect(node: $0.text(255), address: $0.text(300)) },
      { Live(nextOffset: $0.integer()) }, { Producers(count: $0.integer()) },
      { Lag(missed: $0.integer(), nextOffset: $0.integer()) },
      { _ in Cancel() }, { Cancelled(hasStartedOver: .random(using: &$0.random)) },
      { _ in Done() },
      { Complete($0.ending()) },
      {
        PublishOpen(
          topic: $0.text(300),
          acknowledgement: [.none, .received, .durable].randomElement(using: &$0.random)!,
          role: PublishOpen.Role.allCases.randomElement(using: &$0.random)!,
          producer: $0.integer(), firstSequence: min($0.integer(), PublishOpen.largestFirstSequence),
          settings: $0.settings())
      },
      {
        PublishOpened(
          epoch: $0.integer(), grantedThrough: $0.integer(), bytesThrough: $0.integer(),
          nextSequence: $0.integer())
      },
      { _ in Connected() }, { _ in Disconnected() },
      { TopicConnect(topic: $0.text(300)) }, { TopicDisconnect(topic: $0.text(300)) },
      { Ack(through: $0.integer(), lastOffset: $0.integer()) },
      { TopicCreate(topic: $0.text(300), settings: $0.settings()) },
      { Authenticate($0.credentials()) }, { Authenticated(identity: $0.text(255), expires: $0.integer()) },
      { TopicShow(topic: $0.text(300)) }, { TopicDelete(topic: $0.text(300)) },
      { TopicList(after: $0.text(300), limit: $0.integer()) },
      { frames in
        Topics(topics: frames.list { $0.summary() }, more: .random(using: &frames.random))
      },
      { $0.info() },
    ]
    return makers.randomElement(using: &random)!(&self)
  }

  mutating func clusterInfo() -> ClusterInfo {
    ClusterInfo(
      name: text(255), unreadiness: text(1024),
      engine: ClusterInfo.Engine(
        isConnected: .random(using: &random), isUnsafe: .random(using: &random), server: text(255),
        commitLatency: integer(), problems: list { $0.text(1024) }),
      moreNodes: .random(using: &random),
      nodes: list {
        ClusterInfo.Node(
          name: $0.text(255), address: $0.text(255), version: $0.text(255),
          state: .init(rawValue: $0.integer()),
          shards: $0.integer(), silence: $0.integer(), problem: $0.text(1024))
      }, shardCount: integer(), moreShards: .random(using: &random),
      shards: list {
        ClusterInfo.Shard(
          number: $0.integer(), state: .init(rawValue: $0.integer()), owner: $0.text(255), term: $0.integer(),
          target: $0.text(255), pin: $0.text(255))
      }, numbers: list { BrokerInfo.Number(name: $0.text(300), value: $0.integer()) })
  }

  mutating func connection() -> ConnectionInfo {
    ConnectionInfo(
      connection: integer(), client: text(255), identity: text(255), peer: text(255), security: text(255),
      age: integer(), subscriptions: integer(), publications: integer(), buffered: integer(),
      received: integer(), sent: integer())
  }

  mutating func integer<I: FixedWidthInteger & UnsignedInteger>() -> I {
    switch Int.random(in: 0..<4, using: &random) {
    case 0: [0, 1, .max, .max - 1, .max / 2, .max / 2 + 1].randomElement(using: &random)!
    case 1: .random(in: 0...255, using: &random)
    default: .random(in: 0 ... .max, using: &random)
    }
  }

  /// Text of at most `limit` bytes.
  mutating func text(_ limit: Int) -> String {
    let alphabet: [Unicode.Scalar] = ["a", ".", "\0", "é", "界", "🙂", "\u{301}", "\n"]
    let length = Int.random(in: 0...[0, 5, limit / 4].randomElement(using: &random)!, using: &random)
    return (0..<length).reduce(into: "") { text, _ in
      text.unicodeScalars.append(alphabet.randomElement(using: &random)!)
    }
  }

  private mutating func list<T>(_ make: (inout RandomFrames) -> T) -> [T] {
    (0..<Int.random(in: 0...3, using: &random)).map { _ in make(&self) }
  }

  private mutating func code() -> ErrorCode { ErrorCode(rawValue: integer()) }

  private mutating func hello() -> Hello {
    let versions: [UInt16] = [integer(), integer()].sorted()
    return Hello(
      versions: versions[0]...versions[1], features: integer(), maximumFrame: integer(), keepalive: integer(),
      name: text(255), credentials: credentials())
  }

  private mutating func credentials() -> Credentials {
    switch Int.random(in: 0...3, using: &random) {
    case 0: .none
    case 1: .password(text(300), user: text(300))
    case 2: .node(onBehalfOf: text(300))
    default: .token(text(300))
    }
  }

  private mutating func welcome() -> Welcome {
    Welcome(
      version: integer(), features: integer(), maximumFrame: integer(), maximumRecord: integer(),
      maximumStreams: integer(), keepalive: integer(), broker: integer(), software: text(255),
      identity: text(255), expires: integer())
  }

  private mutating func subscribe() -> Subscribe {
    Subscribe(
      topic: text(300), start: start(), lag: lag(), ifMissing: ifMissing(), epoch: integer(),
      grantedThrough: integer(), cursor: text(300), filter: filter(), wantsProducers: .random(using: &random),
      settings: settings())
  }

  private mutating func ifMissing() -> Subscribe.IfMissing {
    Subscribe.IfMissing.allCases.randomElement(using: &random)!
  }

  private mutating func start() -> Subscribe.Start {
    let starts: [Subscribe.Start] = [
      .replay, .earliest, .new, .last(integer()), .offset(integer()), .time(Int64(bitPattern: integer())),
    ]
    return starts.randomElement(using: &random)!
  }

  private mutating func lag() -> Subscribe.LagPolicy? {
    [.skip, .fail, nil].randomElement(using: &random)!
  }

  private mutating func subscribed() -> Subscribed {
    Subscribed(
      epoch: integer(), nextOffset: integer(), liveOffset: integer(), gaps: .random(using: &random),
      continues: .random(using: &random))
  }

  private mutating func filter() -> RecordFilter {
    RecordFilter(
      list { frames in
        let value = Array(frames.text(300).utf8)
        let tests: [RecordFilter.Test] = [.exists, .equals(value), .hasPrefix(value)]
        return RecordFilter.Condition(
          .random(using: &frames.random) ? .key : .header(frames.text(300)),
          tests.randomElement(using: &frames.random)!)
      })
  }

  private mutating func position() -> TopicPosition {
    TopicPosition(topic: text(300), epoch: integer(), nextOffset: integer())
  }

  private mutating func groupSettings() -> JoinGroup.Settings {
    JoinGroup.Settings(
      acknowledgement: JoinGroup.Acknowledgement.allCases.randomElement(using: &random)!,
      order: JoinGroup.Order.allCases.randomElement(using: &random)!, deadline: integer(),
      deliveries: integer(), deadLetters: text(300), filter: filter(),
      retryBackoff: JoinGroup.Backoff(first: integer(), longest: integer()))
  }

  private mutating func cursor() -> CursorInfo {
    CursorInfo(
      name: text(255), kind: CursorInfo.Kind.allCases.randomElement(using: &random)!, epoch: integer(),
      nextOffset: integer(), end: integer(), members: integer(), outstanding: integer(), idle: integer(),
      bytes: integer(), age: integer(), redeliveries: integer(), deadLetters: integer(), abandoned: integer(),
      missed: integer(), delayed: integer(), nextRetry: integer())
  }

  private mutating func ending() -> Complete.Ending {
    .random(using: &random) ? .finished : .failure(code: code(), message: text(1024))
  }

  private mutating func settings() -> TopicSettings {
    var settings = TopicSettings(replayRecords: maybe(), replayBytes: maybe(), replayAge: maybe())
    settings.scope = [nil, .forever, .whileConnected].randomElement(using: &random)!
    settings.flow = [nil, .free, .lossless, .fastest].randomElement(using: &random)!
    settings.connect = [
      nil, .immediate, .auto(max(1, integer())), .autoStay(max(1, integer())), .manual,
    ].randomElement(using: &random)!
    settings.bufferRecords = maybe()
    settings.bufferBytes = maybe()
    settings.withoutSubscribers = [nil, .buffer, .hold, .drop].randomElement(using: &random)!
    settings.lag = [nil, .skip, .fail].randomElement(using: &random)!
    settings.compact = [nil, true, false].randomElement(using: &random)!
    settings.autoDelete = [nil, true, false].randomElement(using: &random)!
    settings.storage = [nil, .memory, .durable].randomElement(using: &random)!
    settings.sync = [nil, .always, .interval(.random(in: 1...UInt32.max, using: &random)), .os]
      .randomElement(using: &random)!
    settings.whenProducerLost = [nil, .wait, .fail(after: max(1, integer()))].randomElement(using: &random)!
    return settings
  }

  private mutating func maybe() -> UInt64? {
    .random(using: &random) ? integer() : nil
  }

  private mutating func summary() -> TopicSummary {
    TopicSummary(
      topic: text(300), epoch: integer(), firstOffset: integer(), nextOffset: integer(), bytes: integer(),
      ending: .random(using: &random) ? nil : ending(), subscriptions: integer(), publications: integer(),
      records: integer(), storage: .random(using: &random) ? .memory : .durable)
  }

  private mutating func dropped() -> DroppedRecords {
    var dropped = DroppedRecords()
    for cause in DroppedRecords.Cause.allCases {
      dropped[cause] = .init(records: integer(), bytes: integer())
    }
    return dropped
  }

  private mutating func info() -> TopicInfo {
    TopicInfo(
      summary: summary(), settings: settings(),
      subscriptions: list {
        TopicInfo.Subscription(
          connection: $0.integer(), client: $0.text(255), stream: $0.integer(),
          state: .init(rawValue: $0.integer()), nextOffset: $0.integer(), granted: $0.integer(),
          sent: $0.integer(), consumer: $0.text(64), slowness: .init(rawValue: $0.integer()),
          slow: $0.integer(), age: $0.integer(), node: $0.text(255))
      },
      publications: list {
        TopicInfo.Publication(
          connection: $0.integer(), client: $0.text(255), stream: $0.integer(), granted: $0.integer(),
          received: $0.integer(), waiting: $0.integer(), reason: .init(rawValue: $0.integer()),
          node: $0.text(255))
      },
      dropped: dropped(),
      storage: StorageStatus(
        state: .init(rawValue: integer()), since: integer(), used: integer(), limit: integer()),
      isStated: .random(using: &random), withoutProducers: integer(), consumerCount: integer(),
      consumers: list {
        TopicInfo.Consumer(
          name: $0.text(255), kind: $0.integer() % 2 as UInt8 == 0 ? .cursor : .group,
          nextOffset: $0.integer(), lag: $0.integer(), bytes: $0.integer(), age: $0.integer(),
          members: $0.integer(), unacknowledged: $0.integer(), redeliveries: $0.integer(),
          deadLetters: $0.integer(), abandoned: $0.integer(), missed: $0.integer(), idle: $0.integer(),
          delayed: $0.integer(), nextRetry: $0.integer())
      })
  }
}
