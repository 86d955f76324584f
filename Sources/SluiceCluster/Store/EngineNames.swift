import SluiceNATS
import SluiceStore

/// The stream of a shard, and its subjects.
///
/// | subject | messages |
/// |---|---|
/// | `sl.N.t.T` | changes of topic T, each with its batches, states and row; one for each commit, in an atomic batch with those of other topics |
/// | `sl.N.m.f` | fences |
/// | `sl.N.m.k.T.P` | part P of the last checkpoint of topic T |
/// | `sl.N.m.r` | the last front |
struct EngineNames: Hashable, Sendable {
  let shard: ShardID

  var stream: String { "SLUICE_\(shard)" }
  var all: String { "sl.\(shard).>" }
  /// All subjects except those of changes.
  var management: String { "sl.\(shard).m.>" }
  var fence: String { "sl.\(shard).m.f" }
  var front: String { "sl.\(shard).m.r" }

  func changes(of topic: TopicID) -> String { "sl.\(shard).t.\(topic.rawValue)" }
  func checkpoint(of topic: TopicID, part: Int) -> String { "sl.\(shard).m.k.\(topic.rawValue).\(part)" }
  func checkpoints(of topic: TopicID) -> String { "sl.\(shard).m.k.\(topic.rawValue).>" }
}

/// The settings with which shards are stored on JetStream.
public struct JetStreamEngineOptions: Hashable, Sendable {
  /// The number of servers that keep a copy of a stream.
  public var replicas = 3
  /// The most bytes of a shard's stream; nil for no limit of its own. Beyond it, the owner refuses records. The engine's own limit is higher, so that a full
  /// shard can be opened, and changes that free space can be stored.
  public var limit: Int?
  /// The most commits of a shard in progress.
  public var depth = 16
  /// The bytes of a topic's records in a full commit, if a message may have as many.
  public var commitBytes = 960 << 10
  /// While more bytes than these wait to be sent to the engine's server, no further commit of any shard is sent. The node's other requests, such as lease
  /// renewals, are sent after the waiting bytes.
  public var backlogBytes = 2 << 20
  /// The number of changed bytes after which a shard's topics get checkpoints. Changes before those aren't read again when the shard is opened.
  public var checkpointBytes = 8 << 20
  /// The least time between two checkpoints of a shard: no commit is in progress while they are written. For a shard that changes fast, opening also reads
  /// what the engine stores in that time, beyond ``checkpointBytes``.
  public var checkpointInterval = Duration.seconds(1)
  /// The most bytes of a message's payload, if the engine allows as many.
  public var messageBytes = Int.max
  /// How long the engine may take to answer.
  public var timeout = Duration.seconds(3)
  /// How long the engine may take to store a barrier, before the next one is written. A server that is about to become a stream's leader drops requests, and
  /// all commits of a shard wait for the barrier.
  public var barrierTimeout = Duration.seconds(1)
  /// How long a replica may take to answer before the stream's leader is asked instead; nil to ask replicas only.
  public var replicaTimeout: Duration? = .seconds(1)
  /// How long only leaders are asked after a replica hasn't answered.
  public var leaderReads = Duration.seconds(10)
  /// How long opening a shard may take.
  public var openTimeout = Duration.seconds(20)

  /// Where the engine keeps streams; in memory for tests only.
  var storage = StreamConfiguration.Storage.file
  /// The engine's limit, if a test needs another one.
  var streamLimit: Int64?
  /// A fault planted by a test, which its oracle must detect.
  var flaw: EngineFlaw?

  public init() {}

  func stream(_ names: EngineNames) -> StreamConfiguration {
    var stream = StreamConfiguration(names.stream, subjects: [names.all])
    stream.replicas = replicas
    stream.storage = storage
    stream.allowsAtomicBatches = true
    stream.allowsDirectReads = true
    stream.allowsRollUp = true
    stream.maximumBytes = streamLimit ?? limit.map { Int64($0 + $0 / 8 + 4 << 20) } ?? -1
    // The engine refuses messages beyond its limit: only the owner drops old ones.
    stream.discard = .new
    return stream
  }
}

/// A fault that tests plant in a shard's store.
enum EngineFlaw: Hashable, Sendable, CaseIterable {
  /// Commits don't expect the stream's last sequence, and count regardless of their fence.
  case noFence
  /// Commits with an unknown result are sent again at once.
  case blindRetry
  /// Opening doesn't check whether a replica has all messages.
  case staleRead
  /// Space is freed up to the last sequence, not up to the front.
  case purgeBeyondFront
  /// Commits are reported as stored when they are sent.
  case earlyAnswer
  /// The positions of groups and cursors aren't stored.
  case noPlaces
}

extension StoreError {
  /// The store's error for an error of the engine if nothing was stored.
  init(_ error: NATSError, _ what: String) {
    let kind: Kind =
      switch error.code {
      case .resourcesExhausted: .full
      case .malformedAnswer, .invalidRequest, .streamExists: .failed
      default: .unavailable
      }
    self.init(kind, "\(what): \(error)")
  }
}
