/// The server's side of a connection of HTTP/1.1 or HTTP/1.0, as a value: bytes in, requests out; answers in, bytes out. One request after the other, also where the client
/// sends the next one before the answer (RFC 9112, 9.3.2).
///
/// ```
///  receive ─► next ─► request ─► answer, or beginAnswer, append …, endAnswer ─► write
///                     problem ─► refuse
/// ```
///
/// Times are in milliseconds since 1970, for the answers' `Date`.
package struct HTTPServerSession: Sendable {
  package enum Event: Sendable {
    /// A request, or the next one, is awaited, or its head has come: the time for the rest begins anew.
    case waits
    /// A whole request has come. No other one comes before it is answered.
    case request(HTTPRequest)
    /// What has come isn't a request that can be read, or its page may not connect. It is to be refused, and nothing comes after it.
    case problem(HTTPProblem)
  }

  private enum Phase {
    /// Between requests, or within one that comes.
    case reading
    /// A request is being served.
    case serving
    /// The last answer is on its way.
    case closing
  }

  private let crossOrigin: HTTPCrossOrigin?
  private let limits: HTTPLimits
  private var phase = Phase.reading
  private var reader: HTTPRequestReader
  /// The request that comes, from its head on, or is served.
  package private(set) var request: HTTPRequest?
  /// No request follows the present one.
  private var isLast = false
  private var unread: [UInt8] = []
  /// How many of those were taken.
  private var taken = 0
  /// What the client hasn't got yet.
  package private(set) var output = HTTPOutput()

  /// - Parameter crossOrigin: which pages may connect; nil for a server that checks that itself, and answers OPTIONS as any other method.
  package init(_ crossOrigin: HTTPCrossOrigin?, _ limits: HTTPLimits = HTTPLimits()) {
    self.crossOrigin = crossOrigin
    self.limits = limits
    reader = HTTPRequestReader(limits)
  }

  /// Whether a request is awaited, or comes.
  package var isReading: Bool { phase == .reading }
  /// Whether the head of a request has come that isn't answered.
  package var isWithinRequest: Bool { request != nil }
  /// Whether the connection ends once the output is written.
  package var isClosing: Bool { phase == .closing }
  /// Bytes that have come and wait until the request before them is answered.
  package var unreadBytes: Int { unread.count - taken }
  /// Memory for what waits in either direction, in bytes.
  package var heldBytes: Int {
    output.count + unread.count + reader.heldBytes + (request?.body.count ?? 0)
  }

  // MARK: Requests

  /// Takes bytes of the client. ``next()`` follows, until it has no event.
  package mutating func receive(_ bytes: UnsafeRawBufferPointer) {
    if taken > 0 { unread.removeFirst(taken) }
    taken = 0
    unsafe unread.append(contentsOf: bytes)
  }

  /// What has come, one event at a time: up to the end of a request, which waits for its answer.
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

  /// The head of a request has come.
  private mutating func begin(_ request: HTTPRequest, at time: Int64) throws(HTTPProblem) -> Event? {
    self.request = request
    try crossOrigin?.check(request.head)
    if try reader.beginBody(of: request) { return complete([], at: time) }
    if request.expectsContinue { output.append("HTTP/1.1 100 Continue\r\n\r\n".utf8) }
    return .waits
  }

  /// A request has come as a whole. The one by which a browser asks what its page may do is answered here.
  private mutating func complete(_ body: [UInt8], at time: Int64) -> Event? {
    phase = .serving
    reader = HTTPRequestReader(limits)
    request?.body = body
    guard let request else { return nil }
    guard let crossOrigin, request.head.method == "OPTIONS" else { return .request(request) }
    answer(204, [], type: "", crossOrigin.preflight(request), at: time)
    return .waits
  }

  /// The client hasn't sent a whole request in the time for it, which is `patience`.
  ///
  /// - Returns: the problem to refuse it with; nil where nothing has come, so that the connection just ends, or where no request is awaited.
  package mutating func timeOut(after patience: Duration) -> HTTPProblem? {
    guard phase == .reading else { return nil }
    guard reader.isUntouched else {
      return HTTPProblem(408, "the request wasn't complete within \(patience)")
    }
    phase = .closing
    return nil
  }

  /// No more requests are taken: the connection ends, with the present one's answer where one is served.
  package mutating func end() {
    isLast = true
    if phase == .reading { phase = .closing }
  }

  // MARK: Answers

  /// Answers the request as a whole. The connection ends unless the request has been read.
  package mutating func answer(
    _ status: Int, _ body: [UInt8], type: String, _ fields: [(String, String)], at time: Int64
  ) {
    guard phase != .closing else { return }
    if phase == .reading { isLast = true }
    let stays = keepsAlive
    // Before the request has come it may be HEAD or not, and the answer must do for both: it has neither content nor length, and ends with the connection.
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
  /// - Parameter body: an object of JSON that says the same.
  package mutating func refuse(_ problem: HTTPProblem, _ body: String, at time: Int64) {
    answer(problem.status, Array(body.utf8), type: "application/json", problem.fields, at: time)
  }

  /// Begins an answer whose length isn't known: in chunks, or, by HTTP/1.0, up to the end of the connection.
  package mutating func beginAnswer(type: String, _ others: [(String, String)] = [], at time: Int64) {
    var fields = [HTTPDate.field(time), ("Content-Type", type)]
    if hasChunks { fields.append(("Transfer-Encoding", "chunked")) }
    fields.append(("Cache-Control", "no-store"))
    if !keepsAlive || !hasChunks { fields.append(("Connection", "close")) }
    output.append(head: 200, fields + others + (crossOrigin?.fields(for: request) ?? []))
  }

  /// Appends a chunk to such an answer; nothing for an empty one.
  package mutating func append(chunk: [UInt8]) {
    guard !isHead else { return }
    if hasChunks { output.append(chunk: chunk) } else { output.append(chunk) }
  }

  /// Appends what ``HTTPChunk/framed(_:)`` has made, which isn't copied where it is long.
  package mutating func append(sharedChunk chunk: [UInt8]) {
    guard !isHead else { return }
    if hasChunks { output.append(shared: chunk) } else { output.append(HTTPChunk.content(of: chunk)) }
  }

  /// Ends such an answer; without its last chunk, and with the connection, where it isn't whole.
  package mutating func endAnswer(isWhole: Bool) {
    if isWhole, !isHead, hasChunks { output.append(HTTPChunk.last) }
    // Without chunks, the end of the connection is that of the answer.
    finish(stays: isWhole && keepsAlive && hasChunks)
  }

  private var hasChunks: Bool { request?.head.isOfHTTP10 != true }

  /// Whether the answer is its head alone, with the fields that GET would be answered with (RFC 9110, 9.3.2).
  private var isHead: Bool { isOfHEAD ?? false }

  /// Whether the request that is answered is HEAD: nil where nothing of it has come that tells.
  private var isOfHEAD: Bool? { request.map { $0.head.method == "HEAD" } ?? reader.isOfHEAD }

  private var keepsAlive: Bool { !isLast && request?.keepsAlive ?? false }

  private mutating func finish(stays: Bool) {
    guard phase != .closing else { return }
    request = nil
    phase = stays ? .reading : .closing
    reader = HTTPRequestReader(limits)
  }

  // MARK: Output

  /// Writes as much as the client's stream takes.
  ///
  /// - Parameter write: returns how many bytes were taken; nil where the stream has failed.
  /// - Returns: whether the stream goes on.
  package mutating func write(_ write: (UnsafeRawBufferPointer) -> Int?) -> Bool {
    unsafe output.write(write)
  }

  /// The client gets nothing more.
  package mutating func dropOutput() { output.removeAll() }
}
