import SluiceIO
import SluiceNATS
import SluiceStore
import SluiceWire

/// Shards on JetStream.
// @unchecked: the client is used on its loop only.
public final class JetStreamEngine: ShardEngine, @unchecked Sendable {
  private let client: NATSClient
  private let options: JetStreamEngineOptions
  /// How long commits of its shards take.
  let meter = CommitMeter()
  private let reads: StreamReads
  private var openers: SeededRandom

  /// - Parameters:
  ///   - client: a started client; shards belong to its loop. The caller closes it after the shards are closed.
  ///   - options: how shards are stored.
  ///   - seed: the seed of the numbers by which owners of a shard distinguish their messages. It must be different in each process.
  public init(
    _ client: NATSClient, options: JetStreamEngineOptions = JetStreamEngineOptions(),
    seed: UInt64 = UInt64.random(in: 0 ... .max)
  ) {
    self.client = client
    self.options = options
    reads = StreamReads(options)
    openers = SeededRandom(seed: seed)
  }

  /// The longest record that the engine can store, in bytes. A record is in one atomic batch with the changes of other topics, and all of that waits in the
  /// client's backlog at once. On the client's loop, when it is connected.
  var longestRecord: Int {
    let payload = EngineStore.mostBytes(of: client, options) - EngineEnvelope.size
    let (bytes, overflow) = payload.multipliedReportingOverflow(
      by: JetStream.maximumBatch - EngineStore.mostChanges)
    return min(overflow ? .max : bytes, client.options.maximumBacklog / 2)
  }

  /// Opens a shard, and creates its stream if there is none. From any thread; `done` is called on the client's loop.
  ///
  /// - Parameters:
  ///   - lease: the owner's lease. A lease with a lower term than that of the last opener fails with `StoreError.Kind.fenced`.
  ///   - done: called once.
  public func open(
    _ lease: ShardLease, _ done: @escaping @Sendable (Result<OpenedShard, StoreError>) -> Void
  ) {
    client.loop.execute { [self] in
      EngineOpening(JetStream(client), lease, opener: openers.next(), options, meter, reads, done).run()
    }
  }
}
