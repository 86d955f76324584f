import SluiceIO
import SluiceTopics
import SluiceWire

extension Broker {
  /// Gathers a snapshot of the broker. From any thread; returns at once.
  ///
  /// Every loop is asked once, and answers a part per turn, so that its connections don't wait for long.
  ///
  /// - Parameters:
  ///   - request: how much to list.
  ///   - completion: called once, on one of the broker's loops, where it must neither wait nor assemble the snapshot; on the calling thread when
  ///     the loops have ended, with a snapshot without connections.
  public func snapshot(
    _ request: SnapshotRequest = SnapshotRequest(), completion: @escaping @Sendable (GatheredSnapshot) -> Void
  ) {
    SnapshotGathering(
      request, of: core, on: contexts, metrics: { [self] in metrics }, completion: completion
    ).begin()
  }

  /// Has clients that ask for problems be told of these, for as long as they are new, rather than of those that a look at their request finds. From
  /// any thread.
  ///
  /// - Parameters:
  ///   - problems: what a ``ProblemFinder`` has found that looks regularly, the most urgent ones first.
  ///   - kinds: its ``ProblemFinder/kinds``.
  ///   - time: when, by the clock of the broker's loops.
  public func tell(_ problems: [Problem], _ kinds: [ProblemKind], at time: MonotonicTime) {
    problemWatch.tell(problems, kinds, at: time)
  }

  /// Looks for problems, as a client's request does. Called regularly, it lets the broker tell clients how much counters have grown within the last minute, such as
  /// those of rejected logins, where nothing tells it of problems by ``tell(_:_:at:)``. From any thread; returns at once.
  public func lookForProblems() {
    let loop = contexts[0].loop
    loop.execute { [self] in problemWatch.problems(now: loop.now, in: snapshotWithCluster) { _ in } }
  }

  /// A snapshot of the store; nil for a broker without durable topics. From any thread; returns at once.
  public var storage: StoreSnapshot? { core.stores.snapshot }

  /// Returns a snapshot of the broker.
  public func snapshot(_ request: SnapshotRequest = SnapshotRequest()) async -> BrokerSnapshot {
    let gathered = await withCheckedContinuation { continuation in
      snapshot(request) { continuation.resume(returning: $0) }
    }
    return gathered.assembled()
  }

  /// Looks for records of a topic to show. Attaches nothing to the topic, and delays neither its producers nor its subscribers: `loop` does the
  /// work, a portion at a time. From any thread; returns at once.
  ///
  /// - Parameters:
  ///   - topic: its name.
  ///   - query: which records, and the most work for them.
  ///   - loop: a loop, of the broker or of its owner, that may be busy for about a millisecond at a time.
  ///   - completion: called once, on `loop`, with the records from the oldest to the newest, or with the reason why there are none: the topic
  ///     doesn't exist, or its store can't be read. Not called when the broker, or the loop, stops before.
  public func records(
    of topic: String, _ query: RecordQuery, on loop: any EventLoop,
    completion: @escaping @Sendable (Result<RecordPage, WireError>) -> Void
  ) {
    loop.execute { [core] in
      guard let found = core.registry.find(topic) else {
        return completion(.failure(WireError(.unknownTopic, "there is no topic \(topic)")))
      }
      RecordScan(found, query, on: loop, completion).begin()
    }
  }
}
