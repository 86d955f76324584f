import SluiceCommand
import SluiceHTTP
import SluiceWire

extension HTTPProblem {
  /// Converts an error of the broker, with the closest HTTP status.
  init(_ error: WireError) {
    let status =
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
    self.init(
      status, error.message, code: Code(error.code),
      retryAfter: status == 503 && error.code != .noResponders ? 1 : nil)
  }

  /// The broker can't serve the request now; a retry is likely to succeed.
  static func unavailable(_ message: String) -> HTTPProblem { HTTPProblem(503, message, retryAfter: 1) }

  static let stopping = unavailable("the broker is about to stop; try again later")
  static let disconnected = unavailable("the broker ends the connection")

  /// Calls `body` and converts the broker's errors.
  static func wrapping<Value>(_ body: () throws(WireError) -> Value) throws(HTTPProblem) -> Value {
    do throws(WireError) { return try body() } catch { throw HTTPProblem(error) }
  }

  /// The JSON object that answers a request.
  var text: String {
    let code = code.map { ",\"code\":\($0.number),\"error\":\(JSONText.quoted($0.name))" } ?? ""
    return "{\"message\":\(JSONText.quoted(message))\(code)}\n"
  }
}

extension HTTPProblem.Code {
  init(_ code: ErrorCode) { self.init(Int(code.rawValue), "\(code)") }
}
