import SluiceHTTP
import TestSupport

/// Passes any bytes to a server's HTTP session, which answers each request immediately.
enum HTTPSessionProbe: Probe {
  enum Target: String, CaseIterable, Sendable {
    /// A byte for how the stream is split, one for how much the client reads at a time, then the stream: requests with their bodies.
    case httpSessions
  }

  static func run(_ target: Target, on input: [UInt8]) throws {
    var input = ProbeInput(input)
    let (step, room) = (max(1, Int(input.byte())), max(1, Int(input.byte())))
    let stream = input.remaining()
    let whole = try outcome(stream, cutEvery: max(1, stream.count), room: .max)
    let cut = try outcome(stream, cutEvery: step, room: room)
    guard whole == cut else {
      throw ProbeViolation("cut every \(step) bytes, read every \(room): \(cut) instead of \(whole)")
    }
  }

  /// The bytes that the client receives.
  private static func outcome(_ stream: [UInt8], cutEvery step: Int, room: Int) throws -> [UInt8] {
    var session = HTTPServerSession(HTTPCrossOrigin(["https://app.example"]))
    var sent: [UInt8] = []
    for start in stride(from: 0, to: stream.count, by: step) {
      let end = min(start + step, stream.count)
      withExactMemory(Array(stream[start..<end])) { session.receive($0) }
      while let event = session.next(at: 0) {
        switch event {
        case .waits: break
        case .request(let request): answer(request, &session)
        case .problem(let problem): session.refuse(problem, problem.message, at: 0)
        }
      }
      guard session.isReading || session.isClosing else {
        throw ProbeViolation("an answered request is served")
      }
      guard session.heldBytes - session.output.count <= 32_768 + 2 * end else {
        throw ProbeViolation("\(session.heldBytes) bytes are held of \(end)")
      }
      var left = room
      _ = session.write {
        let part = $0.prefix(left)
        left -= part.count
        sent += part
        return part.count
      }
    }
    _ = session.write {
      sent += $0
      return $0.count
    }
    guard session.output.isEmpty else {
      throw ProbeViolation("\(session.output.count) bytes weren't written")
    }
    return sent
  }

  /// Depending on the request's method, responds as a whole, in chunks, or in chunks that break off.
  private static func answer(_ request: HTTPRequest, _ session: inout HTTPServerSession) {
    let text = Array("\(request.path) \(request.query) \(request.keepsAlive)".utf8) + request.body
    switch request.head.method {
    case "GET": session.answer(200, text, type: "text/plain", [("Sluice-Member", "m")], at: 0)
    case "PUT": session.refuse(HTTPProblem(401, "no", retryAfter: 3, methods: ["GET"]), "{}", at: 0)
    default:
      session.beginAnswer(type: "text/plain", at: 0)
      session.append(chunk: text)
      session.append(sharedChunk: HTTPChunk.framed([UInt8](repeating: 0x61, count: 17_000)))
      session.endAnswer(isWhole: request.head.method == "POST")
    }
  }
}
