import SluiceWire

/// Brings topics from a stream into a store: all of them, once the stream has been read to its end and found whole, or none.
public struct StoreImport: Hashable, Sendable {
  public var topics: UInt64 = 0
  public var batches: UInt64 = 0
  public var records: UInt64 = 0
  public var states: UInt64 = 0

  /// - Parameters:
  ///   - store: where the topics go.
  ///   - isReplacing: whether topics that are there already make room for those of the same name. Otherwise they are refused.
  ///   - progress: is told how many bytes of the stream were read, now and then; returns whether to go on.
  ///   - reader: has the stream.
  /// - Throws: ``StoreError``; the store has the topics that it had then.
  public static func run(
    into store: any LoadableStore, replacing isReplacing: Bool,
    progress: @escaping (UInt64) -> Bool = { _ in true }, from reader: consuming ExportReader
  ) throws(StoreError) -> StoreImport {
    var assembly = ImportAssembly(store, isReplacing: isReplacing, try store.inspection())
    do throws(StoreError) {
      while let section = try reader.next() {
        guard progress(reader.bytes) else { throw .stopped }
        try assembly.take(section)
      }
      return try assembly.finish()
    } catch {
      assembly.discard()
      throw error
    }
  }
}
