/// A topic's settings as they travel in TOPIC_CREATE and TOPIC_INFO.
///
/// ```
/// list of (u16 key · u64 value)
/// ```
///
/// A setting that isn't named keeps the default of the broker's configuration; of one that is named twice the last counts. All ones
/// means no limit.
public struct TopicSettings: Hashable, Sendable {
  /// Key 1: the most records that late subscribers can get; 0 keeps none.
  public var replayRecords: UInt64?
  /// Key 2: the most bytes of records, as stored, that late subscribers can get.
  public var replayBytes: UInt64?
  /// Key 3: the greatest age, in milliseconds, of records that late subscribers can get.
  public var replayAge: UInt64?
  /// Key 4: how long what is replayed lives.
  public var scope: Scope?
  /// Key 5: whether producers wait for subscribers.
  public var flow: Flow?
  /// Key 6: when producers get any demand.
  public var connect: Connect?
  /// Key 7: how many records producers may be ahead of the subscribers that they wait for. Of no effect with ``Flow/free``.
  public var bufferRecords: UInt64?
  /// Key 8: how many bytes of records, as stored, producers may be ahead of the subscribers that they wait for.
  public var bufferBytes: UInt64?
  /// Key 9: what producers that wait for subscribers do while there are none.
  public var withoutSubscribers: WhenAlone?
  /// Key 10: what becomes of a subscription that falls behind what is kept, unless it says so itself.
  public var lag: Subscribe.LagPolicy?
  /// Key 11: whether only the newest record of each key is kept for late subscribers. Every record has a key then. On the wire 0 is no, 1 is yes.
  public var compact: Bool?
  /// Key 12: whether the topic is deleted when nothing has been attached to it for a while.
  public var autoDelete: Bool?
  /// Key 13: whether the topic outlives the broker's process.
  public var storage: Storage?
  /// Key 14: when records of a durable topic are on disk. Of no effect with ``Storage/memory``.
  public var sync: Sync?
  /// Key 15: what happens when the topic has lost its last producer.
  public var whenProducerLost: WhenProducerLost?

  public static let unlimited = UInt64.max

  /// All nil: the defaults of the broker's configuration.
  public init() {}

  /// Limits of the replay; the rest is nil.
  public init(replayRecords: UInt64? = nil, replayBytes: UInt64? = nil, replayAge: UInt64? = nil) {
    self.replayRecords = replayRecords
    self.replayBytes = replayBytes
    self.replayAge = replayAge
  }
}

extension TopicSettings {
  /// How long what is replayed lives: the scope of Combine's `share(replay:scope:)`. The number is the one on the wire.
  public enum Scope: UInt64, Hashable, Sendable, CaseIterable {
    /// The log outlives its subscribers, and the terminal event is replayed too.
    case forever = 0
    /// When the last subscriber leaves, or the topic ends, its records are dropped and it starts over, in a new epoch.
    case whileConnected = 1
  }

  /// Whether producers wait for subscribers. The number is the one on the wire.
  public enum Flow: UInt64, Hashable, Sendable, CaseIterable {
    /// Producers run ahead; the log drops its oldest records by its limits.
    case free = 0
    /// Producers get the demand of the slowest subscriber that has caught up, plus the buffer. No record is dropped before
    /// every subscriber has received it.
    case lossless = 1
    /// Producers get the demand of the quickest subscriber, plus the buffer. Slower ones may lag.
    case fastest = 2
  }

  /// When producers get any demand: Combine's connectable publishers. On the wire 0 is immediate, all ones is manual, a number below 2^32 is auto
  /// with that number, and 2^32 more than a number is autoStay with that number.
  public enum Connect: Hashable, Sendable {
    /// Always.
    case immediate
    /// From when there are so many subscribers, at least 1, until the last has left.
    case auto(UInt32)
    /// From when there are so many subscribers, at least 1, for the rest of the topic's epoch: it stays connected when they leave.
    case autoStay(UInt32)
    /// From CONNECT until DISCONNECT.
    case manual
  }

  /// The behaviour of producers that wait for subscribers while there are none. The number is the one on the wire.
  public enum WhenAlone: UInt64, Hashable, Sendable, CaseIterable {
    /// They fill the buffer, which the next subscriber gets first, then wait.
    case buffer = 0
    /// They wait.
    case hold = 1
    /// They run ahead, as with ``Flow/free``.
    case drop = 2
  }

  /// Whether the topic outlives the broker's process. The number is the one on the wire.
  public enum Storage: UInt64, Hashable, Sendable, CaseIterable {
    /// It is in memory, and gone with the process.
    case memory = 0
    /// It is on disk as well, and there again when the broker is.
    case durable = 1
  }

  /// When records of a durable topic are on disk. On the wire 0 is always, all ones is os, and any other number is the interval in
  /// milliseconds.
  public enum Sync: Hashable, Sendable {
    /// Before they are acknowledged, and before any subscriber gets them.
    case always
    /// So many milliseconds later, at least 1: a crash of the broker loses no more than came since.
    case interval(UInt32)
    /// When there are many, or after a while.
    case os
  }

  /// The reaction to the loss of the producers. The last publication has left without ending the topic: its client cancelled it, its connection
  /// was lost, or the broker ended it. On the wire 0 is wait, and any other number is the time of fail in milliseconds.
  public enum WhenProducerLost: Hashable, Sendable {
    /// Subscribers wait for the next producer.
    case wait
    /// The topic fails with ``ErrorCode/producerLost`` unless a publication opens within so many milliseconds, at least 1.
    case fail(after: UInt32)
  }
}

// MARK: On the wire

extension TopicSettings {
  /// Every setting that is named, by its key, in ascending order. On disk settings are these pairs, too.
  public var numbered: [(key: UInt16, value: UInt64)] {
    let all: [(UInt16, UInt64?)] = [
      (1, replayRecords), (2, replayBytes), (3, replayAge), (4, scope?.rawValue), (5, flow?.rawValue),
      (6, connect?.number), (7, bufferRecords), (8, bufferBytes), (9, withoutSubscribers?.rawValue),
      (10, lag.map { UInt64($0.rawValue) }), (11, compact.map { $0 ? 1 : 0 }),
      (12, autoDelete.map { $0 ? 1 : 0 }), (13, storage?.rawValue), (14, sync?.number),
      (15, whenProducerLost?.number),
    ]
    return all.compactMap { key, value in value.map { (key, $0) } }
  }

  public func encode(into writer: inout ByteWriter) {
    writer.list(numbered) { setting, writer in
      writer.integer(setting.key)
      writer.integer(setting.value)
    }
  }

  /// How the settings that are named here differ from `other`, for people; nil when they don't.
  public func difference(from other: TopicSettings) -> String? {
    let others = Dictionary(uniqueKeysWithValues: other.numbered.map { ($0.key, $0.value) })
    let differing = numbered.filter { others[$0.key] != $0.value }
    guard !differing.isEmpty else { return nil }
    return differing.map { key, value in
      "\(Self.names[key] ?? "") \(text(of: key, value)) instead of \(others[key].map { other.text(of: key, $0) } ?? "the default")"
    }.joined(separator: ", ")
  }

  private func text(of key: UInt16, _ value: UInt64) -> String {
    switch key {
    case 4: scope == .whileConnected ? "while-connected" : "forever"
    case 5: flow.map { "\($0)" } ?? ""
    case 6: connect?.text ?? ""
    case 9: withoutSubscribers.map { "\($0)" } ?? ""
    case 10: lag.map { "\($0)" } ?? ""
    case 11, 12: value == 1 ? "on" : "off"
    case 13: storage.map { "\($0)" } ?? ""
    case 14 where value > 0 && value < Self.unlimited: "\(value)ms"
    case 14: sync.map { "\($0)" } ?? ""
    case 15: value == 0 ? "wait" : "fail:\(value)ms"
    default: value == Self.unlimited ? "everything" : "\(value)"
    }
  }

  /// The treatment of a setting, or a value of one, that this version doesn't know.
  public enum Unknown: Sendable {
    /// It can't be done: ``ErrorCode/invalidSetting``.
    case refuse
    /// It is only reported.
    case ignore
  }

  public init(from reader: inout ByteReader, unknown: Unknown) throws(WireError) {
    var settings = TopicSettings()
    // All are read before one is judged, so that settings that are cut short are malformed whatever they name.
    var refusal: WireError?
    _ = try reader.list("topic setting") { reader throws(WireError) in
      let key: UInt16 = try reader.integer("topic setting key")
      // A setting of a later version may need another type than a number.
      guard Self.names[key] != nil else {
        refusal =
          refusal
          ?? WireError(.invalidSetting, "topic setting \(key) isn't known to this version of the broker")
        return
      }
      let value: UInt64 = try reader.integer("topic setting value")
      guard !settings.set(key, to: value) else { return }
      refusal =
        refusal
        ?? WireError(.invalidSetting, "topic setting \(key), \(Self.names[key] ?? ""), can't be \(value)")
    }
    if let refusal, unknown == .refuse { throw refusal }
    self = settings
  }

  /// - Returns: false when the key or the value isn't defined.
  public mutating func set(_ key: UInt16, to value: UInt64) -> Bool {
    switch key {
    case 1: replayRecords = value
    case 2: replayBytes = value
    case 3: replayAge = value
    case 4: return Self.take(Scope(rawValue: value), into: &scope)
    case 5: return Self.take(Flow(rawValue: value), into: &flow)
    case 6: return Self.take(Connect(number: value), into: &connect)
    case 7: bufferRecords = value
    case 8: bufferBytes = value
    case 9: return Self.take(WhenAlone(rawValue: value), into: &withoutSubscribers)
    case 10:
      let policy = UInt8(exactly: value).flatMap(Subscribe.LagPolicy.init(rawValue:))
      return Self.take(policy, into: &lag)
    case 11: return Self.take(value > 1 ? nil : value == 1, into: &compact)
    case 12: return Self.take(value > 1 ? nil : value == 1, into: &autoDelete)
    case 13: return Self.take(Storage(rawValue: value), into: &storage)
    case 14: return Self.take(Sync(number: value), into: &sync)
    case 15: return Self.take(WhenProducerLost(number: value), into: &whenProducerLost)
    default: return false
    }
    return true
  }

  private static func take<Value>(_ value: Value?, into setting: inout Value?) -> Bool {
    guard let value else { return false }
    setting = value
    return true
  }

  /// The names of the settings, by their keys.
  public static let names: [UInt16: String] = [
    1: "replay-records", 2: "replay-bytes", 3: "replay-age", 4: "scope", 5: "flow", 6: "connect",
    7: "buffer-records", 8: "buffer-bytes", 9: "without-subscribers", 10: "lag", 11: "compact",
    12: "auto-delete",
    13: "storage", 14: "sync", 15: "when-producer-lost",
  ]
}

extension Field where Value == TopicSettings {
  static func settings(_ get: @escaping @Sendable (Owner) -> Value, unknown: TopicSettings.Unknown) -> Field {
    Field(
      write: { get($0).encode(into: &$1) },
      read: { (reader: inout FieldReader) throws(WireError) in
        try TopicSettings(from: &reader.bytes, unknown: unknown)
      })
  }
}

extension TopicSettings.Connect {
  fileprivate var number: UInt64 {
    switch self {
    case .immediate: 0
    case .auto(let count): UInt64(count)
    case .autoStay(let count): Self.staying + UInt64(count)
    case .manual: .max
    }
  }

  /// As command lines have it.
  fileprivate var text: String {
    switch self {
    case .immediate: "immediate"
    case .auto(let count): "auto:\(count)"
    case .autoStay(let count): "auto-stay:\(count)"
    case .manual: "manual"
    }
  }

  /// Added to the number of subscribers if the topic stays connected.
  private static var staying: UInt64 { 1 << 32 }

  fileprivate init?(number: UInt64) {
    switch number {
    case 0: self = .immediate
    case .max: self = .manual
    case ...UInt64(UInt32.max): self = .auto(UInt32(number))
    default:
      guard let count = UInt32(exactly: number - Self.staying), count > 0 else { return nil }
      self = .autoStay(count)
    }
  }
}

extension TopicSettings.WhenProducerLost {
  fileprivate var number: UInt64 {
    switch self {
    case .wait: 0
    case .fail(let milliseconds): UInt64(milliseconds)
    }
  }

  fileprivate init?(number: UInt64) {
    guard let milliseconds = UInt32(exactly: number) else { return nil }
    self = milliseconds == 0 ? .wait : .fail(after: milliseconds)
  }
}

extension TopicSettings.Sync {
  fileprivate var number: UInt64 {
    switch self {
    case .always: 0
    case .interval(let milliseconds): UInt64(milliseconds)
    case .os: .max
    }
  }

  fileprivate init?(number: UInt64) {
    switch number {
    case 0: self = .always
    case .max: self = .os
    default:
      guard let milliseconds = UInt32(exactly: number) else { return nil }
      self = .interval(milliseconds)
    }
  }
}
