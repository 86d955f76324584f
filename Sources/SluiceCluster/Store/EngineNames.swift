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
  /// Everything but the changes.
  var management: String { "sl.\(shard).m.>" }
  var fence: String { "sl.\(shard).m.f" }
  var front: String { "sl.\(shard).m.r" }

  func changes(of topic: TopicID) -> String { "sl.\(shard).t.\(topic.rawValue)" }
  func checkpoint(of topic: TopicID, part: Int) -> String { "sl.\(shard).m.k.\(topic.rawValue).\(part)" }
  func checkpoints(of topic: TopicID) -> String { "sl.\(shard).m.k.\(topic.rawValue).>" }
}

/// How shards are kept on JetStream.
public struct JetStreamEngineOptions: Hashable, Sendable {
  /// On how many servers a stream is kept.
  public var replicas = 3
  /// The most bytes of a shard's stream; nil without a limit of its own. The owner refuses records beyond it; the engine's own limit is higher, so
  /// that a shard that is full can be opened, and what makes room can be stored.
  public var limit: Int?
  /// How many commits of a shard may be under way.
  public var depth = 16
  /// So many bytes of records of a topic make a commit, where a message may have as many.
  public var commitBytes = 960 << 10
  /// While more bytes than these wait for the engine's server, no further commit of any shard is sent: what else the node asks of the engine, such as its lease, stands
  /// behind what waits already.
  public var backlogBytes = 2 << 20
  /// Behind so many bytes of changes a shard's topics get checkpoints, and what is before those isn't read again when the shard is opened.
  public var checkpointBytes = 8 << 20
  /// How much time passes between two checkpoints of a shard at least: nothing is under way while they are written. What a shard that changes fast has to
  /// read again is what the engine stores in that time, beyond ``checkpointBytes``.
  public var checkpointInterval = Duration.seconds(1)
  /// The most bytes of a message's payload, where the engine allows as many.
  public var messageBytes = Int.max
  /// How long the engine may take for an answer.
  public var timeout = Duration.seconds(3)
  /// How long the engine may take to store a barrier, before the next one is written: a server that is about to lead a stream drops requests, and all commits of a
  /// shard wait for the barrier.
  public var barrierTimeout = Duration.seconds(1)
  /// How long a replica may take for an answer before the stream's leader is asked instead; nil to ask replicas only.
  public var replicaTimeout: Duration? = .seconds(1)
  /// How long only leaders are asked after a replica hasn't answered.
  public var leaderReads = Duration.seconds(10)
  /// How long opening a shard may take.
  public var openTimeout = Duration.seconds(20)

  /// Where streams are; in memory for tests only.
  var storage = StreamConfiguration.Storage.file
  /// The engine's limit, where a test wants another one.
  var streamLimit: Int64?
  /// What a test has broken, so that its oracle must notice.
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
    // What doesn't fit is refused: old messages are dropped by the owner alone.
    stream.discard = .new
    return stream
  }
}

/// A fault that tests plant in a shard's store.
enum EngineFlaw: Hashable, Sendable, CaseIterable {
  /// Commits don't expect the stream's last sequence, and count whatever fence they were made under.
  case noFence
  /// What has failed with an unknown outcome is sent again at once.
  case blindRetry
  /// Opening takes what a replica has for everything.
  case staleRead
  /// Space is freed up to the last sequence, not up to the front.
  case purgeBeyondFront
  /// Commits are answered when they are sent.
  case earlyAnswer
  /// The places of groups and cursors aren't stored.
  case noPlaces
}

extension StoreError {
  /// What an error of the engine means where nothing was stored.
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
