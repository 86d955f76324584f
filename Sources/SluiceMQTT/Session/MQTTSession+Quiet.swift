import SluiceWire

// A session without messages in flight uses little of its value's memory. It is packed, and unpacked at the next event.
extension MQTTSession {
  /// The parts that few sessions have, kept without packing.
  package struct Extras: Sendable {
    fileprivate var will: MQTTConnect.Will?
    fileprivate var isBridge: Bool
    fileprivate var publications: PublicationTable
    fileprivate var aliases: InboundAliases
  }

  /// Whether the session is open and has no messages in flight in either direction: it may be packed.
  package var isQuiet: Bool {
    phase == .open && decoder.pendingBytes == 0 && appending.isEmpty && fetching.isEmpty && asked.isEmpty
      && commits.isEmpty && settled.isEmpty && !needsStore && state.isQuiet
  }

  /// Nil if the session has none of these parts.
  package var extras: Extras? {
    guard will != nil || isBridge || !publications.isEmpty || !aliases.isEmpty else { return nil }
    return Extras(will: will, isBridge: isBridge, publications: publications, aliases: aliases)
  }

  /// Writes a quiet session, without its extras.
  package func pack(into writer: inout PackedWriter) {
    assert(isQuiet, "a session with unfinished exchanges isn't packed")
    let (hasExpiry, hasKeepAlive) = (expiry > 0 || askedExpiry > 0, keepAlive > 0 || askedKeepAlive > 0)
    writer.flags(
      version == .v5, wasAway, isClean, wantsProblems, wantsResponseInformation, hasLapped, hasExpiry,
      hasKeepAlive)
    writer.text(clientID)
    if hasExpiry {
      writer.number(expiry)
      writer.number(askedExpiry)
    }
    // All ones, the usual value, becomes 0, which takes one byte.
    writer.number(clientMaximumPacket &+ 1)
    writer.number(clientReceiveMaximum &+ 1)
    if hasKeepAlive {
      writer.number(keepAlive)
      writer.number(askedKeepAlive)
      writer.number(lastReceived)
    }
    writer.number(requested)
    clientAliases.pack(into: &writer)
    state.pack(into: &writer)
  }

  /// Restores a packed session.
  package init(_ rules: MQTTSessionRules.Shared, unpacking reader: inout PackedReader, _ extras: Extras?) {
    self.init(rules, now: 0)
    decoder = MQTTDecoder(goingOnWith: Int(self.rules.maximumPacket), from: .client)
    phase = .open
    let flags = reader.flags()
    version = flags[0] ? .v5 : .v311
    (wasAway, isClean, wantsProblems) = (flags[1], flags[2], flags[3])
    (wantsResponseInformation, hasLapped) = (flags[4], flags[5])
    clientID = reader.text()
    if flags[6] {
      expiry = reader.number()
      askedExpiry = reader.number()
    }
    clientMaximumPacket = reader.number(UInt32.self) &- 1
    clientReceiveMaximum = reader.number(UInt16.self) &- 1
    if flags[7] {
      keepAlive = reader.number()
      askedKeepAlive = reader.number()
      lastReceived = reader.number()
    }
    requested = reader.number()
    clientAliases = OutboundAliases(unpacking: &reader)
    state = MQTTSessionState(unpacking: &reader)
    guard let extras else { return }
    (will, isBridge) = (extras.will, extras.isBridge)
    (publications, aliases) = (extras.publications, extras.aliases)
  }
}

extension MQTTSessionState {
  /// Whether no message is in flight.
  var isQuiet: Bool { inFlight.span == 0 && releasing.isEmpty && received.isEmpty }

  fileprivate func pack(into writer: inout PackedWriter) {
    writer.number(lastPacketID)
    writer.number(nextSequence)
    writer.number(subscriptions.count)
    for subscription in subscriptions {
      // No filter is empty.
      writer.text(subscription?.filter.description ?? "")
      guard let subscription else { continue }
      writer.number(subscription.options.byte)
      writer.number(subscription.identifier)
      writer.start(subscription.start)
    }
  }

  fileprivate init(unpacking reader: inout PackedReader) {
    lastPacketID = reader.number()
    nextSequence = reader.number()
    for number in 0..<reader.number(Int.self) {
      let text = reader.text()
      guard !text.isEmpty else {
        set(number, nil)
        continue
      }
      let options = try? MQTTSubscriptionOptions(reader.number(), .v5)
      let (identifier, start) = (reader.number(UInt32.self), reader.start())
      guard let filter = try? MQTTTopicFilter(text), let options else {
        preconditionFailure("a packed filter can't be read")
      }
      set(number, Subscription(filter: filter, options: options, identifier: identifier, start: start))
    }
  }
}

extension OutboundAliases {
  fileprivate func pack(into writer: inout PackedWriter) {
    writer.number(maximum)
    guard maximum > 0 else { return }
    writer.number(topics.count)
    for topic in topics { writer.number(topic) }
  }

  fileprivate init(unpacking reader: inout PackedReader) {
    self.init(maximum: reader.number())
    guard maximum > 0 else { return }
    for _ in 0..<reader.number(Int.self) { add(reader.number()) }
  }
}

extension PackedWriter {
  /// Where a subscription begins.
  package mutating func start(_ start: Subscribe.Start) {
    let (kind, value) = MQTTSessionState.encode(start)
    number(kind)
    if kind >= MQTTSessionState.startsWithValue { number(value) }
  }
}

extension PackedReader {
  package mutating func start() -> Subscribe.Start {
    let kind = number(UInt8.self)
    guard let start = MQTTSessionState.start(kind, kind >= MQTTSessionState.startsWithValue ? number() : 0)
    else {
      preconditionFailure("a packed place can't be read")
    }
    return start
  }
}
