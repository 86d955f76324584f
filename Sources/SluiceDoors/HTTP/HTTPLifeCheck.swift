import SluiceAccess
import SluiceHTTP
import SluiceSession
import SluiceWire

/// `GET` and `HEAD` of a topic whose reader has had the end of one of its lives: 204 where that is the present one, after which a browser's EventSource doesn't connect
/// again. Otherwise the topic was made anew, and the reader gets the records of its new life.
///
/// The topic is looked up without a subscription, as in ``HTTPStreamHead``.
final class HTTPLifeCheck: HTTPExchange {
  private unowned let connection: HTTPConnection
  private let terms: HTTPReadingTerms
  /// The life whose end the client has had.
  private let epoch: UInt64
  /// Makes what answers with the topic's new life.
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
