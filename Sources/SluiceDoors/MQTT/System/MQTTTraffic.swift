import SluiceMQTT
import Synchronization

/// Packets, bytes and subscriptions of the clients on one loop. The loop writes them, and any thread may read them.
final class MQTTTraffic: Sendable {
  /// A number that only one loop changes.
  struct Number: ~Copyable, Sendable {
    private let value = Atomic(0)

    /// On the loop only: a concurrent change on another thread would be lost.
    func add(_ change: Int) {
      guard change != 0 else { return }
      value.store(value.load(ordering: .relaxed) &+ change, ordering: .relaxed)
    }

    var current: Int { value.load(ordering: .relaxed) }
  }

  let packetsReceived = Number()
  let packetsSent = Number()
  let publishesReceived = Number()
  let publishesSent = Number()
  let bytesReceived = Number()
  let bytesSent = Number()
  let sockets = Number()
  let connects = Number()
  /// Subscriptions of currently connected clients.
  let subscriptions = Number()
  let sharedSubscriptions = Number()

  func add(_ packets: MQTTPacketCount) {
    packetsReceived.add(Int(packets.received))
    packetsSent.add(Int(packets.sent))
    publishesReceived.add(Int(packets.publishesReceived))
    publishesSent.add(Int(packets.publishesSent))
  }

  func replace(_ former: MQTTSubscriptionCount, by count: MQTTSubscriptionCount) {
    subscriptions.add(Int(count.all) - Int(former.all))
    sharedSubscriptions.add(Int(count.shared) - Int(former.shared))
  }

  /// Adds all counters to the figures of a broker.
  func add(to figures: inout MQTTFigures) {
    figures.traffic.packetsReceived += UInt64(packetsReceived.current)
    figures.traffic.packetsSent += UInt64(packetsSent.current)
    figures.traffic.publishesReceived += UInt64(publishesReceived.current)
    figures.traffic.publishesSent += UInt64(publishesSent.current)
    figures.traffic.bytesReceived += UInt64(bytesReceived.current)
    figures.traffic.bytesSent += UInt64(bytesSent.current)
    figures.traffic.sockets += UInt64(sockets.current)
    figures.traffic.connects += UInt64(connects.current)
    figures.subscriptions += subscriptions.current
    figures.sharedSubscriptions += sharedSubscriptions.current
  }
}
