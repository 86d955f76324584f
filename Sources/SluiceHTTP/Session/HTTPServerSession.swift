/// The server's side of an HTTP/1.1 or HTTP/1.0 connection, as a value: bytes in, requests out; answers in, bytes out. Requests are handled one after
/// another, even if the client sends the next one before the answer (RFC 9112, 9.3.2).
///
/// ```
///  receive ─► next ─► request ─► answer, or beginAnswer, append …, endAnswer ─► write
///                     problem ─► refuse
/// ```
///
/// Times are in milliseconds since 1970, for the answers' `Date`.
package struct HTTPServerSession: Sendable {
  package enum Event: Sendable {
    /// Waiting for a request, or for its body. The timeout starts again.
    case waits
    /// A complete request. The next one follows after its answer.
    case request(HTTPRequest)
    /// The request is invalid, or its page may not connect. The caller must refuse it; no event follows.
    case problem(HTTPProblem)
  }

  private enum Phase {
    /// Between requests, or while one is being received.
    case reading
    /// A request is being served.
    case serving
    /// The last answer is being sent.
    case closing
  }

  private let crossOrigin: HTTPCrossOrigin?
  private let limits: HTTPLimits
  private var phase = Phase.reading
  private var reader: HTTPRequestReader
  /// The request being received, from its head on, or being served.
  package private(set) var request: HTTPRequest?
  /// Whether no request follows the present one.
  private var isLast = false
  private var unread: [UInt8] = []
  /// The number of bytes of `unread` that were handled.
  private var taken = 0
  /// The bytes that the client hasn't received yet.
  package private(set) var output = HTTPOutput()

  /// - Parameter crossOrigin: the pages that may connect; nil for a server that checks that itself and handles OPTIONS like any other method.
  package init(_ crossOrigin: HTTPCrossOrigin?, _ limits: HTTPLimits = HTTPLimits()) {
    self.crossOrigin = crossOrigin
    self.limits = limits
    reader = HTTPRequestReader(limits)
  }

  /// Whether it waits for a request, or is receiving one.
  package var isReading: Bool { phase == .reading }
  /// Whether the head of a request has arrived that isn't answered yet.
  package var isWithinRequest: Bool { request != nil }
  /// Whether the connection ends once the output is written.
  package var isClosing: Bool { phase == .closing }
  /// Bytes that wait until the request before them is answered.
  package var unreadBytes: Int { unread.count - taken }
  /// The memory in use for both directions, in bytes.
  package var heldBytes: Int {
    output.count + unread.count + reader.heldBytes + (request?.body.count ?? 0)
  }

  // MARK: Requests

  /// Adds bytes from the client. The caller then calls ``next(at:)`` until it returns nil.
  package mutating func receive(_ bytes: UnsafeRawBufferPointer) {
    if taken > 0 { unread.removeFirst(taken) }
    taken = 0
    unsafe unread.append(contentsOf: bytes)
  }

  /// Returns the next event, up to the end of a request. The next request waits for its answer.
  package mutating func next(at time: Int64) -> Event? {
    while phase == .reading, unreadBytes > 0 {
      do throws(HTTPProblem) {
        let (event, count) = try reader.take(unread[taken...])
        taken += count
        if taken == unread.count { (unread, taken) = ([], 0) }
        switch event {
        case .head(let head):
          if let event = try begin(head, at: time) { return event }
        case .body(let body):
          if let event = complete(body, at: time) { return event }
        case nil: break
        }
      } catch {
        isLast = true
        (unread, taken) = ([], 0)
        return .problem(error)
      }
    }
    return nil
  }

  /// Handles the head of a request.
  private mutating func begin(_ request: HTTPRequest, at time: Int64) throws(HTTPProblem) -> Event? {
    self.request = request
    try crossOrigin?.check(request.head)
    if try reader.beginBody(of: request) { return complete([], at: time) }
    if request.expectsContinue { output.append("HTTP/1.1 100 Continue\r\n\r\n".utf8) }
    return .waits
  }

  /// Handles a complete request. Answers a browser's preflight request itself.
  private mutating func complete(_ body: [UInt8], at time: Int64) -> Event? {
    phase = .serving
    reader = HTTPRequestReader(limits)
    request?.body = body
    guard let request else { return nil }
    guard let crossOrigin, request.head.method == "OPTIONS" else { return .request(request) }
    answer(204, [], type: "", crossOrigin.preflight(request), at: time)
    return .waits
  }

  /// Called when the client hasn't sent a complete request within `patience`.
  ///
  /// - Returns: the problem with which to refuse it; nil if no byte has arrived, so that the connection just ends, or if the session isn't waiting for a
  ///   request.
  package mutating func timeOut(after patience: Duration) -> HTTPProblem? {
    guard phase == .reading else { return nil }
    guard reader.isUntouched else {
      return HTTPProblem(408, "the request wasn't complete within \(patience)")
    }
    phase = .closing
    return nil
  }

  /// Accepts no more requests. The connection ends, after the answer of the request being served, if any.
  package mutating func end() {
    isLast = true
    if phase == .reading { phase = .closing }
  }

  // MARK: Answers

  /// Answers the request at once. The connection ends unless the request was read completely.
  package mutating func answer(
    _ status: Int, _ body: [UInt8], type: String, _ fields: [(String, String)], at time: Int64
  ) {
    guard phase != .closing else { return }
    if phase == .reading { isLast = true }
    let stays = keepsAlive
    // Until the request's method is known it may be HEAD, and the answer must be valid for either case: it has neither content nor length, and ends with the
    // connection.
    let isOfHEAD = isOfHEAD
    let body = isOfHEAD == nil ? [] : body
    var all = [HTTPDate.field(time)] + fields + (crossOrigin?.fields(for: request, with: fields) ?? [])
    if stays, status == 204 { all.append(("Cache-Control", "no-store")) }
    if !body.isEmpty { all.append(("Content-Type", type)) }
    if status != 204, isOfHEAD != nil { all.append(("Content-Length", "\(body.count)")) }
    if !stays {
      all.append(("Connection", "close"))
    } else if request?.head.isOfHTTP10 == true {
      all.append(("Connection", "keep-alive"))
    }
    output.append(head: status, all)
    if isOfHEAD == false { output.append(body) }
    finish(stays: stays)
  }

  /// Answers with a problem.
  ///
  /// - Parameter body: a JSON object about the same problem.
  package mutating func refuse(_ problem: HTTPProblem, _ body: String, at time: Int64) {
    answer(problem.status, Array(body.utf8), type: "application/json", problem.fields, at: time)
  }

  /// Begins an answer of unknown length: in chunks or, for HTTP/1.0, up to the end of the connection.
  package mutating func beginAnswer(type: String, _ others: [(String, String)] = [], at time: Int64) {
    var fields = [HTTPDate.field(time), ("Content-Type", type)]
    if hasChunks { fields.append(("Transfer-Encoding", "chunked")) }
    fields.append(("Cache-Control", "no-store"))
    if !keepsAlive || !hasChunks { fields.append(("Connection", "close")) }
    output.append(head: 200, fields + others + (crossOrigin?.fields(for: request) ?? []))
  }

  /// Appends a chunk to an answer that ``beginAnswer(type:_:at:)`` has begun; nothing for an empty one.
  package mutating func append(chunk: [UInt8]) {
    guard !isHead else { return }
    if hasChunks { output.append(chunk: chunk) } else { output.append(chunk) }
  }

  /// Appends a chunk that ``HTTPChunk/framed(_:)`` has made. A long one isn't copied.
  package mutating func append(sharedChunk chunk: [UInt8]) {
    guard !isHead else { return }
    if hasChunks { output.append(shared: chunk) } else { output.append(HTTPChunk.content(of: chunk)) }
  }

  /// Ends an answer that ``beginAnswer(type:_:at:)`` has begun. An incomplete answer ends with the connection, without its last chunk.
  package mutating func endAnswer(isWhole: Bool) {
    if isWhole, !isHead, hasChunks { output.append(HTTPChunk.last) }
    // Without chunks, the end of the connection marks the end of the answer.
    finish(stays: isWhole && keepsAlive && hasChunks)
  }

  private var hasChunks: Bool { request?.head.isOfHTTP10 != true }

  /// Whether the answer consists only of its head, with the fields that an answer to GET would have (RFC 9110, 9.3.2).
  private var isHead: Bool { isOfHEAD ?? false }

  /// Whether the request is HEAD; nil until its method is known.
  private var isOfHEAD: Bool? { request.map { $0.head.method == "HEAD" } ?? reader.isOfHEAD }

  private var keepsAlive: Bool { !isLast && request?.keepsAlive ?? false }

  private mutating func finish(stays: Bool) {
    guard phase != .closing else { return }
    request = nil
    phase = stays ? .reading : .closing
    reader = HTTPRequestReader(limits)
  }

  // MARK: Output

  /// Writes as much as the client's stream accepts.
  ///
  /// - Parameter write: returns how many bytes were accepted; nil if the stream has failed.
  /// - Returns: false if the stream has failed.
  package mutating func write(_ write: (UnsafeRawBufferPointer) -> Int?) -> Bool {
    unsafe output.write(write)
  }

  /// Drops the output.
  package mutating func dropOutput() { output.removeAll() }
}
