import SluiceAccess
import SluiceCommand
import SluiceHTTP
import SluiceIO
import SluiceWire

/// Signed links: addresses with credentials for one topic and one operation, for clients that can't send `Authorization`, such as a browser's EventSource.
///
/// `POST /links?topic=NAME&operation=read` returns one. A request passes it in the parameter `link`.
enum HTTPLinks {
  private static let parameter = "link"
  static let parameters = ["for", "operation", "topic"]

  // MARK: Requests with a link

  /// Takes a link off a request. The broker verifies it. The gateway checks its topic and operation, to name them in the answer.
  ///
  /// - Returns: its credentials; nil without a link.
  /// - Throws: ``HTTPProblem`` for malformed text, and for a link to another topic or operation.
  static func takeCredentials(of request: inout HTTPRequest) throws(HTTPProblem) -> Credentials? {
    guard let text = request.takeParameter(parameter) else { return nil }
    guard request.field("authorization") == nil else {
      throw HTTPProblem(400, "the request has both a link and Authorization; send one of them")
    }
    guard let link = SignedLink(unverified: text) else {
      throw HTTPProblem(401, "the parameter link isn't a signed link; make one with POST /links")
    }
    let method = request.head.method
    let isFor = "the link is for \(link.operation == .read ? "reading" : "publishing to") \(link.topic) alone"
    guard request.path == ["topics", link.topic] else {
      throw HTTPProblem(403, "\(isFor); make another link for this address")
    }
    switch link.operation {
    case .read:
      guard method == "GET" || method == "HEAD" else {
        throw HTTPProblem(403, "\(isFor); make another link for \(method)")
      }
      guard request.parameter("cursor") == nil else {
        throw HTTPProblem(403, "\(isFor), without a durable cursor, which belongs to its user")
      }
    case .publish:
      guard method == "POST" else { throw HTTPProblem(403, "\(isFor); make another link for \(method)") }
    }
    return .token(text)
  }

  // MARK: Making links

  /// Answers `POST /links`.
  static func answer(_ request: HTTPRequest, by connection: HTTPConnection) throws(HTTPProblem) {
    try HTTPRoute.check(request.head.method, ["POST"])
    try request.check(parameters: parameters)
    guard let topic = request.parameter("topic"), let name = request.parameter("operation") else {
      throw HTTPProblem(400, "say what the link is for: topic=NAME and operation=read or operation=publish")
    }
    guard let operation = LinkOperation(named: name) else {
      throw HTTPProblem(400, "operation must be read or publish")
    }
    let longest = connection.options.longestLinkTime
    let time = try request.duration("for") ?? min(connection.options.linkTime, longest)
    guard time > .zero, time <= longest else {
      throw HTTPProblem(400, "for must be more than 0s, and \(TimeSpan.exact(longest)) at most")
    }
    guard let permissions = connection.link.permissions else {
      throw HTTPProblem(409, "the broker doesn't authenticate clients, so its addresses need no links")
    }
    let expires = connection.loop.wallClock + Int64(time / .milliseconds(1))
    let link = try HTTPProblem.wrapping { () throws(WireError) in
      try permissions.makeLink(operation, on: topic, until: expires)
    }
    connection.answer(
      201, text(link.text, link.expires, operation, topic), fields: [("Cache-Control", "no-store")])
  }

  private static func text(
    _ link: String, _ expires: Int64, _ operation: LinkOperation, _ topic: String
  ) -> String {
    let url = "/topics/\(HTTPTarget.encoded(topic))?\(parameter)=\(link)"
    return
      "{\"url\":\(JSONText.quoted(url)),\"topic\":\(JSONText.quoted(topic)),\"operation\":\"\(operation)\",\"expires\":\"\(WallTime.format(expires))\"}\n"
  }
}
