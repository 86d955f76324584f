import SluiceAdmin
import SluiceBroker
import SluiceCluster
import SluiceCommand
import SluiceDoors
import SluiceIO
import SluiceNATS
import SluiceStore
import SluiceWire
import Synchronization

/// This process as a node of a cluster: the node with its own thread, its counters, and its shutdown.
///
/// May be used from any thread.
final class DaemonCluster: ClusterAdministration {
  let member: ClusterMember
  private let loop: EpollLoop
  private let record: ClusterRecorder
  private let logger: Logger

  /// The interval of updates for the admin listener.
  private static let interval = Duration.milliseconds(250)

  /// - Throws: `UsageError` for settings and files that can't be used; `IOError` when the system has no more threads.
  init(_ settings: DaemonSettings, _ logger: Logger) throws {
    let options = try settings.clusterOptions()
    var engineOptions = JetStreamEngineOptions()
    engineOptions.replicas = options.replicas
    let (loop, record) = (try EpollLoop.start(name: "cluster"), ClusterRecorder(logger))
    do {
      member = try ClusterMember(
        options, engineOptions: engineOptions, network: SocketNetwork(), on: loop,
        storeReport: { record.note($0, $1) }, report: { record.note($0) })
    } catch {
      loop.stop()
      loop.join()
      throw UsageError("--cluster: \(error)")
    }
    self.loop = loop
    self.record = record
    self.logger = logger
    if options.engineUnsafe {
      logger.log(
        .warning,
        "--engine-unsafe: records acknowledged as durable may be lost, because the engine's settings aren't checked"
      )
    }
    if let address = try? settings.advertisedAddress(), address.isOnThisMachine {
      logger.log(
        .warning, "other machines can't reach this node: its address is local; set --advertise",
        ["address": .text(address.description)])
    }
  }

  /// Joins the cluster. The broker must have been started.
  func start(_ broker: Broker) {
    broker.administer(self)
    member.start(broker)
    look()
  }

  /// Hands all shards over, and calls `done` once: when that is done, or after `time`.
  func leave(within time: Duration, _ done: @escaping @Sendable () -> Void) {
    let token = OnceToken()
    let start = ContinuousClock.now
    let end: @Sendable (Bool) -> Void = { [logger] hasLeft in
      guard token.take() else { return }
      let ms = JSON.number((ContinuousClock.now - start).wholeMilliseconds)
      if hasLeft {
        logger.log(.info, "the node has left the cluster", ["ms": ms])
      } else {
        logger.log(
          .warning,
          "the node couldn't hand over all shards in time; other nodes take them over when its lease expires",
          ["ms": ms])
      }
      done()
    }
    loop.execute { [loop, member] in
      _ = loop.schedule(after: time) { end(false) }
      member.leave { end(true) }
    }
  }

  /// Ends at once, and waits for the end. Must not be called on the cluster's thread.
  func close() {
    member.close()
    // Runs after the job that closes the member.
    loop.execute { [loop] in loop.stop() }
    loop.join()
  }

  // MARK: Status for the admin listener

  /// The node's latest status, which is updated about four times per second.
  var snapshot: ClusterSnapshot { record.snapshot }

  private func look() {
    member.status { [weak self] status in
      guard let self else { return }
      record.take(status)
      _ = loop.schedule(after: Self.interval) { [weak self] in self?.look() }
    }
  }

  // MARK: Clients that administer the cluster

  func clusterInfo(_ body: @escaping @Sendable (ClusterInfo) -> Void) {
    member.status { [record] status in body(record.take(status).info) }
  }

  func drain(_ node: String, _ isWanted: Bool, _ done: @escaping @Sendable (String?) -> Void) {
    member.drain(node, isWanted) { done($0?.description) }
  }

  func pin(_ shard: Int, to node: String?, _ done: @escaping @Sendable (String?) -> Void) {
    member.pin(shard, to: node) { done($0?.description) }
  }
}

/// A flag that can be taken once.
private final class OnceToken: Sendable {
  private let isTaken = Atomic(false)

  /// Returns true the first time.
  func take() -> Bool { !isTaken.exchange(true, ordering: .relaxed) }
}

extension DaemonCluster {
  /// The gateways' view of the cluster.
  var doors: DoorCluster {
    DoorCluster(node: member.options.name) { [routes = member.routes] now in routes.otherNodes(at: now) }
  }
}
