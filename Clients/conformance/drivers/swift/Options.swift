import SluiceClient
import Synchronization

// The kit's arguments as values of the client.

extension Command {
  func clientOptions() -> ClientOptions {
    var options = ClientOptions()
    if let user, let password { options.credentials = .password(password, user: user) }
    if let tokens {
      let left = Mutex(tokens)
      options.credentials = .provider {
        .token(left.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] })
      }
    }
    if let keepalive { options.keepalive = .milliseconds(keepalive) }
    if let connectTimeout { options.connectTimeout = .milliseconds(connectTimeout) }
    if direct == false { options.routing = .relay }
    let wanted = reconnect ?? Reconnect()
    guard wanted.isWanted else {
      options.reconnect = nil
      return options
    }
    var policy = ReconnectPolicy()
    policy.initialDelay = .milliseconds(wanted.initial ?? 20)
    policy.maximumDelay = .milliseconds(wanted.maximum ?? 200)
    policy.giveUpAfter = wanted.giveUpAfter.map { .milliseconds($0) }
    options.reconnect = policy
    return options
  }

  /// The options of all kinds of subscriptions.
  func plan() throws -> SubscriptionPlan {
    var plan = SubscriptionPlan(try topic.given("topic"))
    if let from { plan.start = try from.value() }
    for condition in `where` ?? [] { plan.filter = plan.filter && (try Self.filter(condition)) }
    if let prefetch, prefetch > 0 { plan.prefetch = .keepFull(prefetch) }
    if let lag { plan.lag = lag == "skip" ? .skip : .fail }
    if let missing { plan.ifMissing = missing == "create" ? .create : .fail }
    if let cursor { plan.cursor = SubscriptionPlan.Cursor(cursor, commit: .manual) }
    if settings != nil { plan.settings = try topicSettings() }
    return plan
  }

  private static func filter(_ condition: [String]) throws -> RecordFilter {
    switch (condition.first, condition.dropFirst().map(\.self)) {
    case ("hasKey", _): .hasKey
    case ("key", let texts): .key(equals: texts[0])
    case ("keyPrefix", let texts): .key(hasPrefix: texts[0])
    case ("hasHeader", let texts): .hasHeader(texts[0])
    case ("header", let texts): .header(texts[0], equals: texts[1])
    case ("headerPrefix", let texts): .header(texts[0], hasPrefix: texts[1])
    default: throw Mistake("there is no condition \(condition)")
    }
  }

  func groupOptions() -> GroupOptions {
    GroupOptions(
      acknowledgement: ack == false ? .automatic : .explicit, order: ordered == true ? .byKey : .any,
      deadline: deadline.map { .milliseconds($0) }, deliveries: deliveries, deadLetters: deadLetters,
      retryBackoff: retryBackoff.map { .milliseconds($0[0]) ... .milliseconds($0[1]) })
  }

  func acknowledgement() throws -> TopicSubject.Acknowledgement {
    switch acknowledge {
    case nil, "received": .received
    case "none": .none
    case "durable": .durable
    case let word?: throw Mistake("there is no acknowledgement \(word)")
    }
  }

  func topicSettings() throws -> TopicSettings {
    var all = TopicSettings()
    for (name, value) in settings ?? [:] {
      switch (name, value) {
      case ("replay-records", .number(let count)): all.replayRecords = count
      case ("replay-bytes", .number(let count)): all.replayBytes = count
      case ("replay-age", .number(let age)): all.replayAge = age
      case ("scope", .word(let word)): all.scope = word == "connected" ? .whileConnected : .forever
      case ("flow", .word("free")): all.flow = .free
      case ("flow", .word("lossless")): all.flow = .lossless
      case ("flow", .word("fastest")): all.flow = .fastest
      case ("connect", .word("manual")): all.connect = .manual
      case ("connect", .word("immediate")): all.connect = .immediate
      case ("connect", .number(let count)): all.connect = .auto(UInt32(clamping: count))
      case ("buffer-records", .number(let count)): all.bufferRecords = count
      case ("buffer-bytes", .number(let count)): all.bufferBytes = count
      case ("without-subscribers", .word("buffer")): all.withoutSubscribers = .buffer
      case ("without-subscribers", .word("hold")): all.withoutSubscribers = .hold
      case ("without-subscribers", .word("drop")): all.withoutSubscribers = .drop
      case ("lag", .word(let word)): all.lag = word == "skip" ? .skip : .fail
      case ("compact", .flag(let flag)): all.compact = flag
      case ("auto-delete", .flag(let flag)): all.autoDelete = flag
      case ("storage", .word(let word)): all.storage = word == "durable" ? .durable : .memory
      case ("sync", .word(let word)): all.sync = word == "os" ? .os : .always
      case ("sync", .number(let time)): all.sync = .interval(UInt32(clamping: time))
      case ("when-producer-lost", .number(let time)):
        all.whenProducerLost = .fail(after: UInt32(clamping: time))
      default: throw Mistake("there is no setting \(name) of \(value)")
      }
    }
    return all
  }
}

extension Command.Start {
  func value() throws -> SubscriptionPlan.Start {
    switch word {
    case "replay": .replay
    case "earliest": .earliest
    case "new": .new
    case "last": .last(UInt64(number))
    case "offset": .offset(UInt64(number))
    case "since": .time(Timestamp(millisecondsSince1970: number))
    default: throw Mistake("there is no start \(word)")
    }
  }
}
