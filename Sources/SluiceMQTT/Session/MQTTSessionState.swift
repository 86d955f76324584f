import SluiceWire

/// The part of a session that outlives its connection: subscriptions and identifiers, no messages.
///
/// Encoded, it takes 25 bytes, plus for each
/// - subscription: 16 bytes and those of its filter
/// - message at QoS 1 or 2 in flight to the client: 17 bytes
/// - message that waits for PUBCOMP: 2 bytes
/// - message at QoS 2 from the client that isn't released: 10 bytes
///
/// With a window of 32, that is less than 1 KiB for 10 subscriptions with filters of 20 bytes.
package struct MQTTSessionState: Hashable, Sendable {
  struct Subscription: Hashable, Sendable {
    var filter: MQTTTopicFilter
    var options: MQTTSubscriptionOptions
    /// 0 for none.
    var identifier: UInt32
    var start: Subscribe.Start

    /// The broker's patterns. The filter is known to have some.
    var patterns: [String] { (try? filter.brokerPatterns()) ?? [] }
  }

  /// A message at QoS 2 that the client hasn't released.
  struct Received: Hashable, Sendable {
    var packetID: UInt16
    var sequence: UInt64
    /// Whether PUBREC was sent.
    var isAcknowledged: Bool
    /// Whether it is being appended on this connection.
    var isUnderWay: Bool
  }

  /// The part of a subscription that each delivered message needs, without reference-counted values.
  struct Delivery: Hashable, Sendable {
    var isSubscribed: Bool
    var options: MQTTSubscriptionOptions
    /// 0 for none.
    var identifier: UInt32
    /// Whether a group counts the delivered records.
    var isShared: Bool

    static let none = Delivery(
      isSubscribed: false, options: MQTTSubscriptionOptions(.atMostOnce), identifier: 0, isShared: false)
  }

  /// By subscription number.
  private(set) var subscriptions: [Subscription?] = []
  /// By subscription number, for each delivered message.
  private(set) var deliveries: [Delivery] = []
  private var index = SubscriptionIndex()
  /// The number of subscriptions at QoS 1 or 2.
  private(set) var acknowledgedCount: Int32 = 0
  /// The number of subscriptions that leave out the client's own messages.
  private(set) var noLocalCount: Int32 = 0
  /// How many there are.
  private(set) var count = MQTTSubscriptionCount()
  var inFlight = InFlightTable()
  /// Messages at QoS 2 that wait for PUBCOMP.
  var releasing: [UInt16] = []
  var received: [Received] = []
  var lastPacketID: UInt16 = 0
  /// The sequence of the next message at QoS 2 from the client.
  var nextSequence: UInt64 = 0

  package init() {}

  /// Sets or removes the subscription with a number in the table, or directly behind its end.
  mutating func set(_ number: Int, _ subscription: Subscription?) {
    if number == subscriptions.count {
      subscriptions.append(nil)
      deliveries.append(.none)
    }
    let former = subscriptions[number]?.filter.description
    count(deliveries[number], by: -1)
    subscriptions[number] = subscription
    deliveries[number] =
      subscription.map {
        Delivery(
          isSubscribed: true, options: $0.options, identifier: $0.identifier, isShared: $0.filter.group != nil
        )
      } ?? .none
    count(deliveries[number], by: 1)
    index.update(number, from: former, in: subscriptions)
  }

  private mutating func count(_ delivery: Delivery, by difference: Int32) {
    guard delivery.isSubscribed else { return }
    if delivery.options.qos > .atMostOnce { acknowledgedCount += difference }
    if delivery.options.noLocal { noLocalCount += difference }
    count.all = UInt16(clamping: Int32(count.all) + difference)
    if delivery.isShared { count.shared = UInt16(clamping: Int32(count.shared) + difference) }
  }

  /// The part of a subscription that delivery needs.
  @inline(__always)
  func delivery(_ number: UInt16) -> Delivery {
    Int(number) < deliveries.count ? deliveries[Int(number)] : .none
  }

  func number(of filter: String) -> UInt16? { index.number(of: filter, in: subscriptions) }

  /// The lowest number without a subscription: in the table, or at its end.
  mutating func lowestFreeNumber() -> Int { index.lowestFree(in: subscriptions) }

  // MARK: Encoding

  private static let format: UInt8 = 1

  package func encoded() -> [UInt8] {
    var writer = ByteWriter()
    writer.integer(Self.format)
    writer.integer(lastPacketID)
    writer.integer(nextSequence)
    writer.integer(UInt16(subscriptions.count))
    for subscription in subscriptions {
      writer.string(subscription?.filter.description ?? "")
      guard let subscription else { continue }
      writer.integer(subscription.options.byte)
      writer.integer(subscription.identifier)
      let (number, value) = Self.encode(subscription.start)
      writer.integer(number)
      writer.integer(value)
    }
    let kept = inFlight.kept
    writer.integer(UInt16(kept.count))
    for entry in kept {
      writer.integer(entry.packetID)
      writer.integer(entry.subscription)
      writer.integer(
        entry.qos.rawValue | (entry.isRetained ? 4 : 0) | (entry.hasCursor ? 8 : 0)
          | (entry.isSettled ? 16 : 0))
      writer.integer(entry.place.topic)
      writer.integer(entry.place.offset)
    }
    writer.integer(UInt16(releasing.count))
    for packetID in releasing { writer.integer(packetID) }
    writer.integer(UInt16(received.count))
    for message in received {
      writer.integer(message.packetID)
      writer.integer(message.sequence << 1 | (message.isAcknowledged ? 1 : 0))
    }
    return writer.bytes
  }

  /// - Throws: ``ErrorCode/malformedFrame`` for bytes that no session has written.
  package init(decoding bytes: [UInt8]) throws(WireError) {
    try unsafe bytes.withUnsafeBufferPointer { bytes throws(WireError) in
      var reader = unsafe ByteReader(UnsafeRawBufferPointer(bytes))
      try self.read(&reader)
    }
  }

  private mutating func read(_ reader: inout ByteReader) throws(WireError) {
    func malformed() -> WireError { WireError(.malformedFrame, "the stored MQTT session can't be read") }
    guard try reader.integer("format", as: UInt8.self) == Self.format else { throw malformed() }
    lastPacketID = try reader.integer("packet identifier")
    nextSequence = try reader.integer("sequence")
    for _ in 0..<(try reader.integer("subscriptions", as: UInt16.self)) {
      let text = try reader.string("filter")
      guard !text.isEmpty else {
        set(subscriptions.count, nil)
        continue
      }
      let options: UInt8 = try reader.integer("options")
      let identifier: UInt32 = try reader.integer("identifier")
      let number: UInt8 = try reader.integer("start")
      let value: UInt64 = try reader.integer("start value")
      guard let filter = try? MQTTTopicFilter(text), (try? filter.brokerPatterns()) != nil,
        let options = try? MQTTSubscriptionOptions(options, .v5), identifier <= MQTTLength.largest,
        let start = Self.start(number, value)
      else { throw malformed() }
      set(
        subscriptions.count,
        Subscription(
          filter: filter, options: options, identifier: identifier, start: start))
    }
    for _ in 0..<(try reader.integer("messages", as: UInt16.self)) {
      let packetID: UInt16 = try reader.integer("packet identifier")
      let subscription: UInt16 = try reader.integer("subscription")
      let flags: UInt8 = try reader.integer("flags")
      let topic: UInt32 = try reader.integer("topic")
      let offset: UInt64 = try reader.integer("offset")
      let isSettled = flags & 16 != 0
      guard let qos = MQTTQoS(rawValue: flags & 3), isSettled || qos > .atMostOnce && packetID != 0 else {
        throw malformed()
      }
      inFlight.append(
        InFlightTable.Entry(
          packetID: packetID, subscription: subscription, qos: qos, isRetained: flags & 4 != 0,
          hasCursor: flags & 8 != 0, isSettled: isSettled, place: MQTTPlace(topic: topic, offset: offset)))
    }
    for _ in 0..<(try reader.integer("releasing", as: UInt16.self)) {
      let packetID: UInt16 = try reader.integer("packet identifier")
      guard packetID != 0 else { throw malformed() }
      releasing.append(packetID)
    }
    for _ in 0..<(try reader.integer("received", as: UInt16.self)) {
      let packetID: UInt16 = try reader.integer("packet identifier")
      let sequence: UInt64 = try reader.integer("sequence")
      guard packetID != 0 else { throw malformed() }
      received.append(
        Received(
          packetID: packetID, sequence: sequence >> 1, isAcknowledged: sequence & 1 != 0, isUnderWay: false))
    }
  }

  static func encode(_ start: Subscribe.Start) -> (UInt8, UInt64) {
    switch start {
    case .replay: (0, 0)
    case .earliest: (1, 0)
    case .new: (2, 0)
    case .last(let count): (3, count)
    case .offset(let offset): (4, offset)
    case .time(let time): (5, UInt64(bitPattern: time))
    }
  }

  /// Starts with this number or a higher one have a value.
  static let startsWithValue: UInt8 = 3

  static func start(_ number: UInt8, _ value: UInt64) -> Subscribe.Start? {
    switch number {
    case 0: .replay
    case 1: .earliest
    case 2: .new
    case 3: .last(value)
    case 4: .offset(value)
    case 5: .time(Int64(bitPattern: value))
    default: nil
    }
  }
}
