import TestSupport
import Testing

@testable import SluiceStore
@testable import SluiceStoreLMDB

/// A kind of store that the tests of all stores are run with.
enum StoreEngine: String, CaseIterable, CustomTestStringConvertible {
  case memory
  case lmdb

  var testDescription: String { rawValue }

  func make() throws -> TestedStore {
    switch self {
    case .memory: TestedStore(store: MemoryStore())
    case .lmdb: try TestedStore(in: ScratchDirectory())
    }
  }
}

/// A store that can be opened again.
struct TestedStore {
  private(set) var store: any TopicStore
  private var scratch: ScratchDirectory?

  init(store: any TopicStore) {
    self.store = store
  }

  init(in scratch: ScratchDirectory) throws {
    self.scratch = scratch
    store = try Self.open(scratch)
  }

  private static func open(_ scratch: ScratchDirectory) throws -> LMDBStore {
    var options = LMDBStore.Options()
    options.limit = 256 << 20
    return try LMDBStore.open(at: scratch.path, options)
  }

  /// - Parameter isClean: Otherwise it is left as by a process that ended at once.
  mutating func reopen(cleanly isClean: Bool) throws {
    if isClean { try store.close() }
    guard let scratch else { return }
    store = MemoryStore()
    store = try Self.open(scratch)
  }
}
