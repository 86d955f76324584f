import SluiceIO
import SluiceSession
import SluiceStore
import SluiceTopics
import SluiceWire

// Shards of a cluster's topics, which this broker opens and closes. From any thread.
extension Broker {
  /// Which node serves which topics; nil for a broker of one node.
  package var routes: ShardRoutes? { core.routes }

  /// The broker's identity in WELCOME, new with each start.
  package var identity: UInt64 { core.identity }

  /// Finds out whether the broker of another node can be reached at its address.
  ///
  /// - Parameters:
  ///   - node: the other node.
  ///   - identity: that of its broker; another broker at the address isn't the node's.
  ///   - done: called once, on a loop of this broker, with the reason why it can't be reached; nil when it was reached.
  package func reach(
    _ node: RemoteNode, identity: UInt64, _ done: @escaping @Sendable (String?) -> Void
  ) {
    let first = contexts[0]
    first.loop.execute { first.relay?.reach(node, identity: identity, done) }
  }

  /// Calls `body`, on any loop, with the name of each node to which a link has failed.
  package func observeLinks(_ body: @escaping @Sendable (String) -> Void) {
    core.observeLinks(body)
  }

  /// Bounds records to the longest that the store of durable topics accepts, in bytes. Clients see it with their next connection. The operator's limit
  /// also applies.
  package func boundRecords(by bytes: Int) { core.rules.records.bound(by: bytes) }

  /// Restores a shard's topics, and serves them.
  ///
  /// - Parameters:
  ///   - shard: its number.
  ///   - opened: the shard as its engine has opened it.
  ///   - loop: the loop of the store, on which this must be called.
  ///   - report: gets the store's events.
  ///   - done: called on `loop` when clients may use the topics, or with the error that kept the broker from restoring them.
  package func open(
    _ shard: ShardID, _ opened: OpenedShard, on loop: any EventLoop,
    report: @escaping @Sendable (StoreEvent) -> Void, _ done: @escaping @Sendable (StoreError?) -> Void
  ) {
    let registry = core.registry
    let service = StoreService(
      opened.store, pool: registry.pool, limits: registry.limits, writer: loop, readers: [loop],
      metrics: core.metrics, arrivalsOfAll: registry.stores.arrivals, report: report)
    registry.stores.add(service, of: shard)
    registry.restore(
      opened, service, now: loop.now, wallClock: loop.wallClock,
      announce: { [weak service, weak registry] in
        guard let service, let registry else { return }
        registry.storeChanged(service)
      }
    ) { [self] result in
      switch result {
      case .failure(let error):
        for topic in registry.beginLeaving(shard) { topic.leave() }
        registry.stores.remove(service, of: shard)
        opened.store.close { _ in done(error) }
      case .success(let event):
        report(event)
        // The shard may have been given up while its records were read.
        guard registry.stores.service(of: shard) === service else {
          return service.close {
            done(StoreError(.fenced, "shard \(shard) was given up while it was being opened"))
          }
        }
        serve(shard, service, done)
      }
    }
  }

  private func serve(
    _ shard: ShardID, _ service: StoreService, _ done: @escaping @Sendable (StoreError?) -> Void
  ) {
    let registry = core.registry
    // New epochs are stored before any client can observe them.
    service.flush { [self] in
      if let refusal = service.refusal { return done(StoreError(.unavailable, refusal.message)) }
      let topics = registry.open(shard)
      // Producers of topics from the store have to attach again.
      let first = contexts[0]
      first.loop.execute { for topic in topics { topic.failWhenProducersStayLost(on: first.topics) } }
      done(nil)
    }
  }

  /// Gives a shard up in order: its topics accept no more records, accepted records are stored and acknowledged, streams end with
  /// `ErrorCode.topicMoved`, and the store is closed.
  ///
  /// The shard must already be routed to another node, so that no stream is opened meanwhile.
  ///
  /// - Parameter done: called once, on any thread, when this broker has released everything of the shard.
  package func close(_ shard: ShardID, _ done: @escaping @Sendable () -> Void) {
    let (registry, stores) = (core.registry, core.stores)
    let topics = registry.beginLeaving(shard)
    guard let service = stores.service(of: shard) else {
      for topic in topics { topic.leave() }
      return done()
    }
    service.flush {
      for topic in topics { topic.leave() }
      service.close {
        stores.remove(service, of: shard)
        done()
      }
    }
  }

  /// Gives a shard up at once, since another node owns it or may own it: its streams end, and this node acknowledges and stores nothing more of it.
  package func lose(_ shard: ShardID) {
    for topic in core.registry.beginLeaving(shard) { topic.leave() }
    core.stores.remove(shard)?.close {}
  }

  /// Sends the acknowledgements that were withheld while the node's lease was invalid. Called when the lease is valid again.
  package func leaseResumed() { core.registry.leaseResumed() }
}
