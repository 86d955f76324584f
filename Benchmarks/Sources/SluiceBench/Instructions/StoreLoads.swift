import Foundation
import SluiceStore
import SluiceStoreLMDB
import SluiceWire

/// The LMDB store: commits of batches, and reading them.
enum StoreLoads {
  private static let batch = FixedBatch(size: 128, count: 64)
  private static let commits = 200
  private static let topic = TopicID(rawValue: 1)

  static var all: [FixedLoad] {
    [
      FixedLoad(name: "store: commit batches of 64 records", unit: "record", units: commits * batch.count) {
        let store = try open()
        try append(store, from: 0)
        return { try append(store, from: commits) }
      },
      FixedLoad(name: "store: read batches of 64 records", unit: "record", units: commits * batch.count) {
        let store = try open()
        try append(store, from: 0)
        return {
          var bytes = 0
          try store.batches(of: topic, from: 0) { offset, found in
            guard BatchView(found, of: topic, at: offset) != nil else { return false }
            bytes &+= found.count
            return true
          }
          keep(bytes)
        }
      },
    ]
  }

  /// An empty store in a directory that is removed when the process ends.
  private static func open() throws -> LMDBStore {
    let template = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-fixed-XXXXXX").path
    var path = Array(template.utf8CString)
    guard mkdtemp(&path) != nil else { throw BenchError("cannot make a directory like \(template)") }
    directory = String(decoding: path.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    atexit { try? FileManager.default.removeItem(atPath: StoreLoads.directory) }
    // Valgrind's address space is too small for the default limit.
    var options = LMDBStore.Options()
    options.limit = 1 << 30
    let store = try LMDBStore.open(at: directory, options)
    var change = TopicChange(topic)
    change.row = StoredTopic(name: "bench", settings: TopicSettings(), epoch: 1)
    try store.commit([change])
    return store
  }

  /// Set once, before the process ends.
  nonisolated(unsafe) private static var directory = ""

  private static func append(_ store: LMDBStore, from first: Int) throws {
    for index in first..<(first + commits) {
      let block = BatchBlock(
        firstOffset: UInt64(index * batch.count), bytesBefore: UInt64(index * batch.bytes.count))
      _ = block.append(batch.bytes, count: batch.count, time: 1)
      block.seal(for: topic)
      var change = TopicChange(topic)
      change.batches = [block]
      try store.commit([change])
    }
  }
}
