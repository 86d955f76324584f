import SluiceWire

/// The broker's store at one moment.
public struct StoreSnapshot: Hashable, Sendable {
  public var state = StorageStatus.State.working
  /// For how long it has been full or failing, in milliseconds; 0 while it takes records.
  public var since: UInt64 = 0
  /// Why it takes no records, as clients are told; empty while it takes them.
  public var message = ""
  /// Its files were removed, or others put in their place. It takes no records before the broker is started again, or the files are back.
  public var isRemoved = false
  /// Bytes that it may take; nil for no limit.
  public var limit: UInt64?
  /// Bytes of its files.
  public var fileBytes: UInt64 = 0
  /// Bytes of its files that are in use.
  public var usedBytes: UInt64 = 0
  /// Bytes that its file system has left; nil where that isn't known.
  public var availableBytes: UInt64?
  /// Bytes of records that wait in memory to be written.
  public var backlog: UInt64 = 0
  /// Publishers that wait for it.
  public var waiting = 0

  public init() {}

  /// The most bytes that can be in use: as its limit allows, and as its file system has room for; nil where neither is known.
  public var capacity: UInt64? {
    let room = availableBytes.map { fileBytes + min($0, .max - fileBytes) }
    guard let limit, let room else { return limit ?? room }
    return min(limit, room)
  }

  /// The share of ``capacity`` that is in use, from 0 to 1; nil where that isn't known.
  public var fullness: Double? {
    capacity.map { $0 == 0 ? 1 : min(Double(usedBytes) / Double($0), 1) }
  }

  /// ``fullness`` in full percents, so that 100 means full; nil where that isn't known.
  public var percent: Int? { fullness.map { Int($0 * 100) } }

  /// As it travels to clients.
  public var status: StorageStatus {
    StorageStatus(state: state, since: since, used: usedBytes, limit: limit ?? .max)
  }
}
