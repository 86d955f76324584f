import EngineTestSupport
import Glibc
import SluiceNATS
import Synchronization
import TestSupport
import Testing

@testable import SluiceCluster
@testable import SluiceStore
@testable import SluiceStoreLMDB

/// A kind of store on which the tests of all stores run.
enum StoreEngine: String, CaseIterable, CustomTestStringConvertible {
  case memory
  case lmdb
  /// A shard on a real `nats-server`; omitted if that isn't installed.
  case jetStream

  static var allCases: [StoreEngine] {
    EngineProcess.program == nil ? [.memory, .lmdb] : [.memory, .lmdb, .jetStream]
  }

  var testDescription: String { rawValue }

  /// How many random histories of a store are played: commits to a server take longer. SLUICE_ENGINE_ROUNDS sets another number for the server.
  var rounds: Int {
    guard self == .jetStream else { return 150 }
    return getenv("SLUICE_ENGINE_ROUNDS").flatMap { Int(String(cString: $0)) } ?? 25
  }

  func make() throws -> TestedStore {
    switch self {
    case .memory: TestedStore(store: MemoryStore())
    case .lmdb: try TestedStore(in: ScratchDirectory())
    case .jetStream: try TestedStore(on: .shared())
    }
  }
}

/// A store that can be reopened.
struct TestedStore {
  private(set) var store: any TopicStore
  private var scratch: ScratchDirectory?
  private var engine: EngineUnderTest?

  init(store: any TopicStore) {
    self.store = store
  }

  init(in scratch: ScratchDirectory) throws {
    self.scratch = scratch
    store = try Self.open(scratch)
  }

  init(on engine: EngineUnderTest) throws {
    self.engine = engine
    store = try engine.open(nil)
  }

  private static func open(_ scratch: ScratchDirectory) throws -> LMDBStore {
    var options = LMDBStore.Options()
    options.limit = 256 << 20
    return try LMDBStore.open(at: scratch.path, options)
  }

  /// - Parameter isClean: whether it is closed in order, instead of being left as by a killed process.
  mutating func reopen(cleanly isClean: Bool) throws {
    if isClean { try store.close() }
    if let engine { store = try engine.open(store as? ShardAsTopicStore) }
    guard let scratch else { return }
    store = MemoryStore()
    store = try Self.open(scratch)
  }
}

/// A server with streams in memory, and a client of it, for all tests of this process.
final class EngineUnderTest: Sendable {
  private static let made = Mutex<EngineUnderTest?>(nil)

  private let client: RealClient
  private let engine: JetStreamEngine
  private let nextShard = Mutex<UInt32>(0)

  static func shared() throws -> EngineUnderTest {
    try made.withLock { made in
      if let made { return made }
      let new = try EngineUnderTest()
      made = new
      return new
    }
  }

  private init() throws {
    let server = try EngineProcess(jetStream: "max_memory_store: 1GB")
    try server.start()
    client = try RealClient([server]).open()
    var options = JetStreamEngineOptions()
    options.replicas = 1
    options.storage = .memory
    // Small limits, so that checkpoints and changes in several messages are frequent.
    options.checkpointBytes = 50_000
    options.checkpointInterval = .zero
    options.messageBytes = 100_000
    engine = JetStreamEngine(client.client, options: options)
  }

  /// Opens a new shard, or reopens the former one.
  func open(_ former: ShardAsTopicStore?) throws -> ShardAsTopicStore {
    let number =
      former?.number
      ?? nextShard.withLock {
        $0 += 1
        return $0
      }
    let term = (former?.term ?? 0) + 1
    let shard = try BlockingShard.open(engine, shard: number, term: term, on: client.loop)
    let wasClosed = shard.opened.contents.wasClosed || former?.isUntouched ?? false
    return ShardAsTopicStore(shard, number: number, term: term, wasClosed: wasClosed)
  }
}

/// A shard on the engine as a blocking store.
final class ShardAsTopicStore: TopicStore {
  let shard: BlockingShard
  let number: UInt32
  let term: UInt64
  private let wasClosed: Bool
  private let hasCommits = Mutex(false)

  fileprivate init(_ shard: BlockingShard, number: UInt32, term: UInt64, wasClosed: Bool) {
    self.shard = shard
    self.number = number
    self.term = term
    self.wasClosed = wasClosed
  }

  private var store: EngineStore { shard.opened.store as! EngineStore }

  /// Whether it is as it was closed. Opening marks a shard as open, whereas the first commit marks a store on disk.
  fileprivate var isUntouched: Bool { wasClosed && !hasCommits.withLock { $0 } }

  func contents() throws(StoreError) -> StoreContents {
    let store = store
    var contents = shard.onLoop { _ in store.contents }
    contents.wasClosed = isUntouched
    return contents
  }

  func states(of topic: TopicID, _ kind: StoredState.Kind) throws(StoreError) -> [StoredState] {
    let store = store
    return shard.onLoop { _ in store.states(of: topic, kind) }
  }

  func extent(of topic: TopicID) throws(StoreError) -> StoredExtent? {
    let store = store
    return shard.onLoop { _ in SharedBox(try? store.extent(of: topic)) }.value
  }

  func commit(_ changes: [TopicChange]) throws(StoreError) {
    try shard.commit(changes)
    hasCommits.withLock { $0 = true }
  }

  func batches(
    of topic: TopicID, from offset: UInt64, _ body: (UInt64, UnsafeRawBufferPointer) -> Bool
  ) throws(StoreError) { try shard.batches(of: topic, from: offset, body) }

  func reclaim() throws(StoreError) -> Bool {
    let store = store
    return shard.onLoop { _ in (try? store.reclaim()) ?? false }
  }

  func close() throws(StoreError) { try shard.close() }
}
