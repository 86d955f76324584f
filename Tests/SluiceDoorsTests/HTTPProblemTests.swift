import SluiceHTTP
import SluiceWire
import Testing

@testable import SluiceDoors

@Suite("Problems of HTTP requests")
struct HTTPProblemTests {
  @Test(
    "an error of the broker becomes a status, and a time where trying again helps",
    arguments: [
      (ErrorCode.authenticationFailed, 401, nil), (.permissionDenied, 403, nil), (.unknownTopic, 404, nil),
      (.topicExists, 409, nil), (.recordTooLarge, 413, nil), (.tooManyConnections, 429, nil),
      (.storageFull, 507, nil), (.noResponders, 503, nil), (.shuttingDown, 503, 1), (.topicMoved, 503, 1),
      (.malformedFrame, 500, nil),
    ] as [(ErrorCode, Int, Int?)])
  func statuses(code: ErrorCode, status: Int, seconds: Int?) {
    let problem = HTTPProblem(WireError(code, "why"))
    #expect(problem.status == status)
    #expect(problem.retryAfter == seconds)
    #expect(problem.message == "why")
  }
}
