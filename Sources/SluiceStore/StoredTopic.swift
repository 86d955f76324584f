import SluiceWire

/// A topic's row: everything besides its records and small states.
public struct StoredTopic: Hashable, Sendable {
  public var name: String
  /// Complete, as far as the version that wrote them knows settings.
  public var settings: TopicSettings
  public var epoch: UInt64
  /// Oldest first.
  public var lineage: [Ancestor]
  /// The terminal event.
  public var ending: Complete.Ending?
  /// The producer that ended it; 0 for one without a number.
  public var endedBy: UInt64
  /// Whether a client has stated the settings; otherwise they were defaults.
  public var isStated: Bool
  /// No reader gets a record before that offset, whatever the limits are now: an operator has trimmed the topic, or former limits have dropped the
  /// records before it. 0 for none.
  public var floor: UInt64
  /// Where the times of records go back, because the broker's clock was set back.
  public var setbacks: [RecordClock.Setback]

  public init(
    name: String, settings: TopicSettings, epoch: UInt64, lineage: [Ancestor] = [],
    ending: Complete.Ending? = nil, endedBy: UInt64 = 0, isStated: Bool = true,
    floor: UInt64 = 0, setbacks: [RecordClock.Setback] = []
  ) {
    self.name = name
    self.settings = settings
    self.epoch = epoch
    self.lineage = lineage
    self.ending = ending
    self.endedBy = endedBy
    self.isStated = isStated
    self.floor = floor
    self.setbacks = setbacks
  }
}

/// A small piece of a topic's state, under a key, which changes together with records.
public struct StoredState: Hashable, Sendable {
  public enum Kind: UInt8, Hashable, Sendable, CaseIterable {
    /// By a producer's number: what was published by it.
    case producer = 1
    /// By name: where a durable cursor stands.
    case cursor = 2
    /// By name: a group's settings, and what is done with.
    case group = 3
    /// By offset: a record of a compact topic that is the newest of its key, and whose batch may be gone. See ``StoredNewest``.
    case newest = 4
  }

  public var kind: Kind
  /// 1 to 255 bytes.
  public var key: [UInt8]
  public var value: [UInt8]

  public init(_ kind: Kind, key: [UInt8], value: [UInt8]) {
    self.kind = kind
    self.key = key
    self.value = value
  }
}

/// Which of a topic's records are stored. The store itself keeps account of it.
public struct StoredExtent: Hashable, Sendable {
  /// The offset of the first record of the oldest batch; the head when there is none.
  public var firstOffset: UInt64 = 0
  /// The offset that the next record gets.
  public var head: UInt64 = 0
  /// Bytes of records before the first, since the topic began; time marks aren't counted.
  public var bytesBefore: UInt64 = 0
  /// The same before the head.
  public var bytesThrough: UInt64 = 0
  /// The time of the last record; the least there is before the first one.
  public var lastTime: Int64 = .min

  public init() {}

  /// Bytes of the records that are stored.
  public var bytes: UInt64 { bytesThrough - bytesBefore }

  /// Takes account of the next batch. A topic begins where its first batch does.
  ///
  /// - Parameter place: the store, for the message.
  /// - Throws: ``StoreError/Kind/invalid`` for a batch that isn't the next.
  package mutating func append(_ batch: BatchBlock, in place: @autoclosure () -> String) throws(StoreError) {
    if head == 0 {
      firstOffset = batch.firstOffset
      head = batch.firstOffset
      bytesBefore = batch.header.bytesBefore
    }
    guard batch.firstOffset == head else {
      throw StoreError(.invalid, "a batch at offset \(batch.firstOffset) doesn't follow on \(head)\(place())")
    }
    head = batch.endOffset
    bytesThrough = batch.bytesThrough
    lastTime = batch.lastTime
  }
}

// As it is on disk, little-endian:
//
//     u8 version 1 · name · u8 settings × (u8 key · u64 value), of TOPIC_CREATE · u64 epoch · u64 ended by
//     u16 ancestors × (u64 epoch · u64 end)
//     u8 ending: 0 none, 1 finished, 2 failed (u32 code · message)
//     u8 flags, left out if 0: 1, the settings are defaults that no client has stated; 2, floor is there; 8, setbacks are there; 64, through is there
//     u64 floor
//     u8 setbacks × (u64 offset · i64 latest time before · i64 time that the clock was set back to)
//     ancestors × u64 through
//
// where a text is a u16 length and UTF-8.
extension StoredTopic {
  private static let version: UInt8 = 1

  public func encoded() -> [UInt8] {
    var writer = ByteWriter()
    writer.integer(Self.version)
    writer.string(name)
    let settings = settings.numbered
    writer.integer(UInt8(clamping: settings.count))
    for (key, value) in settings.prefix(Int(UInt8.max)) {
      writer.integer(UInt8(clamping: key))
      writer.integer(value)
    }
    writer.integer(epoch)
    writer.integer(endedBy)
    writer.integer(UInt16(clamping: lineage.count))
    for ancestor in lineage.suffix(Int(UInt16.max)) {
      writer.integer(ancestor.epoch)
      writer.integer(ancestor.end)
    }
    switch ending {
    case nil: writer.integer(UInt8(0))
    case .finished: writer.integer(UInt8(1))
    case .failure(let code, let message):
      writer.integer(UInt8(2))
      writer.integer(code.rawValue)
      writer.string(message)
    }
    let written = lineage.suffix(Int(UInt16.max))
    let hasThrough = written.contains { $0.through != $0.end }
    let flags =
      (isStated ? 0 : 1) | (floor == 0 ? 0 : 2) | (setbacks.isEmpty ? 0 : 8) | (hasThrough ? 64 : 0) as UInt8
    if flags != 0 { writer.integer(flags) }
    if floor != 0 { writer.integer(floor) }
    if !setbacks.isEmpty {
      writer.integer(UInt8(clamping: setbacks.count))
      for setback in setbacks.suffix(Int(UInt8.max)) {
        writer.integer(setback.offset)
        writer.integer(setback.latest)
        writer.integer(setback.time)
      }
    }
    if hasThrough { for ancestor in written { writer.integer(ancestor.through) } }
    return writer.bytes
  }

  private mutating func readSetbacks(_ reader: inout ByteReader) throws(WireError) {
    for _ in 0..<(try reader.integer("setbacks", as: UInt8.self)) {
      let offset: UInt64 = try reader.integer("setback's offset")
      guard offset > setbacks.last?.offset ?? 0 else {
        throw WireError(
          .malformedFrame, "the clock's setback at offset \(offset) isn't behind the one before")
      }
      setbacks.append(
        RecordClock.Setback(
          offset: offset, latest: try reader.integer("setback's latest time"),
          time: try reader.integer("setback's time")))
    }
  }

  /// - Throws: ``StoreError/Kind/damaged``; ``StoreError/Kind/newer`` for a row that this version doesn't understand.
  public init(decoding bytes: UnsafeRawBufferPointer) throws(StoreError) {
    var reader = unsafe ByteReader(bytes)
    do throws(WireError) {
      let version: UInt8 = try reader.integer("version")
      guard version == Self.version else {
        throw WireError(.unsupported, "it has version \(version), and this software knows \(Self.version)")
      }
      let name = try reader.string("name")
      var settings = TopicSettings()
      for _ in 0..<(try reader.integer("settings", as: UInt8.self)) {
        let key = UInt16(try reader.integer("setting's key", as: UInt8.self))
        // A setting, or a value of one, that this version doesn't know is left alone.
        _ = settings.set(key, to: try reader.integer("setting's value"))
      }
      self.init(name: name, settings: settings, epoch: try reader.integer("epoch"))
      endedBy = try reader.integer("ended by")
      let count: UInt16 = try reader.integer("ancestors")
      for _ in 0..<count {
        let epoch: UInt64 = try reader.integer("ancestor's epoch")
        lineage.append(Ancestor(epoch: epoch, end: try reader.integer("ancestor's end")))
      }
      switch try reader.integer("ending", as: UInt8.self) {
      case 0: break
      case 1: ending = .finished
      case 2:
        let code = ErrorCode(rawValue: try reader.integer("failure's code"))
        ending = .failure(code: code, message: try reader.string("failure's message"))
      case let other: throw WireError(.malformedFrame, "an ending of kind \(other) isn't known")
      }
      if reader.count > 0 {
        let flags: UInt8 = try reader.integer("flags")
        isStated = flags & 1 == 0
        if flags & 2 != 0 { floor = try reader.integer("floor") }
        if flags & 8 != 0 { try readSetbacks(&reader) }
        if flags & 64 != 0 {
          for index in lineage.indices {
            lineage[index].through = max(
              try reader.integer("ancestor's through"), lineage[index].end)
          }
        }
      }
      guard reader.count == 0 else {
        throw WireError(.malformedFrame, "\(reader.count) bytes are left behind it")
      }
    } catch {
      throw StoreError(
        error.code == .unsupported ? .newer : .damaged, "a topic's row can't be read: \(error.message)")
    }
  }
}
