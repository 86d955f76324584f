import SluiceIO
import SluiceMQTT
import Synchronization

// Publishes wills that connections can't publish themselves.
extension MQTTHub {
  /// Publishes the will of a client whose connection the broker has closed. On the connection's loop.
  func publish(_ will: MQTTConnect.Will, of connection: MQTTConnection) {
    guard let key = connection.key else { return }
    guard let sessions, let claim = connection.hold?.claim else {
      return publish(will, of: key, producer: nil, on: connection.loop) { _ in }
    }
    let loop = connection.loop
    publish(will, of: key, producer: claim.producer, on: loop) { [weak self] isOver in
      if isOver { return sessions.willDone(claim, key) }
      _ = loop.schedule(after: .seconds(1)) { self?.publish(will, of: connection) }
    }
  }

  /// On the hub's loop.
  func publish(
    _ will: MQTTConnect.Will, of key: Key, producer: UInt64?, on loop: any EventLoop,
    _ completion: @escaping (Bool) -> Void
  ) {
    guard let accept = broker.accept else { return }
    MQTTWillSender.publish(
      will, of: key, on: loop, producer: producer, retainedSettings: retainedSettings,
      accept: { accept($0, loop) }, completion)
  }

  /// The connection's will is in the log.
  func willDone(of connection: MQTTConnection) {
    guard let key = connection.key, let claim = connection.hold?.claim else { return }
    sessions?.willDone(claim, key)
  }

  /// The client of a waiting will has reconnected at some node, or its session has ended.
  func settleWill(of key: Key, publishing: Bool) {
    guard let mourner = entries.withLock({ $0.mourners[key] }) else { return }
    mourner.loop.execute { mourner.settleWill(publishing: publishing) }
  }
}
