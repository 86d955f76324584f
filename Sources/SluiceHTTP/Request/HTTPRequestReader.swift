/// The limits on the length of a request in bytes.
package struct HTTPLimits: Hashable, Sendable {
  /// The head with the empty line at its end.
  package var head = 8 << 10
  package var body = 16 << 20

  package init() {}
}

/// Reads one request from a connection's bytes: its head, then its body.
package struct HTTPRequestReader: Sendable {
  package enum Event: Sendable {
    /// The head is complete. The caller must call ``beginBody(of:)`` before it passes more bytes.
    case head(HTTPRequest)
    /// The body is complete.
    case body([UInt8])
  }

  private let limits: HTTPLimits
  private var head: HTTPHeadReader
  /// The method of a complete head.
  private var method: String?
  /// Nil until the head is complete.
  private var body: HTTPBodyReader?

  package init(_ limits: HTTPLimits = HTTPLimits()) {
    self.limits = limits
    head = HTTPHeadReader(limit: limits.head)
  }

  /// Whether no byte of a request has arrived.
  package var isUntouched: Bool { body == nil && head.heldBytes == 0 }

  package var heldBytes: Int { head.heldBytes + (body?.body.count ?? 0) }

  /// Whether the request is HEAD, even if it is invalid; nil until its method is known.
  var isOfHEAD: Bool? { method.map { $0 == "HEAD" } ?? head.isOfHEAD }

  /// Reads bytes up to the next event.
  ///
  /// - Throws: ``HTTPProblem`` for an invalid request.
  /// - Returns: the number of bytes read; the event is nil if all bytes were read.
  package mutating func take(_ bytes: ArraySlice<UInt8>) throws(HTTPProblem) -> (event: Event?, taken: Int) {
    guard body == nil else {
      let taken = try body?.take(bytes) ?? 0
      return (body.flatMap { $0.isDone ? .body($0.body) : nil }, taken)
    }
    guard let (head, taken) = try takeHead(bytes) else { return (nil, bytes.count) }
    method = head.method
    guard head.isOfKnownVersion else { throw HTTPProblem(505, "only HTTP/1.1 and HTTP/1.0 are understood") }
    // A client of HTTP/1.0 may omit it (RFC 9112, 3.2).
    let hosts = head.values("host").count
    guard hosts == 1 || hosts == 0 && head.isOfHTTP10 else {
      throw HTTPProblem(400, "the request needs one Host field")
    }
    return (.head(try HTTPRequest(head)), taken)
  }

  /// Begins to read the body of that request.
  ///
  /// - Throws: ``HTTPProblem`` for a body that can't be accepted.
  /// - Returns: whether the body is complete, since it is empty.
  package mutating func beginBody(of request: HTTPRequest) throws(HTTPProblem) -> Bool {
    let length = try request.bodyLength()
    guard length ?? 0 <= limits.body else { throw HTTPBodyReader.tooLarge(limits.body) }
    let body = HTTPBodyReader(length: length, limit: limits.body)
    self.body = body
    return body.isDone
  }

  private mutating func takeHead(
    _ bytes: ArraySlice<UInt8>
  ) throws(HTTPProblem) -> (head: HTTPRequestHead, taken: Int)? {
    let result = unsafe bytes.withUnsafeBytes { bytes in
      Result { () throws(HTTPRequestHead.Fault) in try unsafe head.take(bytes) }
    }
    switch result {
    case .success(let found): return found
    case .failure(.malformed(let why)): throw HTTPProblem(400, why)
    case .failure(.notText):
      throw HTTPProblem(
        400, "the request's head isn't UTF-8; send a key of other bytes in base64, as Sluice-Key-Base64")
    case .failure(.tooLarge(let why)): throw HTTPProblem(431, why)
    }
  }
}
