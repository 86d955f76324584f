import SluiceCommand
import SluiceHTTP
import SluiceWire

/// Selects the exchange that serves a request, by method and path.
///
/// | request | |
/// |---|---|
/// | `GET /topics` | ``HTTPTopicRequest`` |
/// | `POST /topics/NAME` | ``HTTPPublishing`` |
/// | `GET /topics/NAME` | ``HTTPReading`` |
/// | `PUT`, `PATCH`, `DELETE /topics/NAME`, `GET /topics/NAME/settings`, `POST /topics/NAME/trim` | ``HTTPTopicRequest`` |
/// | `POST`, `DELETE /topics/NAME/cursors/CURSOR` | ``HTTPTopicRequest`` |
/// | `POST /topics/NAME/request` | ``HTTPAsking`` |
/// | `GET /topics/NAME/requests` | ``HTTPReading`` |
/// | `HEAD` where `GET` streams records | ``HTTPStreamHead`` |
/// | the same after the end of one of the topic's epochs | ``HTTPLifeCheck`` |
/// | `POST /links` | ``HTTPLinks`` |
/// | `POST /replies/TOPIC/ID` | ``HTTPPublishing`` |
/// | `POST /topics/NAME/groups/GROUP/next`, `ack`, `retry`, `reject`, `extend`, `leave` | ``HTTPGroupNext``, ``HTTPGroupSettling`` |
enum HTTPRoute {
  /// Nil if the request resumes after the end of a topic's events: a browser's EventSource reconnects until it is answered with 204.
  static func exchange(
    _ request: HTTPRequest, by connection: HTTPConnection
  ) throws(HTTPProblem) -> (any HTTPExchange)? {
    let path = request.path
    let method = request.head.method
    if path.first == "replies", path.count == 3 {
      try check(method, ["POST"])
      try request.check(parameters: [], body: .records)
      return try HTTPPublishing(reply: request, by: connection)
    }
    guard path.first == "topics", path.allSatisfy({ !$0.isEmpty }) else { throw nothing(request) }
    switch path.count {
    case 1:
      try check(method, ["GET", "HEAD"])
      try request.check(parameters: ["after", "limit"])
      return try HTTPTopicRequest.list(request, by: connection)
    case 2: return try topic(request, by: connection)
    case 3 where path[2] == "settings":
      try check(method, ["GET", "HEAD"])
      try request.check(parameters: [])
      return try HTTPTopicRequest.show(request, by: connection)
    case 3 where path[2] == "trim":
      try check(method, ["POST"])
      try request.check(parameters: HTTPTopicRequest.trimParameters)
      return try HTTPTopicRequest.trim(request, by: connection)
    case 3 where path[2] == "request":
      try check(method, ["POST"])
      try request.check(parameters: ["timeout"], body: .records)
      return try HTTPAsking(request, by: connection)
    case 3 where path[2] == "requests":
      try check(method, ["GET", "HEAD"])
      return try reading(request, areRequests: true, by: connection)
    case 4 where path[2] == "cursors":
      try check(method, ["DELETE", "POST"])
      try request.check(parameters: method == "POST" ? ["from"] : [])
      return try HTTPTopicRequest.cursor(request, by: connection)
    case 5 where path[2] == "groups":
      let action = HTTPGroupAction(rawValue: path[4])
      guard let action else { throw path[4] == "refuse" ? refusing : nothing(request) }
      try check(method, ["POST"])
      guard action != .next else {
        try request.check(parameters: HTTPGroupNext.parameters)
        return try HTTPGroupNext(request, by: connection)
      }
      try request.check(
        parameters: action == .retry ? ["after", "member"] : ["member"],
        body: action.verdict == nil ? .none : .statement)
      return try HTTPGroupSettling(action, request, by: connection)
    default: throw nothing(request)
    }
  }

  /// `/topics/NAME`.
  private static func topic(
    _ request: HTTPRequest, by connection: HTTPConnection
  ) throws(HTTPProblem) -> (any HTTPExchange)? {
    let method = request.head.method
    try check(method, ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"])
    switch method {
    case "GET", "HEAD": return try reading(request, areRequests: false, by: connection)
    case "POST":
      try request.check(parameters: ["ack", "lines"], body: .records)
      return try HTTPPublishing(request, by: connection)
    default:
      let isDeletion = method == "DELETE"
      try request.check(parameters: isDeletion ? [] : nil, body: isDeletion ? .none : .statement)
      return try HTTPTopicRequest.change(request, by: connection)
    }
  }

  private static func reading(
    _ request: HTTPRequest, areRequests: Bool, by connection: HTTPConnection
  ) throws(HTTPProblem) -> (any HTTPExchange)? {
    try request.check(parameters: HTTPReadingTerms.parameters)
    let resumption = try HTTPResumption(request)
    if resumption == .ended(of: nil), !areRequests { return nil }
    let terms = try HTTPReadingTerms(request, areRequests: areRequests, connection.options)
    let isHead = request.head.method == "HEAD"
    let begin = { [unowned connection] (resumption: HTTPResumption) throws(HTTPProblem) -> any HTTPExchange in
      isHead
        ? try HTTPStreamHead(terms, by: connection) : try HTTPReading(terms, resumption, by: connection)
    }
    guard case .ended(let epoch?) = resumption, !areRequests else { return try begin(resumption) }
    return try HTTPLifeCheck(terms, after: epoch, by: connection) { () throws(HTTPProblem) in
      try begin(.behind(.end(of: epoch)))
    }
  }

  /// A name that could mean two actions, of which one loses records that the other keeps.
  private static let refusing = HTTPProblem(
    400,
    "refuse isn't an action; use retry to have records delivered again, or reject to send them to the dead letters"
  )

  private static func nothing(_ request: HTTPRequest) -> HTTPProblem {
    HTTPProblem(404, "there is nothing at \(request.head.target); topics are at /topics/NAME")
  }

  static func check(_ method: String, _ methods: [String]) throws(HTTPProblem) {
    guard methods.contains(method) else {
      throw HTTPProblem(
        405,
        "\(method) isn't understood here; there \(methods.count == 1 ? "is" : "are") "
          + methods.formatted(), methods: methods)
    }
  }
}

extension [String] {
  /// "GET", "GET and POST", "DELETE, GET and POST".
  fileprivate func formatted() -> String {
    count < 2 ? joined() : dropLast().joined(separator: ", ") + " and " + (last ?? "")
  }
}

/// An operation on a group.
enum HTTPGroupAction: String {
  case next, ack, retry, reject, extend, leave

  /// The verdict on the member's records; nil for operations that don't settle records.
  var verdict: Settle.Verdict? {
    switch self {
    case .next, .leave: nil
    case .ack: .acknowledge
    case .retry: .retry
    case .reject: .reject
    case .extend: .extend
    }
  }
}
