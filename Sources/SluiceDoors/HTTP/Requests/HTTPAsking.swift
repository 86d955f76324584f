import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceHTTP
import SluiceWire

/// `POST /topics/NAME/request?timeout=5s`: publishes the body as a request, and answers with the first reply to it.
///
/// The answer has the reply's payload, its header `content-type` as its type, and its key as `Sluice-Key`, or as `Sluice-Key-Base64` if it isn't text. Other
/// headers become `Sluice-Header-NAME` if a field can contain them. 503 means that no subscriber is attached that could reply, 504 that no reply arrived in
/// time, 502 that the responder couldn't reply.
final class HTTPAsking: HTTPExchange {
  private unowned let connection: HTTPConnection
  private let topic: String
  private let correlation: String
  private let inbox: HTTPInbox
  private var publication: HTTPPublication
  private var timer: TimerToken?

  private static let longestTimeout = Duration.seconds(300)
  /// The longest value of a header that becomes a field of the answer, in bytes.
  private static let maximumField = 8192

  init(_ request: HTTPRequest, by connection: HTTPConnection) throws(HTTPProblem) {
    self.connection = connection
    topic = try request.topic()
    let timeout = try request.duration("timeout") ?? .seconds(5)
    guard timeout > .zero, timeout <= Self.longestTimeout else {
      throw HTTPProblem(400, "timeout must be more than 0, and at most \(Self.longestTimeout)")
    }
    for name in [RequestHeader.replyTo, RequestHeader.correlation]
    where request.field("sluice-header-\(name)") != nil {
      throw HTTPProblem(400, "the broker sets the header \(name) of a request; leave it out")
    }
    guard request.field("idempotency-key") == nil else {
      throw HTTPProblem(
        400, "a request for a reply can't have an Idempotency-Key: its reply isn't kept; leave the field out")
    }
    let inbox = try connection.openInbox()
    self.inbox = inbox
    correlation = inbox.makeCorrelation()
    let headers: [RequestHeader.Value] = [
      (Array(RequestHeader.replyTo.utf8), Array(inbox.topic.utf8)),
      (Array(RequestHeader.correlation.utf8), Array(correlation.utf8)),
    ]
    let batch = try HTTPPublishing.batch(of: request, asOne: true, with: headers)
    publication = try HTTPPublication(batch, to: topic, role: .requester, by: connection)
    timer = connection.loop.schedule(after: timeout) { [weak self] in self?.timeOut(timeout) }
    inbox.asking = self
  }

  deinit {
    if let timer { connection.loop.cancel(timer) }
  }

  func received(_ action: ClientAction) {
    switch action {
    case .publicationOpened: publication.opened(skipping: 0)
    case .refused(_, let fault): failed(HTTPProblem(WireError(fault)))
    case .ended: failed(HTTPProblem(409, "topic \(topic) has ended"))
    default: break
    }
  }

  /// Publishes the request once the inbox can receive its reply.
  func turnEnds() {
    if inbox.isOpen { publication.send(by: connection) }
  }

  /// A record of the inbox, in place.
  func replied(_ reply: RecordAttributes) {
    var (isOwn, failure, type) = (false, String?.none, String?.none)
    var fields: [(String, String)] = []
    if let key = unsafe reply.key {
      if let text = unsafe Self.fieldValue(key) {
        fields.append(("Sluice-Key", text))
      } else if key.count <= Self.maximumField {
        fields.append(("Sluice-Key-Base64", Base64.encode(unsafe Array(key))))
      }
    }
    unsafe reply.forEachHeader { name, value in
      guard unsafe !MQTTRecordHeaders.isInternal(name) else { return }
      let name = unsafe String(decoding: name, as: UTF8.self)
      switch name {
      case RequestHeader.correlation: isOwn = unsafe isOwn || value.elementsEqual(correlation.utf8)
      case RequestHeader.failure:
        unsafe failure = failure ?? String(decoding: value, as: UTF8.self)
      case "content-type" where type == nil: type = unsafe Self.fieldValue(value)
      default:
        guard HTTPRequestHead.isToken(name[...]), let text = unsafe Self.fieldValue(value) else { return }
        fields.append(("Sluice-Header-\(name)", text))
      }
    }
    // A late reply to an earlier request of the connection is dropped.
    guard isOwn else { return }
    if let failure { return failed(HTTPProblem(502, "the request couldn't be answered: \(failure)")) }
    end()
    connection.answer(
      200, unsafe Array(reply.payload), type: type ?? "application/octet-stream", fields: fields)
  }

  /// Returns a value that a field can contain, which is text without control characters; nil for other bytes.
  private static func fieldValue(_ bytes: UnsafeRawBufferPointer) -> String? {
    guard bytes.count <= maximumField, unsafe bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
    else { return nil }
    return unsafe String(validating: bytes, as: UTF8.self)
  }

  private func timeOut(_ timeout: Duration) {
    timer = nil
    failed(
      HTTPProblem(
        504, "no reply came within \(timeout); does a subscriber of topic \(topic) reply to requests?"))
    connection.endTurn()
  }

  var heldBytes: Int { publication.heldBytes }

  func failed(_ problem: HTTPProblem) {
    end()
    connection.refuse(problem)
  }

  private func end() {
    inbox.asking = nil
    connection.loop.cancel(&timer)
    publication.cancel(by: connection)
  }
}
