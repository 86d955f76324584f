import SluiceWire

/// A process' copy of the ``MQTTRoster``, from the log's records after its start or after a snapshot.
///
/// A trimmed log begins after the records that a snapshot replaces. The records that follow wait until the snapshot, which is later in the log, has been
/// read.
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
  /// Records that wait for a snapshot; nil when the roster is up to date.
  private var waiting: [Item]?
  /// The offset at which the log begins.
  private var first: UInt64 = 0
  private var parts: [SnapshotID: [UInt32: [UInt8]]] = [:]
  /// The offset of the last complete snapshot, before which the log may be trimmed.
  private(set) var snapshotOffset: UInt64 = 0

  /// Whether all read records are applied.
  var isLoaded: Bool { waiting == nil }

  /// A log begins, which may replace another one.
  mutating func begin(first: UInt64) {
    self = MQTTRosterReplica()
    self.first = first
    if first > 0 { waiting = [] }
  }

  /// The log no longer contains any of the snapshots.
  mutating func forgetSnapshots() { (snapshotOffset, parts) = (0, [:]) }

  /// Applies a record, or keeps it until a snapshot is complete.
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

  /// All existing records have been read. Without a snapshot, which an operator may have trimmed, the existing records are applied to an empty roster.
  mutating func isCurrent(_ effects: inout [MQTTRoster.Effect]) {
    if waiting != nil { catchUp(from: 0, &effects) }
  }

  private mutating func catchUp(from offset: UInt64, _ effects: inout [MQTTRoster.Effect]) {
    let items = waiting.take() ?? []
    for item in items where item.offset >= offset { roster.apply(item.record, of: item.key, &effects) }
  }

  /// Collects the parts of a snapshot. Returns a snapshot when it is complete.
  private mutating func collect(_ record: MQTTRosterRecord) -> (offset: UInt64, parts: [[UInt8]])? {
    switch record.kind {
    case .snapshot(let offset, let part, let bytes):
      // An up-to-date process needs only the number of parts.
      let id = SnapshotID(process: record.process, offset: offset)
      parts[id, default: [:]][part] = waiting == nil ? [] : bytes
    case .snapshotEnd(let offset, let count):
      let id = SnapshotID(process: record.process, offset: offset)
      guard let found = parts.removeValue(forKey: id), found.count == Int(count) else { return nil }
      // Removes parts from processes that ended before they completed their snapshots.
      parts = parts.filter { $0.key.offset > offset }
      return (offset, found.sorted { $0.key < $1.key }.map(\.value))
    default: break
    }
    return nil
  }
}
