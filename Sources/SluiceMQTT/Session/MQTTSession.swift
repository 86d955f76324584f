import SluiceWire

/// A client's session at the broker while it has a connection. Its input is bytes, answers of the broker, and times; its output is bytes and actions.
///
/// A value without I/O and without a clock. It stores no topics and no messages: a message in flight is identified by its place in the log, and read again if
/// it must be sent again. Output of a turn is covered by the ``flush(_:)`` at its end. Times called `now` are nanoseconds of a monotonic clock; others are
/// milliseconds since 1970.
package struct MQTTSession: Sendable {
  enum Phase: Hashable {
    /// CONNECT hasn't arrived.
    case opening
    /// The broker is deciding about CONNECT.
    case connecting
    case open
    case ended
  }

  struct UnnamedWill: Sendable {
    var topic: String
    var reason: String
  }

  private let sharedRules: MQTTSessionRules.Shared
  var rules: MQTTSessionRules { sharedRules.rules }
  var decoder: MQTTDecoder
  var phase = Phase.opening
  /// Before CONNECT, the version of the answers to an invalid one.
  var version = MQTTVersion.v311
  /// Whether the session existed before this connection, and has cursors from that time, regardless of how it ends.
  var wasAway = false

  // From CONNECT.
  var isBridge = false
  var isClean = true
  var wantsProblems = true
  var wantsResponseInformation = false
  package internal(set) var clientID = ""
  @OutOfLine var will: MQTTConnect.Will? = nil
  /// A will whose topic the broker can't name, until the client is accepted.
  @OutOfLine var unnamedWill: UnnamedWill? = nil
  var expiry: UInt32 = 0
  var askedExpiry: UInt32 = 0
  /// All ones for no limit.
  var clientMaximumPacket = UInt32.max
  var keepAlive: UInt16 = 0
  var askedKeepAlive: UInt16 = 0
  var clientReceiveMaximum = UInt16.max
  var lastReceived: UInt64

  // The part that outlives the connection.
  var state = MQTTSessionState()

  // Messages from the client.
  var publications = PublicationTable()
  var aliases: InboundAliases
  /// Identifiers of messages at QoS 1 that the broker is appending.
  var appending: [UInt16] = []

  // Messages for the client.
  var clientAliases = OutboundAliases(maximum: 0)
  /// Records that were requested and haven't been delivered.
  var requested = 0
  /// Records that are being read again: nothing new is requested before they are sent.
  var fetching: [UInt16] = []
  /// Whether identifiers have wrapped around to one that is still in use.
  var hasLapped = false
  var properties = MQTTProperties()

  // Subscriptions.
  var asked: [PendingSubscribe] = []

  // The actions of the next flush.
  var commits: [(UInt16, MQTTPlace)] = []
  /// Records of groups to settle.
  var settled: [(UInt16, MQTTPlace)] = []
  var needsStore = false

  /// Packets that the caller hasn't taken yet.
  var packets = MQTTPacketCount()

  /// The nanoseconds of silence after which the connection ends; 0 for no limit.
  private var silence: UInt64 { UInt64(keepAlive) * 1_500_000_000 }

  package init(_ rules: MQTTSessionRules, now: UInt64) {
    self.init(MQTTSessionRules.Shared(rules), now: now)
  }

  package init(_ sharedRules: MQTTSessionRules.Shared, now: UInt64) {
    self.sharedRules = sharedRules
    let rules = sharedRules.rules
    decoder = MQTTDecoder(maximumPacket: Int(rules.maximumConnect), from: .client)
    aliases = InboundAliases(maximum: rules.topicAliasMaximum)
    lastReceived = now
  }

  /// The number of SUBSCRIBEs of a client that may wait for the broker's answers.
  package static let waitingSubscribes = 16

  /// Whether CONNECT hasn't arrived.
  package var awaitsConnect: Bool { phase == .opening }

  /// Whether CONNECT was accepted and the connection hasn't ended.
  package var isOpen: Bool { phase == .open }

  /// Whether the session outlives its connection.
  package var isLasting: Bool { expiry > 0 }

  /// The part of the session that outlives its connection, as it is now.
  package var encodedState: [UInt8] { state.encoded() }

  /// The sequences of the client's messages at QoS 2 for which PUBREC hasn't been sent.
  package var unacknowledgedSequences: Set<UInt64> {
    Set(state.received.lazy.filter { !$0.isAcknowledged }.map(\.sequence))
  }

  /// Seconds for which the session outlives its connection; all ones: forever.
  package var sessionExpiry: UInt32 { expiry }

  /// The topics of records in flight to the client, by the caller's numbers.
  package var topicsUnderWay: Set<UInt32> { Set(state.inFlight.kept.map(\.place.topic)) }

  /// Bytes of memory allocated for an incomplete packet.
  package var heldBytes: Int { decoder.heldBytes }

  // MARK: Bytes and times

  /// The session's properties after a call of ``receive(_:now:output:_:)``, so that the caller need not read each of them.
  package struct Received {
    /// How many bytes were consumed.
    package var taken: Int
    /// Bytes of memory allocated for an incomplete packet.
    package var heldBytes: Int
    /// Whether a subscription leaves out the client's own messages.
    package var hasNoLocal: Bool
  }

  /// Handles received bytes.
  ///
  /// - Returns: how many bytes were consumed, and the session's properties. Bytes after CONNECT aren't consumed until the broker has answered, and none are
  ///   while ``waitingSubscribes`` SUBSCRIBEs wait for its answers: the caller passes them again then.
  package mutating func receive(
    _ chunk: UnsafeRawBufferPointer, now: UInt64, output: inout [UInt8], _ perform: (MQTTAction) -> Void
  ) -> Received {
    guard phase == .opening || phase == .open else { return received(phase == .ended ? chunk.count : 0) }
    if phase == .open { lastReceived = max(lastReceived, now) }
    guard asked.count < Self.waitingSubscribes else { return received(0) }
    // Moved out, so that the session can be changed while the decoder runs.
    var decoder = MQTTDecoder(maximumPacket: 0, from: .client)
    swap(&decoder, &self.decoder)
    var taken = chunk.count
    do {
      try unsafe decoder.decode(chunk) { header, body throws(MQTTError) in
        packets.received &+= 1
        switch header.type {
        case _ where phase == .opening: unsafe open(header, body, &output, perform)
        // Frequent packets are handled without an intermediate value.
        case .publish where header.isMinimal:
          try unsafe take(MQTTPublish(header, body, version, from: .client), perform, &output)
        case .puback where header.isMinimal, .pubrec where header.isMinimal,
          .pubrel where header.isMinimal, .pubcomp where header.isMinimal:
          try unsafe take(MQTTAcknowledgement(header.type, body, version, from: .client), &output)
        default: try unsafe take(MQTTPacket(header, body, version, from: .client), &output, perform)
        }
        return phase == .open && asked.count < Self.waitingSubscribes
      }
      taken = decoder.takenBytes
    } catch {
      fail(error, &output, perform)
    }
    if phase == .connecting || phase == .open { decoder.maximumPacket = Int(rules.maximumPacket) }
    self.decoder = decoder
    return received(taken)
  }

  @inline(__always)
  private func received(_ taken: Int) -> Received {
    Received(taken: taken, heldBytes: decoder.heldBytes, hasNoLocal: state.noLocalCount > 0)
  }

  /// Handles the time: ends the connection of a client that has been silent for one and a half of its keep alive time, or that hasn't sent CONNECT in time.
  package mutating func tick(now: UInt64, output: inout [UInt8], _ perform: (MQTTAction) -> Void) {
    guard let deadline, now >= deadline else { return }
    guard phase == .open else {
      return end(nil, .keepAliveTimeout, "the client didn't send CONNECT in time", perform)
    }
    fail(
      MQTTError(.keepAliveTimeout, "the client was silent for one and a half of its keep alive time"),
      &output,
      perform)
  }

  /// The time of the next ``tick(now:output:_:)`` that has an effect; nil for none.
  package var deadline: UInt64? {
    switch phase {
    case .opening: lastReceived + rules.connectTimeout
    case .open where silence > 0: lastReceived + silence
    default: nil
    }
  }

  // MARK: Ends

  /// Handles the end of the transport.
  package mutating func transportEnded(_ perform: (MQTTAction) -> Void) {
    leave(.unspecified, "the connection was lost without DISCONNECT", perform)
  }

  /// Ends the connection because another one continues or has ended the session.
  package mutating func takenOver(output: inout [UInt8], _ perform: (MQTTAction) -> Void) {
    close(.sessionTakenOver, "another connection has the same client identifier", output: &output, perform)
  }

  /// Ends the connection on the broker's request.
  package mutating func close(
    _ reason: MQTTReason, _ message: String, output: inout [UInt8], _ perform: (MQTTAction) -> Void
  ) {
    fail(MQTTError(reason, message), &output, perform)
  }

  /// Ends the connection because of an error: with DISCONNECT if the client supports it.
  mutating func fail(_ error: MQTTError, _ output: inout [UInt8], _ perform: (MQTTAction) -> Void) {
    if phase == .open, version == .v5 {
      let reason = error.reason.isAllowed(in: .disconnect, from: .server) ? error.reason : .unspecified
      var properties = MQTTProperties()
      properties.append(.reasonString, error.message)
      send(
        .disconnect(MQTTNotice(.disconnect, reason, properties: properties)),
        or: .disconnect(MQTTNotice(.disconnect, reason)), &output)
    }
    leave(error.reason, error.message, perform)
  }

  /// Ends a connection in any phase, and publishes the will.
  mutating func leave(_ reason: MQTTReason, _ message: String, _ perform: (MQTTAction) -> Void) {
    switch phase {
    case .opening, .connecting: end(nil, reason, message, perform)
    case .open: end(departure(), reason, message, perform)
    case .ended: break
    }
  }

  mutating func end(
    _ departure: MQTTDeparture?, _ reason: MQTTReason, _ message: String, _ perform: (MQTTAction) -> Void
  ) {
    guard phase != .ended else { return }
    if departure != nil { flushCommits(perform) }
    phase = .ended
    perform(.end(departure, reason, message))
  }

  func departure() -> MQTTDeparture {
    MQTTDeparture(
      clientID: clientID, state: isLasting ? state.encoded() : nil, expiry: expiry, will: will,
      willDelay: min(will?.delay ?? 0, expiry))
  }

  // MARK: The end of a turn

  /// Performs the actions required by the events since the last flush. Called at the end of each turn of the caller's loop.
  package mutating func flush(_ perform: (MQTTAction) -> Void) {
    guard phase == .open else { return }
    if !commits.isEmpty || !settled.isEmpty || state.inFlight.span > 0 { flushCommits(perform) }
    if needsStore, isLasting { perform(.store) }
    needsStore = false
    let more = demand
    if more > 0 {
      requested += more
      perform(.request(more))
    }
  }

  mutating func flushCommits(_ perform: (MQTTAction) -> Void) {
    var passed: [(UInt16, MQTTPlace)] = commits
    let areCounted = isLasting || wasAway
    state.inFlight.takeSettled { entry in
      if areCounted, entry.hasCursor { Self.add(entry.subscription, entry.place, to: &passed) }
    }
    commits.removeAllInPlace()
    for (subscription, place) in passed where hasCursors(subscription) {
      perform(.commit(subscription, MQTTPlace(topic: place.topic, offset: place.offset + 1)))
    }
    for (subscription, place) in settled { perform(.settle(subscription, place)) }
    settled.removeAllInPlace()
  }

  /// Adds a place that was passed; only the last one of a topic is kept.
  static func add(_ subscription: UInt16, _ place: MQTTPlace, to places: inout [(UInt16, MQTTPlace)]) {
    if let last = places.last, last.0 == subscription, last.1.topic == place.topic {
      places[places.count - 1].1 = place
    } else {
      places.append((subscription, place))
    }
  }

  func isSubscribed(_ number: UInt16) -> Bool {
    state.delivery(number).isSubscribed
  }

  // MARK: Packets

  mutating func take(
    _ packet: MQTTPacket, _ output: inout [UInt8], _ perform: (MQTTAction) -> Void
  ) throws(MQTTError) {
    switch packet {
    case .publish(let publish): try take(publish, perform, &output)
    case .acknowledgement(let packet): try take(packet, &output)
    case .subscribe(let packet): try take(packet, &output, perform)
    case .unsubscribe(let packet): take(packet, &output, perform)
    case .pingreq: send(.pingresp, &output)
    case .disconnect(let packet): try take(packet, perform)
    case .connect: throw .violation("CONNECT came twice on a connection")
    case .auth: throw .violation("AUTH came, but no authentication method was agreed on")
    case .connack, .answers, .pingresp: throw .violation("the packet is for clients")
    }
  }

  private mutating func take(
    _ packet: MQTTNotice, _ perform: (MQTTAction) -> Void
  ) throws(MQTTError) {
    if let asked = packet.properties.number(.sessionExpiry) {
      guard askedExpiry > 0 || asked == 0 else {
        throw .violation("DISCONNECT sets a session expiry interval where CONNECT has none")
      }
      expiry = min(asked, rules.maximumSessionExpiry)
    }
    if packet.reason == .success { will = nil }
    end(departure(), packet.reason, "the client has disconnected", perform)
  }

  /// Sends a packet, unless it is longer than the client accepts.
  ///
  /// - Returns: whether it was sent.
  @discardableResult
  mutating func send(_ packet: MQTTPacket, _ output: inout [UInt8]) -> Bool {
    let start = output.count
    packet.encode(into: &output, version)
    guard output.count - start > clientMaximumPacket else {
      packets.sent &+= 1
      return true
    }
    output.removeLast(output.count - start)
    return false
  }

  /// Sends a packet, or a shorter one without the explanation if the client doesn't accept it.
  mutating func send(_ packet: MQTTPacket, or shorter: MQTTPacket, _ output: inout [UInt8]) {
    if !send(packet, &output) { send(shorter, &output) }
  }
}
