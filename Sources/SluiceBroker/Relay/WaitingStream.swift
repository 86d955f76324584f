import SluiceIO
import SluiceSession
import SluiceWire

/// A stream or request that waits until a node serves its topic, and until that node can be reached. Belongs to its connection's loop.
final class WaitingStream: ServerStream, Waiter {
  let stream: UInt32
  let kind: StreamKind
  /// The client's action.
  private let action: ServerAction
  private let target: RoutedAction
  private unowned let streams: StreamMultiplexer
  private unowned let relay: NodeRelay
  /// The time at which the client gets an error and has to try again.
  let deadline: MonotonicTime
  /// Whether it no longer waits.
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

  /// Fails the publication. Nothing was published on it yet, so the producer can open it again.
  func complete(_ ending: Complete.Ending) { fail(.topicMoved(target.topic)) }

  /// Performs the client's action again, with the demand that has arrived meanwhile.
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

  /// Ends the stream because it has waited for long enough.
  ///
  /// - Parameter problem: the reason why the node that serves the topic can't be reached; nil when no node serves it.
  func giveUp(because problem: String?) {
    fail(.unreached(topic, because: problem ?? "no node serves it at the moment"))
  }

  var topic: String { target.topic }
}
