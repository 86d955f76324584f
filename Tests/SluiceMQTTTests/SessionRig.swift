import SluiceMQTT
import SluiceWire
import TestSupport

/// A session's request to the broker, in a comparable form.
enum Asked: Equatable {
  case connect(MQTTConnect)
  case open(UInt16, String)
  case close(UInt16)
  case publish(OwnedPacket.Publish, UInt16, sequence: UInt64?)
  case retain(OwnedPacket.Publish, String)
  case subscribe(MQTTSubscriptionRequest)
  case tellOwn
  case unsubscribe(UInt16)
  case request(Int)
  case sendRetained(UInt16)
  case fetch(UInt16, MQTTPlace)
  case commit(UInt16, MQTTPlace)
  case settle(UInt16, MQTTPlace)
  /// The state is in ``SessionRig/stored``.
  case store
  case forget
  /// The departure is in ``SessionRig/departure``.
  case end(MQTTReason)
}

/// A session with a scripted client and broker.
struct SessionRig {
  private let rules: MQTTSessionRules.Shared
  private(set) var session: MQTTSession
  /// Whether the session is packed and unpacked whenever no message is in progress, and how often it was.
  var packsWhenQuiet = false
  private(set) var packings = 0
  /// All packets and requests, in order.
  private(set) var history: [Happening] = []

  enum Happening: Equatable {
    case sent([UInt8])
    case asked(Asked)
  }

  let version: MQTTVersion
  private(set) var stored: [UInt8]?
  private(set) var departure: MQTTDeparture?
  private var asks: [Asked] = []
  private var output: [UInt8] = []
  var now: UInt64 = 0
  /// Milliseconds since 1970.
  var time: Int64 = 1_000_000
  var nextOffset: UInt64 = 0

  init(_ version: MQTTVersion = .v5, _ rules: MQTTSessionRules = MQTTSessionRules()) {
    self.version = version
    self.rules = MQTTSessionRules.Shared(rules)
    session = MQTTSession(self.rules, now: 0)
  }

  /// A session with a connected client, and empty output.
  static func connected(
    _ version: MQTTVersion = .v5, _ rules: MQTTSessionRules = MQTTSessionRules(), clean: Bool = true,
    expiry: UInt32 = 0, state: [UInt8]? = nil, will: MQTTConnect.Will? = nil,
    _ build: (inout MQTTProperties) -> Void = { _ in }
  ) -> SessionRig {
    var rig = SessionRig(version, rules)
    var properties = MQTTProperties()
    if version == .v5, expiry > 0 { properties.append(.sessionExpiry, expiry) }
    build(&properties)
    let connect = MQTTConnect(
      version, clientID: "c", cleanStart: version == .v311 ? expiry == 0 : clean, keepAlive: 10, will: will,
      properties: properties)
    rig.send(.connect(connect))
    rig.admit(state: state)
    _ = (rig.packets, rig.asked)
    return rig
  }

  // MARK: The client

  /// Sends packets from the client.
  mutating func send(_ packets: OwnedPacket...) { send(bytes: packets.flatMap { $0.encoded(version) }) }

  /// Returns the number of bytes read.
  @discardableResult
  mutating func send(bytes: [UInt8]) -> Int {
    handle { session, output, perform, now, _ in
      withExactMemory(bytes) { session.receive($0, now: now, output: &output, perform).taken }
    }
  }

  mutating func send(_ type: MQTTPacketType, _ packetID: UInt16, _ reason: MQTTReason = .success) {
    send(.acknowledgement(MQTTAcknowledgement(type, packetID, reason)))
  }

  mutating func publish(
    _ topic: String, _ payload: String = "p", _ qos: MQTTQoS = .atMostOnce, _ packetID: UInt16 = 0,
    isDuplicate: Bool = false, isRetained: Bool = false,
    _ build: (inout MQTTProperties) -> Void = { _ in }
  ) {
    send(
      .publish(
        OwnedPacket.Publish(
          topic: topic, payload: Array(payload.utf8), qos: qos, packetID: packetID, isDuplicate: isDuplicate,
          isRetained: isRetained, properties: MQTTProperties(build))))
  }

  /// Subscribes, with the broker's approval.
  mutating func subscribe(
    _ filter: String, _ options: MQTTSubscriptionOptions, _ build: (inout MQTTProperties) -> Void = { _ in }
  ) {
    let items = [MQTTSubscribe.Item(filter, options)]
    send(.subscribe(MQTTSubscribe(1, items, properties: MQTTProperties(build))))
    answerSubscriptions()
    flush()
    _ = (packets, asked)
  }

  // MARK: The broker

  mutating func admit(_ clientID: String = "c", state: [UInt8]? = nil) {
    handle { session, output, perform, now, _ in
      session.connected(
        MQTTAdmission(clientID: clientID, state: state), now: now, output: &output, perform)
    }
  }

  mutating func refuse(_ reason: MQTTReason, _ message: String = "why") {
    handle { session, output, perform, _, _ in
      session.refused(reason, message, output: &output, perform)
    }
  }

  /// Approves every requested subscription, and keeps the other requests.
  mutating func answerSubscriptions() {
    let all = asks
    for case .subscribe(let request) in all { subscribed(request.number) }
  }

  mutating func subscribed(_ number: UInt16, _ failure: MQTTError? = nil) {
    handle { session, output, perform, _, _ in
      session.subscribed(number, failure, output: &output, perform)
    }
  }

  mutating func appended(_ packetID: UInt16, _ failure: MQTTError? = nil) {
    handle { session, output, perform, _, _ in
      session.appended(packetID, failure, output: &output, perform)
    }
  }

  /// Delivers a record published by MQTT.
  mutating func deliver(
    _ topic: String = "a", _ payload: String = "p", _ qos: MQTTQoS = .exactlyOnce, on number: UInt16 = 0,
    topicNumber: UInt32 = 7, isOwn: Bool = false, isRetained: Bool = false, wasRetained: Bool = false,
    properties: MQTTProperties = MQTTProperties(), age: Int64 = 0
  ) {
    let batch = record(payload, qos, wasRetained, properties)
    let place = MQTTPlace(topic: topicNumber, offset: nextOffset)
    nextOffset += 1
    handle { session, output, _, _, time in
      Self.with(batch, topic, place, time - age, isOwn: isOwn, isRetained: isRetained) { record in
        session.deliver(record, on: number, time: time, output: &output)
      }
    }
  }

  mutating func fetched(
    _ packetID: UInt16, _ topic: String, _ payload: String?, _ place: MQTTPlace,
    properties: MQTTProperties = MQTTProperties(), age: Int64 = 0
  ) {
    let batch = payload.map { record($0, .exactlyOnce, false, properties) }
    handle { session, output, _, _, time in
      guard let batch else { return session.fetched(packetID, nil, time: time, output: &output) }
      Self.with(batch, topic, place, time - age, isOwn: false, isRetained: false) { record in
        session.fetched(packetID, record, time: time, output: &output)
      }
    }
  }

  /// A batch of one record, as an MQTT publisher creates it.
  private func record(
    _ payload: String, _ qos: MQTTQoS, _ isRetained: Bool, _ properties: MQTTProperties
  ) -> [UInt8] {
    var batch: [UInt8] = []
    Array(payload.utf8).withUnsafeBytes { payload in
      properties.withView { view in
        let message = MQTTPublish(
          topic: payload, payload: payload, qos: qos, isRetained: isRetained, properties: view)
        precondition(MQTTRecordWriter.append(message, to: &batch))
      }
    }
    return batch
  }

  private static func with(
    _ batch: [UInt8], _ topic: String, _ place: MQTTPlace, _ time: Int64, isOwn: Bool, isRetained: Bool,
    _ body: (MQTTRecord) -> Void
  ) {
    withExactMemory(batch) { batch in
      withExactMemory(Array(topic.utf8)) { topic in
        let word = RecordLayout.word(at: batch.baseAddress!)
        body(
          MQTTRecord(
            topic: topic, place: place, time: time, isAttributed: RecordLayout.kind(word) == .attributed,
            body: UnsafeRawBufferPointer(rebasing: batch[RecordLayout.wordSize...]), isOwn: isOwn,
            isRetained: isRetained))
      }
    }
  }

  mutating func topicEnded(_ topic: String, failure: (code: UInt32, message: String)? = nil) {
    handle { session, output, _, _, _ in
      session.topicEnded(topic, on: 0, failure: failure, output: &output)
    }
  }

  mutating func tick(_ seconds: Double) {
    now = UInt64(seconds * 1_000_000_000)
    handle { session, output, perform, now, _ in session.tick(now: now, output: &output, perform) }
  }

  mutating func lose() { handle { session, _, perform, _, _ in session.transportEnded(perform) } }

  mutating func takeOver() {
    handle { session, output, perform, _, _ in session.takenOver(output: &output, perform) }
  }

  mutating func shutDown() {
    handle { session, output, perform, _, _ in
      session.close(.serverShuttingDown, "the broker stops", output: &output, perform)
    }
  }

  mutating func flush() { handle { session, _, perform, _, _ in session.flush(perform) } }

  // MARK: What is seen

  /// Denied filters, by SUBSCRIBE.
  private(set) var refused: [MQTTRefusedFilters] = []

  /// Topics of unpublished messages, whose names the broker can't map.
  private(set) var unnamed: [String] = []

  /// The packets received by the client since the last call.
  var packets: [OwnedPacket] {
    mutating get {
      defer { output = [] }
      do {
        return try OwnedPacket.all(in: output, version, from: .server)
      } catch {
        fatalError("the session has sent what a client refuses: \(error): \(output)")
      }
    }
  }

  var bytes: [UInt8] {
    mutating get {
      defer { output = [] }
      return output
    }
  }

  /// The requests to the broker since the last call.
  var asked: [Asked] {
    mutating get {
      defer { asks = [] }
      return asks
    }
  }

  @discardableResult
  private mutating func handle<Result>(
    _ body: (inout MQTTSession, inout [UInt8], (MQTTAction) -> Void, UInt64, Int64) -> Result
  ) -> Result {
    var (output, asks, departure, refused) = (output, asks, departure, refused)
    var unnamed = unnamed
    var isStored = false
    let result = body(
      &session, &output,
      { action in
        switch action {
        case .connect(let connect): asks.append(.connect(connect))
        case .openPublication(let number, let topic): asks.append(.open(number, topic))
        case .closePublication(let number): asks.append(.close(number))
        case .publish(let publish, let number, let sequence):
          if case .publish(let publish) = OwnedPacket(.publish(publish)) {
            asks.append(.publish(publish, number, sequence: sequence))
          }
        case .retain(let publish, let topic):
          if case .publish(let publish) = OwnedPacket(.publish(publish)) {
            asks.append(.retain(publish, topic))
          }
        case .subscribe(let request): asks.append(.subscribe(request))
        case .tellOwn: asks.append(.tellOwn)
        case .unsubscribe(let number): asks.append(.unsubscribe(number))
        case .request(let count): asks.append(.request(count))
        case .sendRetained(let number): asks.append(.sendRetained(number))
        case .fetch(let packetID, let place): asks.append(.fetch(packetID, place))
        case .commit(let number, let place): asks.append(.commit(number, place))
        case .settle(let number, let place): asks.append(.settle(number, place))
        case .store:
          isStored = true
          asks.append(.store)
        case .refused(let filters): refused.append(filters)
        case .unnamed(let topic, _): unnamed.append(topic)
        case .forget: asks.append(.forget)
        case .end(let left, let reason, _):
          departure = left
          asks.append(.end(reason))
        }
      }, now, time)
    history.append(.sent(Array(output[self.output.count...])))
    history += asks[self.asks.count...].map { .asked($0) }
    (self.output, self.asks, self.departure, self.refused) = (output, asks, departure, refused)
    self.unnamed = unnamed
    if isStored { stored = session.encodedState }
    if packsWhenQuiet, session.isQuiet { pack() }
    return result
  }

  private mutating func pack() {
    var writer = PackedWriter()
    session.pack(into: &writer)
    var reader = PackedReader(writer.bytes)
    session = MQTTSession(rules, unpacking: &reader, session.extras)
    packings += 1
  }
}

/// PUBLISH as received by a client.
func received(
  _ topic: String = "a", _ payload: String = "p", _ qos: MQTTQoS = .atMostOnce, _ packetID: UInt16 = 0,
  isDuplicate: Bool = false, isRetained: Bool = false,
  _ build: (inout MQTTProperties) -> Void = { _ in }
) -> OwnedPacket {
  .publish(
    OwnedPacket.Publish(
      topic: topic, payload: Array(payload.utf8), qos: qos, packetID: packetID, isDuplicate: isDuplicate,
      isRetained: isRetained, properties: MQTTProperties(build)))
}

func acknowledgement(
  _ type: MQTTPacketType, _ packetID: UInt16, _ reason: MQTTReason = .success, _ message: String? = nil
) -> OwnedPacket {
  var properties = MQTTProperties()
  if let message { properties.append(.reasonString, message) }
  return .acknowledgement(MQTTAcknowledgement(type, packetID, reason, properties: properties))
}
