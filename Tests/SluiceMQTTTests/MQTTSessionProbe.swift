import SluiceMQTT
import TestSupport

/// A client and a broker that use a session as a fuzzer's input says, over several connections, with the conditions that must hold.
struct MQTTSessionProbe {
  private var input: ProbeInput
  private let packsWhenQuiet: Bool
  private var rig = SessionRig()
  /// The events of each connection so far, the present one last.
  private(set) var histories: [[SessionRig.Happening]] = []
  private(set) var packings = 0
  private var version = MQTTVersion.v5
  private var receiveMaximum = 65535
  private var maximumPacket = Int.max
  /// The session state stored by the broker.
  private var kept: [UInt8]?
  private var expiry: UInt32 = 0

  /// Messages at QoS 1 and 2 that the client has received and not completed.
  private var underWay: [UInt16: MQTTQoS] = [:]
  /// The messages among them that the client has released.
  private var released: Set<UInt16> = []
  private var toAppend: [UInt16] = []
  private var toAnswer: [UInt16] = []
  private var toFetch: [(UInt16, MQTTPlace)] = []
  private var granted = 0
  private var isEnded = true

  /// - Parameter packsWhenQuiet: whether the session is packed and unpacked whenever no message is in progress.
  init(_ input: ProbeInput, packsWhenQuiet: Bool = false) {
    self.input = input
    self.packsWhenQuiet = packsWhenQuiet
  }

  mutating func run() throws {
    for _ in 0..<200 where !input.isEmpty {
      if isEnded { connect() }
      step()
      try look()
      guard rig.session.heldBytes <= 1 << 17 else {
        throw ProbeViolation("\(rig.session.heldBytes) bytes are held")
      }
    }
    note()
  }

  private mutating func note() {
    histories.append(rig.history)
    packings += rig.packings
  }

  private mutating func connect() {
    let choice = input.byte()
    version = choice & 1 == 0 ? .v5 : .v311
    var rules = MQTTSessionRules()
    rules.receiveMaximum = 3
    rules.window = 8
    rules.lastingWindow = 4
    rules.maximumSubscriptions = 3
    rules.topicAliasMaximum = 2
    note()
    rig = SessionRig(version, rules)
    rig.packsWhenQuiet = packsWhenQuiet
    let (limit, maximum) = (UInt32(1 + input.byte() % 6), 8 + UInt32(input.byte()))
    expiry = choice & 2 == 0 ? 0 : 100
    var properties = MQTTProperties()
    if version == .v5 {
      if expiry > 0 { properties.append(.sessionExpiry, expiry) }
      properties.append(.receiveMaximum, limit)
      if choice & 4 != 0 { properties.append(.maximumPacketSize, maximum) }
      if choice & 8 != 0 { properties.append(.topicAliasMaximum, 2) }
      if choice & 16 != 0 { properties.append(.requestProblemInformation, 0) }
    }
    receiveMaximum = version == .v5 ? Int(limit) : 65535
    maximumPacket = version == .v5 && choice & 4 != 0 ? Int(maximum) : .max
    let clean = version == .v5 ? choice & 32 != 0 : expiry == 0
    (toAppend, toAnswer, toFetch, granted) = ([], [], [], 0)
    if clean || kept == nil { (underWay, released, kept) = ([:], [], nil) }
    let will = MQTTConnect.Will(topic: "w", payload: [1], qos: .atLeastOnce)
    isEnded = false
    rig.send(
      .connect(
        MQTTConnect(
          version, clientID: "c", cleanStart: clean, keepAlive: 10, will: choice & 64 == 0 ? nil : will,
          properties: properties)))
    rig.admit(state: kept)
  }

  private mutating func step() {
    let identifier = UInt16(1 + input.byte() % 4)
    switch input.byte() % 24 {
    case 0, 1, 2: publish(identifier)
    case 3: acknowledge(identifier)
    case 4: rig.send(.pubrec, identifier)
    case 5, 6: rig.send(.pubrel, identifier)
    case 7: complete(identifier)
    case 8, 9: subscribe(identifier)
    case 10: rig.send(.unsubscribe(MQTTUnsubscribe(identifier, [filter()])))
    case 11: rig.send(.pingreq)
    case 12: rig.send(bytes: input.bytes(Int(input.byte() % 32)))
    case 13: if !toAppend.isEmpty { rig.appended(toAppend.removeFirst(), failure()) }
    case 14: if !toAnswer.isEmpty { rig.subscribed(toAnswer.removeFirst(), failure()) }
    case 15, 16, 17: deliver()
    case 18: if !toFetch.isEmpty { fetch() }
    case 19: answer()
    case 20: rig.tick(Double(input.byte()))
    case 21: rig.lose()
    case 22: rig.takeOver()
    default: rig.flush()
    }
    if input.bool() { rig.flush() }
  }

  private mutating func filter() -> String {
    input.element(of: ["a", "a/#", "+", "$share/g/a", "#", "a.b", "a#"])
  }

  private mutating func failure() -> MQTTError? {
    input.byte() % 8 == 0 ? MQTTError(.quotaExceeded, "the quota is used up") : nil
  }

  private mutating func publish(_ identifier: UInt16) {
    let choice = input.byte()
    let qos = MQTTQoS(rawValue: choice & 3) ?? .atMostOnce
    let topic = input.element(of: ["a", "b", "a.b", ""])
    let alias = input.byte() % 4
    let version = version
    rig.publish(
      topic, "p", qos, qos == .atMostOnce ? 0 : identifier, isDuplicate: qos > .atMostOnce && choice & 4 != 0,
      isRetained: choice & 8 != 0
    ) { if alias > 0, version == .v5 { $0.append(.topicAlias, UInt32(alias)) } }
  }

  private mutating func subscribe(_ identifier: UInt16) {
    let choice = input.byte()
    let options = MQTTSubscriptionOptions(
      MQTTQoS(rawValue: choice & 3) ?? .exactlyOnce, noLocal: version == .v5 && choice & 4 != 0)
    rig.send(.subscribe(MQTTSubscribe(identifier, [MQTTSubscribe.Item(filter(), options)])))
  }

  /// The broker delivers only requested messages, and unlimited ones.
  private mutating func deliver() {
    let number = UInt16(input.byte() % 4)
    guard granted > 0 else { return }
    granted -= 1
    let choice = input.byte()
    rig.deliver(
      "a", String(repeating: "x", count: Int(choice >> 3)), MQTTQoS(rawValue: choice & 3) ?? .exactlyOnce,
      on: number, topicNumber: UInt32(choice & 4), isOwn: choice & 1 != 0)
  }

  private mutating func fetch() {
    let (packetID, place) = toFetch.removeFirst()
    // If the message isn't resent, the client gets no more packets about it.
    if underWay[packetID] == .atLeastOnce { underWay[packetID] = nil }
    rig.fetched(packetID, "a", input.byte() % 8 == 0 ? nil : "again", place)
  }

  /// The client continues with one of its messages.
  private mutating func answer() {
    guard let packetID = underWay.keys.sorted().first, let qos = underWay[packetID] else { return }
    if qos == .atLeastOnce { return acknowledge(packetID) }
    if released.contains(packetID) { return complete(packetID) }
    rig.send(.pubrec, packetID)
  }

  private mutating func acknowledge(_ packetID: UInt16) {
    if underWay[packetID] == .atLeastOnce { underWay[packetID] = nil }
    rig.send(.puback, packetID)
  }

  private mutating func complete(_ packetID: UInt16) {
    if released.remove(packetID) != nil { underWay[packetID] = nil }
    rig.send(.pubcomp, packetID)
  }

  // MARK: What must hold

  private mutating func look() throws {
    for packet in rig.packets {
      guard packet.encoded(version).count <= maximumPacket else {
        throw ProbeViolation("\(packet) is longer than \(maximumPacket) bytes")
      }
      try see(packet)
    }
    for asked in rig.asked { try see(asked) }
  }

  private mutating func see(_ packet: OwnedPacket) throws {
    switch packet {
    case .publish(let message) where message.qos > .atMostOnce:
      guard message.packetID != 0, message.isDuplicate || underWay[message.packetID] == nil else {
        throw ProbeViolation("the identifier \(message.packetID) of a new message is in use")
      }
      guard !released.contains(message.packetID) else {
        throw ProbeViolation("\(message.packetID) was sent again behind its release")
      }
      underWay[message.packetID] = message.qos
    case .acknowledgement(let packet) where packet.type == .pubrel && packet.reason == .success:
      if underWay[packet.packetID] == .exactlyOnce { released.insert(packet.packetID) }
    default: break
    }
  }

  private mutating func see(_ asked: Asked) throws {
    switch asked {
    case .publish(let message, _, let sequence):
      guard (sequence != nil) == (message.qos == .exactlyOnce) else {
        throw ProbeViolation("\(message) has the sequence \(String(describing: sequence))")
      }
      if message.qos > .atMostOnce { toAppend.append(message.packetID) }
    case .subscribe(let request): toAnswer.append(request.number)
    case .fetch(let packetID, let place): toFetch.append((packetID, place))
    case .request(let count):
      granted += count
      let limit = min(expiry > 0 ? 4 : 8, receiveMaximum)
      guard granted <= limit else {
        throw ProbeViolation("\(granted) records are requested where \(limit) may be under way")
      }
    case .store: kept = rig.stored
    case .end:
      isEnded = true
      let departure = rig.departure
      guard (departure?.state != nil) == ((departure?.expiry ?? 0) > 0) else {
        throw ProbeViolation("a session of \(departure?.expiry ?? 0) s leaves another state")
      }
      kept = departure?.state
      if let kept { _ = try MQTTSessionState(decoding: kept) }
    case .forget: kept = nil
    default: break
    }
  }
}
