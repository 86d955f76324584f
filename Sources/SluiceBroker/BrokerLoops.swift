import SluiceIO
import SluiceLog
import SluiceTopics

/// The event loops of a broker: those that serve connections, wait for the disk and verify credentials.
struct BrokerLoops: Sendable {
  /// How many connections share a loop before the next loop is used. With few connections, a record passes from one to another without waking another
  /// thread, which would cost more than all other work on the record.
  static let connectionsTogether = 16

  /// Threads that read records which are no longer in memory.
  private static let storageReaders = 2

  let serving: LoopGroup
  /// Threads that wait for the disk; nil to use the serving loops.
  private let storageThreads: LoopGroup?
  /// A thread that verifies credentials; nil to use the serving loops.
  private let accessThreads: LoopGroup?
  /// Whether the loops are threads that end with the broker.
  let areOwned: Bool

  /// - Parameter areOwned: false for loops with another owner, which don't end with the broker.
  init(serving: LoopGroup, storage: LoopGroup? = nil, access: LoopGroup? = nil, areOwned: Bool = false) {
    self.serving = serving
    storageThreads = storage
    accessThreads = access
    self.areOwned = areOwned
  }

  /// Starts threads of the broker's own.
  ///
  /// - Throws: `IOError` when a loop can't be made.
  static func threads(count: Int, storage: Bool, access: Bool) throws -> BrokerLoops {
    BrokerLoops(
      serving: try LoopGroup.threads(count: count, name: "broker"),
      storage: storage ? try LoopGroup.threads(count: 1 + storageReaders, name: "storage") : nil,
      access: access ? try LoopGroup.threads(count: 1, name: "access") : nil, areOwned: true)
  }

  /// The first loop writes to the store, the others read.
  var storage: LoopGroup { storageThreads ?? serving }

  /// The first loop verifies credentials.
  var access: LoopGroup { accessThreads ?? serving }

  /// Runs slow and rare jobs on a thread of their own; nil if the broker has no threads of its own.
  var background: SegmentPool.Background? {
    guard areOwned else { return nil }
    return { job in Threads.detach(name: "memory", job) == 0 }
  }

  private var groups: [LoopGroup] { [serving, storageThreads, accessThreads].compactMap(\.self) }

  /// Open streams on the serving loops. A closed stream keeps its descriptor until the peer has closed, too.
  var streamCount: Int { serving.loops.reduce(0) { $0 + $1.streamCount } }

  /// Stops the loops if the broker owns them. From any thread.
  func stop() {
    guard areOwned else { return }
    for loop in groups.flatMap(\.loops) { loop.stop() }
  }

  /// Waits until the threads of owned loops have ended. Must not be called on one of them.
  func joinThreads() {
    guard areOwned else { return }
    for group in groups { group.stopThreads() }
  }
}
