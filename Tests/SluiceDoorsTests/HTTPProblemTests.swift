import SluiceBroker
import SluiceHTTP
import SluiceWire
import Testing

@testable import SluiceDoors

@Suite("Problems of HTTP requests")
struct HTTPProblemTests {
  @Test(arguments: [true, false]) func aConnectionTooManyIsToldSo(perAddress: Bool) throws {
    let stage = try HTTPStage { configuration in
      if perAddress {
        configuration.limits.connectionsPerAddress = 1
      } else {
        configuration.limits.connections = 1
      }
    }
    let first = stage.begin("GET /topics/t/requests")
    #expect(first.text.hasPrefix("HTTP/1.1 200 OK"))
    let answer = stage.ask("GET /topics")
    #expect(answer.status == 429)
    #expect(answer.body.contains("too-many-connections"), "\(answer)")
    #expect(answer.text.ranges(of: "HTTP/1.1").count == 1)
  }

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
