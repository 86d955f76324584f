import SluiceAccess
import SluiceHTTP
import SluiceSession
import SluiceWire

/// `GET` and `HEAD` of a topic by a reader that has received the end of one of its epochs. If that epoch is still the current one, the answer is 204, after
/// which a browser's EventSource doesn't reconnect. Otherwise the topic was recreated, and the reader gets the records of the new epoch.
///
/// The topic is looked up without a subscription, as in ``HTTPStreamHead``.
final class HTTPLifeCheck: HTTPExchange {
  private unowned let connection: HTTPConnection
  private let terms: HTTPReadingTerms
  /// The epoch whose end the client has received.
  private let epoch: UInt64
  /// Creates the exchange that serves the topic's new epoch.
  private let goOn: () throws(HTTPProblem) -> any HTTPExchange

  init(
    _ terms: HTTPReadingTerms, after epoch: UInt64, by connection: HTTPConnection,
    _ goOn: @escaping () throws(HTTPProblem) -> any HTTPExchange
  ) throws(HTTPProblem) {
    self.connection = connection
    self.terms = terms
    self.epoch = epoch
    self.goOn = goOn
    try HTTPStreamHead.look(up: terms, by: connection)
  }

  func received(_ action: ClientAction) {
    switch action {
    case .topicInfo(_, let info): found(info.summary)
    case .refused(_, let fault): connection.refuse(HTTPProblem(WireError(fault)))
    default: break
    }
  }

  private func found(_ topic: TopicSummary) {
    guard topic.epoch == epoch else { return connection.goOn(goOn) }
    guard topic.ending != nil else {
      return connection.refuse(
        HTTPProblem(400, "Last-Event-ID says that topic \(terms.name) has ended, and it hasn't; leave it out")
      )
    }
    connection.answer(204, "")
  }

  func failed(_ problem: HTTPProblem) { connection.refuse(problem) }
}
