import SluiceIO
import SluiceMQTT
import SluiceWire

/// A subscription that waits for messages which its client has sent before it.
struct MQTTWaitingRequest {
  var request: MQTTSubscriptionRequest
  /// When it waits no longer.
  var deadline: MonotonicTime
}

// A client's messages are older than a subscription that it asks for behind them: SUBSCRIBE goes to the broker once they are in their topics.
extension MQTTConnection {
  /// How long a subscription waits at most: the messages may be waiting for its demand, in a lossless topic.
  private static let orderPatience = Duration.seconds(1)

  func subscribe(_ request: MQTTSubscriptionRequest) {
    // The client has unsubscribed meanwhile, in the same read.
    guard session.filter(of: request.number) != nil else { return }
    guard !waitingRequests.isEmpty || awaitsMessages(request) else { return begin(request) }
    let deadline = loop.now + Self.orderPatience
    waitingRequests.append(MQTTWaitingRequest(request: request, deadline: deadline))
    guard waitingRequests.count == 1 else { return }
    _ = loop.schedule(at: deadline) { [weak self] in self?.endWaiting() }
  }

  /// Whether messages of the client aren't in the log that the subscription, or its retained messages, would have.
  private func awaitsMessages(_ request: MQTTSubscriptionRequest) -> Bool {
    guard let publishing else { return false }
    let patterns = request.patterns.compactMap { try? TopicPattern($0) }
    return publishing.byStream.values.contains { publication in
      // The broker takes frames in their order. But a record may be in a durable topic's log only once it is stored, and a topic may be another node's.
      let isThere = hub.isDurable ? publication.isInLog : publication.tokens.isEmpty
      guard !isThere else { return false }
      return publication.role == .retained || patterns.contains { $0.matches(publication.topic) }
    }
  }

  /// Begins the subscriptions that wait for nothing any more, in their order.
  func beginWaiting() {
    while let first = waitingRequests.first, first.deadline <= loop.now || !awaitsMessages(first.request) {
      waitingRequests.removeFirst()
      begin(first.request)
    }
  }

  private func endWaiting() {
    guard phase == .open else { return }
    beginWaiting()
    endTurn()
    guard let first = waitingRequests.first else { return }
    _ = loop.schedule(at: first.deadline) { [weak self] in self?.endWaiting() }
  }
}
