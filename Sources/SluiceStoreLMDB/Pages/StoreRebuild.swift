/// The result of rebuilding a store from what could be read of its file.
public struct StoreRebuild: Hashable, Sendable {
  /// The damage of the old file, in a line each.
  public var faults: [String]
  /// The part of it that was read, and is in the new file.
  public var topics: UInt64 = 0
  public var batches: UInt64 = 0
  public var states: UInt64 = 0
  /// Batches and states of topics whose rows couldn't be read: they are in the new store, under rows that `StoreRepair` restores.
  public var topicsWithoutRows: UInt64 = 0
  /// Entries whose values couldn't be read.
  public var lost: UInt64 = 0
}
