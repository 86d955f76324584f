import SluiceStore
import SluiceWire

/// A group as its topic's store keeps it, under its name (``StoredValue/key(_:)-(String)``). Little-endian; `c` is a compact number:
///
///     u8 version · u64 epoch · u64 seed · u32 length · settings
///     u64 frontier · c records in all
///     runs × (c offset · c records · c deliveries · u8 end · c key [· u64 what the key comes to])
///     from version 2 on: u64 number of the next dead letter · u8 1 when a record has it, else 0 [· u64 the record's offset]
///
/// Version 1 is that of a group none of whose dead letters had a number. In version 3, which has a retry backoff or records that wait for their retry,
/// each run ends with a compact number: 0, or until when its records wait, in milliseconds since 1970.
///
/// A run is consecutive records with equal state. Its offset is counted from the end of the previous run, or from 0. `end` is 0, or the number of the reason
/// plus one. `key` is 0 for no key, 1 for a new key, whose hash follows, and otherwise the number of an earlier new key plus 2.
package struct StoredGroup: Hashable, Sendable {
  private static let versions: ClosedRange<UInt8> = 1...3
  /// No group may have more.
  static let mostRecords: UInt64 = 1 << 24

  /// The number of the epoch to which the offsets belong.
  package var epoch: UInt64
  /// The seed of the hashes of keys.
  var seed: UInt64
  package var settings: JoinGroup.Settings
  package var state: GroupState.Snapshot

  init(epoch: UInt64, seed: UInt64, settings: JoinGroup.Settings, state: GroupState.Snapshot) {
    self.epoch = epoch
    self.seed = seed
    self.settings = settings
    self.state = state
  }

  package func encoded() -> [UInt8] {
    var writer = ByteWriter()
    let outbox = state.outbox
    let hasDelays = settings.retryBackoff != .none || state.entries.contains { $0.retryAt != nil }
    let version: UInt8 = hasDelays ? 3 : outbox != GroupOutbox() ? 2 : 1
    writer.integer(version)
    writer.integer(epoch)
    writer.integer(seed)
    var join = ByteWriter()
    settings.encodeStored(into: &join)
    writer.integer(UInt32(join.bytes.count))
    unsafe join.bytes.withUnsafeBytes { unsafe writer.raw($0) }
    writer.integer(state.frontier)
    encodeEntries(into: &writer, hasDelays: hasDelays)
    guard version > 1 else { return writer.bytes }
    writer.integer(outbox.next)
    writer.integer(UInt8(outbox.offset == nil ? 0 : 1))
    if let offset = outbox.offset { writer.integer(offset) }
    return writer.bytes
  }

  /// - Parameter limit: the most records that the group may have.
  /// - Throws: ``StoreError/Kind/damaged``, ``StoreError/Kind/newer``.
  init(decoding bytes: [UInt8], atMost limit: UInt64 = mostRecords) throws(StoreError) {
    self = try StoredValue.decode("a group's state", Self.versions, bytes) {
      reader, version throws(WireError) in
      let epoch: UInt64 = try reader.integer("epoch")
      let seed: UInt64 = try reader.integer("seed")
      let length: UInt32 = try reader.integer("settings")
      var rest = unsafe ByteReader(try reader.bytes("settings", count: Int(length)))
      let settings = try JoinGroup.Settings(decodingStored: &rest)
      guard rest.count == 0 else {
        throw WireError(.malformedFrame, "\(rest.count) bytes are left behind its settings")
      }
      var state = GroupState.Snapshot(frontier: try reader.integer("frontier"))
      try Self.decodeEntries(of: &state, from: &reader, hasDelays: version > 2, atMost: limit)
      if version > 1 { state.outbox = try Self.decodeOutbox(of: state, from: &reader) }
      return StoredGroup(epoch: epoch, seed: seed, settings: settings, state: state)
    }
  }

  // MARK: Entries

  private func encodeEntries(into writer: inout ByteWriter, hasDelays: Bool) {
    var end: UInt64 = 0
    var keys: [UInt64: UInt64] = [:]
    let entries = state.entries
    writer.compact(UInt64(entries.count))
    var index = 0
    while index < entries.count {
      let first = entries[index]
      var records: UInt64 = 1
      index += 1
      while index < entries.count, entries[index].follows(first, at: first.offset + records) {
        records += 1
        index += 1
      }
      writer.compact(first.offset - end)
      writer.compact(records)
      writer.compact(UInt64(first.deliveries))
      writer.integer(first.deadLetterReason.map { $0.rawValue + 1 } ?? 0)
      encode(first.key, into: &writer, &keys)
      if hasDelays { writer.compact(UInt64(max(first.retryAt ?? 0, 0))) }
      end = first.offset + records
    }
  }

  private func encode(_ key: UInt64?, into writer: inout ByteWriter, _ keys: inout [UInt64: UInt64]) {
    guard let key else { return writer.compact(0) }
    if let known = keys[key] { return writer.compact(known + 2) }
    keys[key] = UInt64(keys.count)
    writer.compact(1)
    writer.integer(key)
  }

  private static func decodeEntries(
    of state: inout GroupState.Snapshot, from reader: inout ByteReader, hasDelays: Bool, atMost limit: UInt64
  ) throws(WireError) {
    var rest = try reader.compact("records")
    guard rest <= limit else {
      throw WireError(.malformedFrame, "\(rest) records are more than any group may have")
    }
    var index = 0
    var end: UInt64 = 0
    var keys: [UInt64] = []
    while rest > 0 {
      index += 1
      let (first, isTooFar) = end.addingReportingOverflow(try reader.compact("run's offset"))
      let records = try reader.compact("run's records")
      guard !isTooFar, first < state.frontier, records > 0, records <= min(state.frontier - first, rest)
      else {
        throw WireError(
          .malformedFrame,
          "run \(index) of \(records) records goes beyond its frontier, or is more than there are")
      }
      guard let deliveries = UInt32(exactly: try reader.compact("run's deliveries")) else {
        throw WireError(.malformedFrame, "run \(index) was given out more often than anything can be")
      }
      let fate: UInt8 = try reader.integer("run's end")
      let reason = fate == 0 ? nil : GroupState.Reason(rawValue: fate - 1)
      guard fate == 0 || reason != nil else {
        throw WireError(.malformedFrame, "run \(index) is on its way to the dead letters for reason \(fate)")
      }
      let key = try decodeKey(from: &reader, &keys)
      guard let time = Int64(exactly: hasDelays ? try reader.compact("run's retry") : 0) else {
        throw WireError(.malformedFrame, "run \(index) waits until a time that no clock shows")
      }
      end = first + records
      rest -= records
      for offset in first..<end {
        state.entries.append(
          GroupState.Snapshot.Entry(
            offset: offset, deliveries: deliveries, key: key, deadLetterReason: reason,
            retryAt: time == 0 ? nil : time))
      }
    }
  }

  private static func decodeOutbox(
    of state: GroupState.Snapshot, from reader: inout ByteReader
  ) throws(WireError) -> GroupOutbox {
    let next: UInt64 = try reader.integer("dead letters' number")
    guard next <= PublishOpen.largestFirstSequence else {
      throw WireError(.malformedFrame, "dead letter \(next) is next, which is more than any group has")
    }
    let has: UInt8 = try reader.integer("whether a dead letter has it")
    guard has <= 1 else { throw WireError(.malformedFrame, "whether a dead letter has a number is \(has)") }
    guard has == 1 else { return GroupOutbox(next: next) }
    let offset: UInt64 = try reader.integer("dead letter's offset")
    guard state.entries.contains(where: { $0.offset == offset && $0.deadLetterReason != nil }) else {
      throw WireError(.malformedFrame, "record \(offset) has a dead letter's number and is none")
    }
    return GroupOutbox(next: next, offset: offset)
  }

  private static func decodeKey(
    from reader: inout ByteReader, _ keys: inout [UInt64]
  ) throws(WireError) -> UInt64? {
    switch try reader.compact("run's key") {
    case 0: return nil
    case 1:
      keys.append(try reader.integer("key"))
      return keys.last
    case let number:
      guard number - 2 < UInt64(keys.count) else {
        throw WireError(.malformedFrame, "key \(number - 2) of \(keys.count) isn't there")
      }
      return keys[Int(number - 2)]
    }
  }
}

extension GroupState.Snapshot.Entry {
  /// Whether it continues a run of records like `other`, at this offset.
  fileprivate func follows(_ other: Self, at offset: UInt64) -> Bool {
    self.offset == offset && deliveries == other.deliveries && key == other.key
      && deadLetterReason == other.deadLetterReason && retryAt == other.retryAt
  }
}

/// A group's settings on disk, little-endian, where a text is a u16 length and UTF-8:
///
///     5 × u8 0 · u8 acknowledgement · u8 order · 9 × u8 0 · u32 deadline · u32 deliveries · text dead letters
///     u32 first backoff · u32 longest backoff
///     u8 conditions × (u8 subject · u8 test · text header · u16 length · value)
///
/// The numbers are those of JOIN. The layout is the store's own: JOIN may change without it.
extension JoinGroup.Settings {
  func encodeStored(into writer: inout ByteWriter) {
    writer.bytes += [UInt8](repeating: 0, count: 5)
    writer.integer(acknowledgement.rawValue)
    writer.integer(order.rawValue)
    writer.bytes += [UInt8](repeating: 0, count: 9)
    writer.integer(deadline)
    writer.integer(deliveries)
    writer.string(deadLetters)
    writer.integer(retryBackoff.first)
    writer.integer(retryBackoff.longest)
    writer.integer(UInt8(clamping: filter.conditions.count))
    for condition in filter.conditions { condition.encode(into: &writer) }
  }

  package init(decodingStored reader: inout ByteReader) throws(WireError) {
    _ = try unsafe reader.bytes("settings", count: 5)
    let acknowledgement: UInt8 = try reader.integer("acknowledgement")
    let order: UInt8 = try reader.integer("order")
    _ = try unsafe reader.bytes("settings", count: 9)
    guard let acknowledgement = JoinGroup.Acknowledgement(rawValue: acknowledgement),
      let order = JoinGroup.Order(rawValue: order)
    else {
      throw WireError(.unsupported, "acknowledgement \(acknowledgement) with order \(order) isn't known")
    }
    self.init(
      acknowledgement: acknowledgement, order: order, deadline: try reader.integer("deadline"),
      deliveries: try reader.integer("deliveries"), deadLetters: try reader.string("dead letters"))
    retryBackoff = JoinGroup.Backoff(
      first: try reader.integer("first backoff"), longest: try reader.integer("longest backoff"))
    let count: UInt8 = try reader.integer("conditions")
    guard count <= RecordFilter.maximumConditions else {
      throw WireError(
        .malformedFrame,
        "\(count) conditions are more than the \(RecordFilter.maximumConditions) that there can be")
    }
    for _ in 0..<count { filter.conditions.append(try RecordFilter.Condition(from: &reader)) }
  }
}
