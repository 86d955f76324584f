import SluiceHTTP
import SluiceSession
import SluiceWire

/// The topic that receives the replies to a connection's requests. The connection subscribes with its first request, and keeps the subscription.
final class HTTPInbox {
  /// A name that can't be guessed: any client that knows it may publish there.
  let topic: String
  let stream: UInt32
  private(set) var isOpen = false
  /// The request that waits for its reply.
  weak var asking: HTTPAsking?
  private var requests: UInt64 = 0

  /// - Throws: ``HTTPProblem`` when the connection has no stream left.
  init(by connection: HTTPConnection) throws(HTTPProblem) {
    var random = SystemRandomNumberGenerator()
    let numbers = (0..<2).map { _ in String(random.next(), radix: 36) }
    topic = TopicName.inboxPrefix + numbers.joined(separator: "-")
    guard let stream = connection.native.openSubscription(granted: Credit.unlimited, isPattern: false) else {
      throw HTTPProblem(429, "the connection has too many streams")
    }
    self.stream = stream
    connection.link.send(
      Subscribe(topic: topic, start: .new, grantedThrough: Credit.unlimited), stream: stream)
  }

  /// The id of the next request.
  func makeCorrelation() -> String {
    requests += 1
    return String(requests, radix: 16)
  }

  /// Processes an action of the broker for the subscription. Returns whether the subscription continues.
  func received(_ action: ClientAction) -> Bool {
    switch action {
    case .subscribed: isOpen = true
    case .deliver(_, _, let batch): unsafe deliver(batch)
    case .refused(_, let fault):
      asking?.failed(HTTPProblem(WireError(fault)))
      return false
    case .ended:
      asking?.failed(.unavailable("another client has ended the inbox for replies; ask again"))
      return false
    default: break
    }
    return true
  }

  private func deliver(_ batch: UnsafeRawBufferPointer) {
    var records = unsafe BatchIterator(batch, time: 0)
    while let record = try? records.next() {
      guard let asking, record.isAttributed, let reply = try? unsafe RecordAttributes(record.body) else {
        continue
      }
      asking.replied(reply)
    }
  }
}
