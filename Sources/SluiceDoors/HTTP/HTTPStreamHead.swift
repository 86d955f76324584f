import SluiceAccess
import SluiceHTTP
import SluiceSession
import SluiceWire

/// `HEAD` where `GET` streams records: the head of the answer to GET, or its problem.
///
/// It makes no subscription, because a subscription has effects: it creates cursors and topics, and its end makes a topic start over whose records last only
/// as long as its subscribers. The broker looks up the permission and the topic instead.
final class HTTPStreamHead: HTTPExchange {
  private unowned let connection: HTTPConnection
  private let terms: HTTPReadingTerms
  /// Whether the answer needs no lookup.
  private var isKnown = false

  init(_ terms: HTTPReadingTerms, by connection: HTTPConnection) throws(HTTPProblem) {
    self.connection = connection
    self.terms = terms
    guard !terms.isPattern else {
      isKnown = true
      return
    }
    try Self.look(up: terms, by: connection)
  }

  /// Looks up the topic. The broker answers as it would answer a subscription if the topic doesn't exist or the client may not read it.
  static func look(up terms: HTTPReadingTerms, by connection: HTTPConnection) throws(HTTPProblem) {
    guard connection.link.permissions?.allow(.subscribe, on: terms.name) ?? true else {
      throw HTTPProblem(
        WireError(.permissionDenied, "the client may not subscribe to topic \(terms.name)"))
    }
    guard let stream = connection.native.openRequest() else {
      throw HTTPProblem(429, "the connection has too many streams")
    }
    connection.link.send(TopicShow(topic: terms.name), stream: stream)
  }

  func received(_ action: ClientAction) {
    switch action {
    case .topicInfo: isKnown = true
    case .refused(_, let fault) where fault.code == .unknownTopic && createsTopic: isKnown = true
    case .refused(_, let fault): connection.refuse(HTTPProblem(WireError(fault)))
    default: break
    }
  }

  /// Whether GET would create the topic.
  private var createsTopic: Bool {
    terms.areRequests && connection.link.permissions?.allow(.create, on: terms.name) ?? true
  }

  func turnEnds() {
    guard isKnown else { return }
    isKnown = false
    connection.beginAnswer(type: terms.format.contentType)
    connection.endAnswer(isWhole: true)
  }

  func failed(_ problem: HTTPProblem) { connection.refuse(problem) }
}
