import SluiceCommand
import SluiceWebSocket
import SluiceWire

/// A request whose head and body have come.
struct HTTPRequest {
  var head: HTTPRequestHead
  var body: [UInt8] = []
  /// The target's path, cut at slashes and decoded.
  let path: [String]
  let query: [(name: String, value: String)]

  /// - Throws: ``HTTPProblem`` for a target that can't be read.
  init(_ head: HTTPRequestHead) throws(HTTPProblem) {
    self.head = head
    let parts = head.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts[0].hasPrefix("/") else { throw HTTPProblem(400, "the target must begin with /") }
    var path: [String] = []
    for part in parts[0].dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
      path.append(try Self.decoded(part))
    }
    self.path = path
    var query: [(String, String)] = []
    for item in (parts.count > 1 ? parts[1] : "").split(separator: "&") {
      let pair = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      query.append((try Self.decoded(pair[0]), pair.count > 1 ? try Self.decoded(pair[1]) : ""))
    }
    self.query = query
  }

  /// Text with `%41` for a byte.
  private static func decoded(_ text: Substring) throws(HTTPProblem) -> String {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard rest.count >= 2, let number = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      else {
        throw HTTPProblem(400, "the target has a % without two hexadecimal digits")
      }
      rest = rest.dropFirst(2)
      bytes.append(number)
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw HTTPProblem(400, "the target isn't UTF-8")
    }
    return text
  }

  func parameter(_ name: String) -> String? { query.last { $0.name == name }?.value }

  func field(_ name: String) -> String? { head.values(name).last }

  /// Whether the connection stays open behind the answer.
  var keepsAlive: Bool { !head.elements("connection").contains { $0.lowercased() == "close" } }

  /// Whether the type is among those that the client takes, and named.
  func accepts(_ type: String) -> Bool {
    head.elements("accept").contains { $0.prefix { $0 != ";" }.lowercased() == type }
  }

  /// The number of bytes of the body; nil for one in chunks.
  func bodyLength() throws(HTTPProblem) -> Int? {
    let codings = head.elements("transfer-encoding")
    let lengths = head.values("content-length")
    guard codings.isEmpty else {
      guard lengths.isEmpty, codings.count == 1, codings[0].lowercased() == "chunked" else {
        throw HTTPProblem(501, "only the transfer coding chunked is understood, and without Content-Length")
      }
      return nil
    }
    guard let first = lengths.first else { return 0 }
    guard lengths.allSatisfy({ $0 == first }), !first.isEmpty,
      first.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let length = Int(first)
    else { throw HTTPProblem(400, "Content-Length isn't a number") }
    return length
  }

  /// The credentials of `Authorization`: Basic or Bearer.
  func credentials() throws(HTTPProblem) -> Credentials {
    guard let field = field("authorization") else { return .none }
    let parts = field.split(separator: " ", maxSplits: 1)
    switch parts.first?.lowercased() {
    case "bearer" where parts.count == 2: return .token(String(parts[1]))
    case "basic" where parts.count == 2:
      guard let bytes = Base64.decode(String(parts[1])), let text = String(validating: bytes, as: UTF8.self),
        let colon = text.firstIndex(of: ":")
      else { break }
      return .password(String(text[text.index(after: colon)...]), user: String(text[..<colon]))
    default: break
    }
    throw HTTPProblem(
      401, "Authorization must be Basic with a user's name and password, or Bearer with a token")
  }

  /// The key of the records: `Sluice-Key`, or `Sluice-Key-Base64` for bytes that a field can't have; nil for none.
  func key() throws(HTTPProblem) -> [UInt8]? {
    guard let encoded = field("sluice-key-base64") else { return field("sluice-key").map { Array($0.utf8) } }
    guard field("sluice-key") == nil else {
      throw HTTPProblem(400, "a request has one of Sluice-Key and Sluice-Key-Base64")
    }
    guard let key = Base64.decode(encoded) else { throw HTTPProblem(400, "Sluice-Key-Base64 isn't base64") }
    return key
  }

  /// When a publication is answered: `ack=received`, the default, `ack=durable` or `ack=none`.
  func acknowledgement() throws(HTTPProblem) -> PublishOpen.Acknowledgement {
    switch parameter("ack") {
    case nil, "received": return .received
    case "durable": return .durable
    case "none": return .none
    default: throw HTTPProblem(400, "ack can be received, durable or none")
    }
  }

  /// Where records begin; as `standard` says unless the request says it.
  func start(otherwise standard: Subscribe.Start = .replay) throws(HTTPProblem) -> Subscribe.Start {
    guard let text = parameter("from") else { return standard }
    switch text {
    case "replay": return .replay
    case "new": return .new
    default: if let start = Values.position(text) { return start }
    }
    throw HTTPProblem(400, "from must be replay, earliest, new, last:COUNT, offset:OFFSET or time:TIME")
  }

  /// The records that are wanted: `key=K`, `key-base64=K` for a key that isn't text, `key-prefix=P`, `header=NAME` for those that have it, `header=NAME:VALUE`. All conditions have to hold.
  func filter() throws(HTTPProblem) -> RecordFilter {
    var conditions: [RecordFilter.Condition] = []
    for (name, value) in query {
      switch name {
      case "key": conditions.append(.init(.key, .equals(Array(value.utf8))))
      case "key-base64":
        guard let key = Base64.decode(value) else { throw HTTPProblem(400, "key-base64 isn't base64") }
        conditions.append(.init(.key, .equals(key)))
      case "key-prefix": conditions.append(.init(.key, .hasPrefix(Array(value.utf8))))
      case "header":
        let parts = value.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let test: RecordFilter.Test = parts.count == 2 ? .equals(Array(parts[1].utf8)) : .exists
        conditions.append(.init(.header(String(parts[0])), test))
      default: break
      }
    }
    return RecordFilter(conditions)
  }

  /// How many records are wanted; nil for all.
  func count() throws(HTTPProblem) -> UInt64? {
    guard let text = parameter("count") else { return nil }
    guard let count = UInt64(text), count > 0, count < .max else {
      throw HTTPProblem(400, "count must be a number from 1 on")
    }
    return count
  }
}

/// Why a request isn't served: a status and a sentence that says what to do.
struct HTTPProblem: Error, Hashable {
  var status: Int
  var message: String
  /// The broker's code; nil for what HTTP itself finds.
  var code: ErrorCode?

  init(_ status: Int, _ message: String) {
    self.status = status
    self.message = message
  }

  /// The status that says most of what an error of the broker says.
  init(_ error: WireError) {
    message = error.message
    code = error.code
    status =
      switch error.code {
      case .authenticationRequired, .authenticationFailed, .credentialsExpired, .accessRevoked: 401
      case .permissionDenied: 403
      case .unknownTopic, .topicDeleted, .unknownCursor: 404
      case .topicEnded, .topicExists, .epochChanged, .producerFenced, .groupMismatch, .cursorTaken,
        .cursorMoved,
        .cursorDeleted:
        409
      case .lagged: 410
      case .recordTooLarge: 413
      case .invalidTopic, .invalidSetting, .keyRequired, .unsupported: 400
      case .limitReached, .tooManyConnections, .tooManyAttempts: 429
      case .storageFull: 507
      case .shuttingDown, .storageFailed, .closedByOperator, .noResponders, .topicMoved: 503
      default: 500
      }
  }

  /// After how many seconds the same request is likely to be served (RFC 9110, 10.2.3); nil where only the client can change something.
  var retryAfter: Int? { status == 503 && code != .noResponders ? 1 : nil }

  static let phrases: [Int: String] = [
    200: "OK", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 413: "Content Too Large",
    429: "Too Many Requests", 431: "Request Header Fields Too Large", 500: "Internal Server Error",
    501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
    505: "HTTP Version Not Supported", 507: "Insufficient Storage",
  ]

  /// Calls `body`, whose errors are those of the broker.
  static func wrapping<Value>(_ body: () throws(WireError) -> Value) throws(HTTPProblem) -> Value {
    do throws(WireError) { return try body() } catch { throw HTTPProblem(error) }
  }
}
