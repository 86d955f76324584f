/// The size of a store, in bytes.
public struct StoreSize: Hashable, Sendable {
  /// The size of its files.
  public var files: UInt64
  /// The part of it that later commits can use again; compacting (`LMDBStore.compact()`) gives it back to the disk.
  public var reusable: UInt64
  /// The most that it may grow to; nil for no limit.
  public var limit: UInt64?
  /// The free space of its file system; nil if it isn't known.
  public var available: UInt64?

  public init(files: UInt64, reusable: UInt64, limit: UInt64? = nil, available: UInt64? = nil) {
    self.files = files
    self.reusable = reusable
    self.limit = limit
    self.available = available
  }

  /// Bytes that aren't free.
  public var used: UInt64 { files - min(files, reusable) }
}
