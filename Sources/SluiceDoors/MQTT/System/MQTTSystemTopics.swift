import SluiceCommand
import SluiceIO
import SluiceMQTT
import Synchronization

/// The values of `$SYS/broker/…`: computed each second while a client is subscribed to any, otherwise never. On a node of a cluster they describe the node.
///
/// Usable from any thread.
final class MQTTSystemTopics: Sendable {
  private struct Follower {
    weak var handle: MQTTHandle?
  }

  private struct State {
    weak var hub: MQTTHub?
    /// Computes the values.
    var loop: (any EventLoop)?
    var values: MQTTSystemValues?
    var traffic: [MQTTTraffic] = []
    var followers: [ObjectIdentifier: Follower] = [:]
    var isComputing = false
  }

  private static let interval = Duration.seconds(1)

  private let state = Mutex(State())
  private let counter = Mutex<MQTTRetainedCounter?>(nil)
  /// Messages that weren't published because of their topics' names.
  let dropped = Atomic(0)

  /// Whether values are currently computed.
  var isComputing: Bool { state.withLock(\.isComputing) }

  /// Sets the hub that the values describe, which owns this object.
  func serve(_ hub: MQTTHub) { state.withLock { $0.hub = hub } }

  /// Sets the start of `$SYS/broker/uptime`. Only the first call counts.
  ///
  /// - Parameter loop: computes the values.
  func start(on loop: any EventLoop) {
    state.withLock { state in
      guard state.loop == nil else { return }
      state.loop = loop
      state.values = MQTTSystemValues(
        version: "sluice version \(Version.text)", start: loop.readClock().nanoseconds)
    }
  }

  /// Adds the counters of a loop to the values.
  func newTraffic() -> MQTTTraffic {
    let traffic = MQTTTraffic()
    state.withLock { $0.traffic.append(traffic) }
    return traffic
  }

  /// Sends the current values to a connection, and later changes.
  func follow(_ handle: MQTTHandle) {
    let (begins, values) = state.withLock { state in
      defer { state.isComputing = true }
      state.followers[ObjectIdentifier(handle)] = Follower(handle: handle)
      return (state.isComputing ? nil : state.loop, state.values)
    }
    if let begins {
      begins.execute { [self] in compute(on: begins) }
    } else if let values, values.revision > 0 {
      give(values, to: handle)
    }
  }

  private func give(_ values: MQTTSystemValues, to handle: MQTTHandle) {
    handle.loop.execute { [self] in
      if handle.connection?.take(values) ?? false { return }
      state.withLock { _ = $0.followers.removeValue(forKey: ObjectIdentifier(handle)) }
    }
  }

  /// Computes the values, and again each second while there are followers.
  private func compute(on loop: any EventLoop) {
    let hub = state.withLock { state -> MQTTHub? in
      state.followers = state.followers.filter { $0.value.handle != nil }
      state.isComputing = !state.followers.isEmpty
      return state.isComputing ? state.hub : nil
    }
    guard let hub else {
      counter.withLock { $0.take() }?.end()
      return
    }
    countRetained(of: hub, on: loop) { [weak self] count, bytes in
      guard let self else { return }
      var figures = figures(of: hub)
      (figures.retained, figures.retainedBytes) = (count, bytes)
      let (values, handles) = state.withLock { state in
        state.values?.update(figures, now: loop.readClock().nanoseconds)
        return (state.values, state.followers.values.compactMap(\.handle))
      }
      if let values { for handle in handles { give(values, to: handle) } }
      _ = loop.schedule(after: Self.interval) { [weak self] in self?.compute(on: loop) }
    }
  }

  private func figures(of hub: MQTTHub) -> MQTTFigures {
    var figures = MQTTFigures()
    for traffic in state.withLock(\.traffic) { traffic.add(to: &figures) }
    figures.publishesDropped = UInt64(dropped.load(ordering: .relaxed))
    (figures.connected, figures.mostConnected) = hub.entries.withLock {
      ($0.connections.count, $0.mostConnections)
    }
    (figures.disconnected, figures.expired) = hub.sessions?.absences ?? (0, 0)
    return figures
  }

  private func countRetained(
    of hub: MQTTHub, on loop: any EventLoop, _ completion: @escaping (_ count: Int, _ bytes: Int) -> Void
  ) {
    if let size = hub.replica?.size { return completion(size.count, size.bytes) }
    let counter = counter.withLock { counter in
      let found = counter ?? MQTTRetainedCounter(hub.broker, on: loop)
      counter = found
      return found
    }
    counter.count(completion)
  }
}
