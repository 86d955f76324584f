import SluiceIO
import SluiceTopics
import SluiceWire

extension Broker {
  /// Gathers a snapshot of the broker. From any thread; returns at once.
  ///
  /// Every loop is asked once, and answers a part per turn, so that its connections wait only briefly.
  ///
  /// - Parameters:
  ///   - request: how much to list.
  ///   - completion: called once, on one of the broker's loops, and must neither wait nor assemble the snapshot there. If the loops have ended, it is
  ///     called on the calling thread with a snapshot without connections.
  public func snapshot(
    _ request: SnapshotRequest = SnapshotRequest(), completion: @escaping @Sendable (GatheredSnapshot) -> Void
  ) {
    SnapshotGathering(
      request, of: core, on: contexts, metrics: { [self] in metrics }, completion: completion
    ).begin()
  }

  /// Sets the problems that clients get when they request problems. The broker uses them as long as they are new, instead of searching at each
  /// request. From any thread.
  ///
  /// - Parameters:
  ///   - problems: the problems that a periodic ``ProblemFinder`` has found, the most urgent ones first.
  ///   - kinds: its ``ProblemFinder/kinds``.
  ///   - time: the time of the search, by the clock of the broker's loops.
  public func tell(_ problems: [Problem], _ kinds: [ProblemKind], at time: MonotonicTime) {
    problemWatch.tell(problems, kinds, at: time)
  }

  /// Looks for problems, as a client's request does. If this is called regularly, clients also see problems that show in counters of the last minute,
  /// such as rejected logins, without ``tell(_:_:at:)``. From any thread; returns at once.
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

  /// Searches a topic for records to show. Attaches nothing to the topic, and delays neither its producers nor its subscribers: `loop` does the work,
  /// a portion at a time. From any thread; returns at once.
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
