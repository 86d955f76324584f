import SluiceCommand
import SluiceSession
import SluiceHTTP
import SluiceWire

/// `POST /topics/NAME`: publishes the body, and answers once it is in the log.
///
/// The body is one record; with `?lines`, or as `application/x-ndjson`, each line is one. `Sluice-Key` is the key of all records, or `Sluice-Key-Base64` if
/// it isn't text. `Sluice-Header-NAME` sets a header. The content type becomes a header `content-type`, except for types that programs send by default. A
/// repeated request with the same `Idempotency-Key` publishes only records that aren't in the log yet: the key determines a producer ID, which works as long
/// as the topic remembers that producer.
final class HTTPPublishing: HTTPExchange {
  private unowned let connection: HTTPConnection
  private let topic: String
  private let isReply: Bool
  private let acknowledgement: PublishOpen.Acknowledgement
  private var publication: HTTPPublication

  private static let ordinaryTypes = ["application/x-www-form-urlencoded", "application/octet-stream"]

  init(_ request: HTTPRequest, by connection: HTTPConnection) throws(HTTPProblem) {
    self.connection = connection
    isReply = false
    topic = try request.topic()
    acknowledgement = try request.acknowledgement()
    let batch = try Self.batch(of: request)
    let identity = connection.welcome?.identity ?? ""
    let producer = request.field("idempotency-key").map { Self.producer($0, of: identity) } ?? 0
    publication = try HTTPPublication(
      batch, to: topic, acknowledgement: acknowledgement, producer: producer, by: connection)
  }

  /// `POST /replies/TOPIC/ID`: publishes the body as the reply to a request, at the address in the member `reply` of the request's object.
  /// `Sluice-Header-Reply-Error` gives the reason if there is no reply.
  init(reply request: HTTPRequest, by connection: HTTPConnection) throws(HTTPProblem) {
    self.connection = connection
    isReply = true
    topic = try request.topic()
    guard let correlation = ReplyAddress.correlation(request.path[2]) else {
      throw HTTPProblem(400, "\(request.head.target) isn't an address for replies; use the request's reply")
    }
    let headers = [(name: Array(RequestHeader.correlation.utf8), value: correlation)]
    acknowledgement = .received
    let batch = try Self.batch(of: request, asOne: true, with: headers)
    publication = try HTTPPublication(batch, to: topic, role: .requester, by: connection)
  }

  /// The producer ID for an identity's key: 63 bits of the SHA-256 of both, never 0. A client can't find a key that yields another identity's producer ID,
  /// and so can't make that identity's records count as published already.
  static func producer(_ key: String, of identity: String) -> UInt64 {
    IdentityDigest.number(of: key, of: identity) | 1 << 63
  }

  /// The request's body as records.
  ///
  /// - Parameters:
  ///   - isOne: whether the body is one record whatever its type.
  ///   - headers: headers of each record, before those that the request names.
  static func batch(
    of request: HTTPRequest, asOne isOne: Bool = false, with headers: [RequestHeader.Value] = []
  ) throws(HTTPProblem) -> BatchBuilder {
    let key = try request.key()
    var headers = headers
    // A record wouldn't show the content coding.
    guard !request.hasContentCoding else {
      throw HTTPProblem(
        415,
        "a body in a content coding isn't understood; send it without Content-Encoding, with Sluice-Header-NAME for what subscribers have to know"
      )
    }
    // With its parameters: multipart/form-data can't be parsed without them.
    var content = request.field("content-type") ?? ""
    let type = content.prefix { $0 != ";" && $0 != " " }.lowercased()
    let isLines = !isOne && (type == "application/x-ndjson" || request.parameter("lines") != nil)
    if isLines, type == "application/x-ndjson" { content = "application/json" }
    if !type.isEmpty, !ordinaryTypes.contains(type) {
      headers.append((Array("content-type".utf8), Array(content.utf8)))
    }
    for field in request.head.fields {
      guard field.name.lowercased().hasPrefix("sluice-header-") else { continue }
      headers.append((Array(field.name.dropFirst(14).lowercased().utf8), Array(field.value.utf8)))
    }
    var batch = BatchBuilder()
    func add(_ payload: ArraySlice<UInt8>) throws(HTTPProblem) {
      let result = unsafe payload.withUnsafeBytes { payload in
        unsafe (key ?? []).withUnsafeBytes { bytes in
          Result { () throws(WireError) in
            try unsafe batch.append(key: key == nil ? nil : bytes, headers: headers, payload: payload)
          }
        }
      }
      try HTTPProblem.wrapping { () throws(WireError) in try result.get() }
    }
    guard isLines else {
      try add(request.body[...])
      return batch
    }
    for line in request.body.split(separator: 0x0A) {
      let line = line.last == 0x0D ? line.dropLast() : line
      if !line.isEmpty { try add(line) }
    }
    return batch
  }

  func received(_ action: ClientAction) {
    let count = publication.count
    switch action {
    case .publicationOpened(_, let frame):
      // A repeated request: records that are in the log aren't sent again.
      publication.opened(skipping: Int(clamping: min(frame.nextSequence, count)))
      if publication.isSent { done(lastOffset: nil) }
    case .acknowledged(_, let ack) where ack.through >= count: done(lastOffset: ack.lastOffset)
    case .refused(_, let fault) where isReply && fault.code == .noResponders:
      connection.refuse(
        HTTPProblem(410, "no client waits for this reply any longer", code: .init(fault.code)))
    case .refused(_, let fault): connection.refuse(HTTPProblem(WireError(fault)))
    case .ended: connection.refuse(HTTPProblem(409, "topic \(topic) has ended"))
    default: break
    }
  }

  func turnEnds() {
    publication.send(by: connection)
    // The client wants no acknowledgement. The broker processes frames in order, so the end of the publication follows all its records.
    if acknowledgement == .none, publication.isOpen, publication.isSent { done(lastOffset: nil) }
  }

  private func done(lastOffset: UInt64?) {
    publication.cancel(by: connection)
    if isReply { return connection.answer(204, "") }
    let isTaken = acknowledgement == .none && !publication.isDuplicate
    let offset = lastOffset.map { ",\"lastOffset\":\($0)" } ?? (isTaken ? "" : ",\"isDuplicate\":true")
    connection.answer(
      isTaken ? 202 : 200, "{\"topic\":\(JSONText.quoted(topic)),\"records\":\(publication.count)\(offset)}\n"
    )
  }

  func failed(_ problem: HTTPProblem) { connection.refuse(problem) }

  var heldBytes: Int { publication.heldBytes }
}
