import SluiceIO
import SluiceSession
import SluiceWire

/// A stream or request that waits until a node serves its topic, or the node that does can be reached. Belongs to its connection's loop.
final class WaitingStream: ServerStream, Waiter {
  let stream: UInt32
  let kind: StreamKind
  /// What the client has asked for.
  private let action: ServerAction
  private let target: RoutedAction
  private unowned let streams: StreamMultiplexer
  private unowned let relay: NodeRelay
  /// When the client is told to try again.
  let deadline: MonotonicTime
  /// It waits no more.
  private(set) var isOver = false

  init(
    _ action: ServerAction, _ target: RoutedAction, until deadline: MonotonicTime,
    on streams: StreamMultiplexer,
    for relay: NodeRelay
  ) {
    self.relay = relay
    self.action = action
    self.target = target
    self.deadline = deadline
    self.streams = streams
    stream = target.stream
    kind = target.kind
  }

  func release() {
    if isOver { return }
    isOver = true
    relay.leftWaiting()
  }

  func isDrained(isPatient: Bool) -> Bool { true }
  func reconsider() throws(WireError) { try streams.client.require(target) }

  /// Nothing was published yet: the producer may as well begin again.
  func complete(_ ending: Complete.Ending) { fail(.topicMoved(target.topic)) }

  /// Begins again what the client has asked for, with the demand that has come meanwhile.
  func tryAgain() {
    if isOver { return }
    var action = action
    if let granted = streams.session.granted(stream) { action.raise(to: granted) }
    streams.releaseStream(stream)
    streams.perform(action)
  }

  func fail(_ fault: Fault) {
    if !isOver { streams.refuse(stream, fault) }
  }

  /// Tells the client that it has waited for long enough.
  ///
  /// - Parameter problem: why the node that serves the topic can't be reached; nil when no node serves it.
  func giveUp(because problem: String?) {
    fail(.unreached(topic, because: problem ?? "no node serves it at the moment"))
  }

  var topic: String { target.topic }
}
