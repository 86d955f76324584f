import SluiceIO
import SluiceMQTT
import SluiceWire

/// A subscription that waits for earlier messages of its client.
struct MQTTWaitingRequest {
  var request: MQTTSubscriptionRequest
  /// The end of the wait.
  var deadline: MonotonicTime
}

// A client's messages precede a SUBSCRIBE that it sends after them, so the subscription goes to the broker once they are in their topics.
extension MQTTConnection {
  /// The longest wait of a subscription: in a lossless topic, the messages may be waiting for its demand.
  private static let orderPatience = Duration.seconds(1)

  func subscribe(_ request: MQTTSubscriptionRequest) {
    // The client has unsubscribed meanwhile, within the same read.
    guard session.filter(of: request.number) != nil else { return }
    guard !waitingRequests.isEmpty || awaitsMessages(request) else { return begin(request) }
    let deadline = loop.now + Self.orderPatience
    waitingRequests.append(MQTTWaitingRequest(request: request, deadline: deadline))
    guard waitingRequests.count == 1 else { return }
    _ = loop.schedule(at: deadline) { [weak self] in self?.endWaiting() }
  }

  /// Whether the subscription, or its retained messages, would contain messages of the client that aren't in the log yet.
  private func awaitsMessages(_ request: MQTTSubscriptionRequest) -> Bool {
    guard let publishing else { return false }
    let patterns = request.patterns.compactMap { try? TopicPattern($0) }
    return publishing.byStream.values.contains { publication in
      // The broker processes frames in order. But a durable topic's log contains a record only once it is stored, and another node may serve the topic.
      let isThere = hub.isDurable ? publication.isInLog : publication.tokens.isEmpty
      guard !isThere else { return false }
      return publication.role == .retained || patterns.contains { $0.matches(publication.topic) }
    }
  }

  /// Begins the subscriptions whose wait has ended, in order.
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
