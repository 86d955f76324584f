import SluiceWire

/// A process' copy of the ``MQTTRoster``: what it has read of the log, from the beginning or from a snapshot on.
///
/// A log that was trimmed begins behind the records that a snapshot has: all that follows waits until the snapshot has come, which stands further on.
struct MQTTRosterReplica: Sendable {
  private struct SnapshotID: Hashable {
    var process: UInt64
    var offset: UInt64
  }

  private struct Item {
    var key: MQTTHub.Key?
    var record: MQTTRosterRecord
    var offset: UInt64
  }

  private(set) var roster = MQTTRoster()
  /// What waits for a snapshot; nil when the roster is up to date.
  private var waiting: [Item]?
  /// Where the log begins.
  private var first: UInt64 = 0
  private var parts: [SnapshotID: [UInt32: [UInt8]]] = [:]
  /// The last complete snapshot: the log may begin there.
  private(set) var snapshotOffset: UInt64 = 0

  /// Whether everything that was read counts.
  var isLoaded: Bool { waiting == nil }

  /// The log begins, or another one in its place.
  mutating func begin(first: UInt64) {
    self = MQTTRosterReplica()
    self.first = first
    if first > 0 { waiting = [] }
  }

  /// The log has none of the snapshots any more.
  mutating func forgetSnapshots() { (snapshotOffset, parts) = (0, [:]) }

  /// Takes a record.
  ///
  /// - Returns: whether it counts.
  @discardableResult
  mutating func take(
    _ record: MQTTRosterRecord, of key: MQTTHub.Key?, at offset: UInt64, _ effects: inout [MQTTRoster.Effect]
  ) -> Bool {
    let snapshot = collect(record)
    if waiting == nil {
      if let snapshot { snapshotOffset = max(snapshotOffset, snapshot.offset) }
      return roster.apply(record, of: key, &effects)
    }
    waiting?.append(Item(key: key, record: record, offset: offset))
    guard let snapshot, snapshot.offset >= first, let roster = try? MQTTRoster(parts: snapshot.parts) else {
      return false
    }
    self.roster = roster
    snapshotOffset = snapshot.offset
    catchUp(from: snapshot.offset, &effects)
    return true
  }

  /// All that is there has been read. Without a snapshot, which an operator may have trimmed, what is there is all.
  mutating func isCurrent(_ effects: inout [MQTTRoster.Effect]) {
    if waiting != nil { catchUp(from: 0, &effects) }
  }

  private mutating func catchUp(from offset: UInt64, _ effects: inout [MQTTRoster.Effect]) {
    let items = waiting.take() ?? []
    for item in items where item.offset >= offset { roster.apply(item.record, of: item.key, &effects) }
  }

  /// Puts the parts of a snapshot together. Returns one that is complete.
  private mutating func collect(_ record: MQTTRosterRecord) -> (offset: UInt64, parts: [[UInt8]])? {
    switch record.kind {
    case .snapshot(let offset, let part, let bytes):
      // A process that is up to date needs no more than the number of parts.
      let id = SnapshotID(process: record.process, offset: offset)
      parts[id, default: [:]][part] = waiting == nil ? [] : bytes
    case .snapshotEnd(let offset, let count):
      let id = SnapshotID(process: record.process, offset: offset)
      guard let found = parts.removeValue(forKey: id), found.count == Int(count) else { return nil }
      // Those of processes that have ended in between.
      parts = parts.filter { $0.key.offset > offset }
      return (offset, found.sorted { $0.key < $1.key }.map(\.value))
    default: break
    }
    return nil
  }
}
