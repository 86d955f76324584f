import SluiceWire

/// The broker's store at one moment.
public struct StoreSnapshot: Hashable, Sendable {
  public var state = StorageStatus.State.working
  /// For how long it has been full or failing, in milliseconds; 0 while it accepts records.
  public var since: UInt64 = 0
  /// Why it accepts no records, as reported to clients; empty while it accepts them.
  public var message = ""
  /// Its files were removed or replaced. It accepts no records until the broker is restarted, or the files are back.
  public var isRemoved = false
  /// The most bytes that it may use; nil for no limit.
  public var limit: UInt64?
  /// Bytes of its files.
  public var fileBytes: UInt64 = 0
  /// Bytes of its files that are in use.
  public var usedBytes: UInt64 = 0
  /// Free bytes of its file system; nil if unknown.
  public var availableBytes: UInt64?
  /// Bytes of records that wait in memory to be written.
  public var backlog: UInt64 = 0
  /// Producers that wait for it.
  public var waiting = 0

  public init() {}

  /// The most bytes that can be in use, by its limit and by the free space of its file system; nil if neither is known.
  public var capacity: UInt64? {
    let room = availableBytes.map { fileBytes + min($0, .max - fileBytes) }
    guard let limit, let room else { return limit ?? room }
    return min(limit, room)
  }

  /// The share of ``capacity`` that is in use, from 0 to 1; nil if unknown.
  public var fullness: Double? {
    capacity.map { $0 == 0 ? 1 : min(Double(usedBytes) / Double($0), 1) }
  }

  /// ``fullness`` in whole percent, rounded down, so that 100 means full; nil if unknown.
  public var percent: Int? { fullness.map { Int($0 * 100) } }

  /// The form in which it is sent to clients.
  public var status: StorageStatus {
    StorageStatus(state: state, since: since, used: usedBytes, limit: limit ?? .max)
  }
}
