import Testing

@testable import SluiceHTTP

/// The server's side of a connection: parses requests and writes responses.
@Suite("A server's session of HTTP")
struct HTTPServerSessionTests {
  private var session = HTTPServerSession(HTTPCrossOrigin([]))
  /// The time of each turn, and its form in responses.
  private static let time: Int64 = 784_111_777_999
  private static let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"

  private mutating func receive(_ text: String) -> [String] {
    Array(text.utf8).withUnsafeBytes { session.receive($0) }
    return events()
  }

  private mutating func events() -> [String] {
    var told: [String] = []
    while let event = session.next(at: Self.time) {
      switch event {
      case .waits: told.append("waits")
      case .request(let request):
        told.append(
          "\(request.head.method) \(request.head.target) \(String(decoding: request.body, as: UTF8.self))")
      case .problem(let problem): told.append("\(problem.status) \(problem.message)")
      }
    }
    return told
  }

  /// The bytes that the client receives.
  private mutating func sent(_ most: Int = .max) -> String {
    var bytes: [UInt8] = []
    #expect(
      session.write {
        let part = $0.prefix(most - bytes.count)
        bytes += part
        return part.count
      })
    return String(decoding: bytes, as: UTF8.self)
  }

  private mutating func answer(_ body: String, status: Int = 200) {
    session.answer(status, Array(body.utf8), type: "text/plain", [], at: Self.time)
  }

  @Test("a request that comes whole is answered, and the connection stays")
  mutating func oneRequest() {
    #expect(receive("GET /a HTTP/1.1\r\nHost: x\r\n\r\n") == ["GET /a "])
    #expect(!session.isReading)
    answer("hello")
    #expect(
      sent() == "HTTP/1.1 200 OK\r\n\(Self.date)Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello")
    #expect(session.isReading && session.output.isEmpty)
  }

  @Test("a request that comes byte by byte is the same, and its time begins anew with its body")
  mutating func cutRequest() {
    let bytes = "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    var told: [String] = []
    for character in bytes.utf8.map({ String(UnicodeScalar($0)) }) { told += receive(character) }
    #expect(told == ["waits", "POST /a abc"])
  }

  @Test("an empty line in front of a request is passed over")
  mutating func emptyLine() {
    #expect(receive("\r\n").isEmpty)
    #expect(receive("GET /a HTTP/1.1\r\nHost: x\r\n\r\n") == ["GET /a "])
    answer("one")
    #expect(receive("\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n") == ["GET /b "])
  }

  @Test(
    "a target in absolute form is taken, and its host is the request's",
    arguments: [
      ("http://b/a/x?c=d", "b", ["a", "x"]), ("HTTPS://b:1", "b:1", [""]), ("http://b?c=d", "b", [""]),
    ])
  func absoluteForm(target: String, host: String, path: [String]) throws {
    var reader = HTTPRequestReader()
    let bytes = Array("GET \(target) HTTP/1.1\r\nHost: other\r\n\r\n".utf8)
    guard case .head(let request) = try reader.take(bytes[...]).event else {
      Issue.record("there is no head")
      return
    }
    #expect(request.path == path)
    #expect(request.parameter("c") == (target.contains("?") ? "d" : nil))
    #expect(request.head.values("host") == [host])
  }

  @Test("requests that come before the answer wait for it, in their order")
  mutating func pipeline() {
    let requests = (1...3).map { "GET /\($0) HTTP/1.1\r\nHost: x\r\n\r\n" }.joined()
    #expect(receive(requests) == ["GET /1 "])
    #expect(session.unreadBytes == requests.utf8.count / 3 * 2)
    answer("one")
    #expect(events() == ["GET /2 "])
    answer("two")
    #expect(events() == ["GET /3 "])
    #expect(session.unreadBytes == 0)
    answer("three")
    #expect(sent().components(behind: "\r\n\r\n") == ["one", "two", "three"])
  }

  @Test("a client that waits for 100 Continue is asked for the body")
  mutating func expectation() {
    #expect(
      receive("POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n") == ["waits"]
    )
    #expect(sent() == "HTTP/1.1 100 Continue\r\n\r\n")
    #expect(receive("ok") == ["POST /a ok"])
  }

  @Test(
    "the answer to HEAD has no content, also where the request can't be read",
    arguments: [
      "HEAD /a HTTP/2.0\r\nHost: x\r\n\r\n", "HEAD /a HTTP/1.1\r\n\r\n", "HEAD /a HTTP/1.1\r\nbad\r\n\r\n",
      "HEAD /a\n", "HEAD /\(String(repeating: "a", count: 9_000))",
      "HEAD /a HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
    ])
  func unreadableHead(request: String) throws {
    for step in [1, request.utf8.count] {
      var session = HTTPServerSession(HTTPCrossOrigin([]))
      var problems = 0
      let bytes = Array(request.utf8)
      for start in stride(from: 0, to: bytes.count, by: step) {
        bytes[start..<min(start + step, bytes.count)].withUnsafeBytes { session.receive($0) }
        while let event = session.next(at: Self.time) {
          guard case .problem(let problem) = event else { continue }
          problems += 1
          session.refuse(problem, "why", at: Self.time)
        }
      }
      var text = ""
      _ = session.write {
        text += String(decoding: $0, as: UTF8.self)
        return $0.count
      }
      // The content length is that of the response to GET.
      #expect(
        problems == 1 && text.contains("Content-Length: 3\r\n") && text.hasSuffix("\r\n\r\n"), "\(text)")
    }
  }

  @Test(
    "an answer before anything of the request tells its method does for any",
    arguments: [("", nil), ("HE", nil), ("HEAD", nil), ("HEAD ", ""), ("G", "why"), ("HEADER /", "why")]
      as [(String, String?)])
  mutating func unknownMethod(beginning: String, content: String?) {
    _ = receive(beginning)
    session.refuse(HTTPProblem(429, "too many"), "why", at: Self.time)
    let answer = sent()
    #expect(answer.contains("Content-Length: 3\r\n") == (content != nil))
    #expect(
      answer.contains("Connection: close\r\n") && answer.hasSuffix("\r\n\r\n\(content ?? "")"), "\(answer)")
  }

  @Test("a client of HTTP/1.0 that asks for it keeps its connection")
  mutating func keepAlive() {
    let request = "GET /a HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"
    for _ in 0..<2 {
      #expect(receive(request) == ["GET /a "])
      answer("ok")
      #expect(!session.isClosing)
      let answer = sent()
      #expect(
        answer.contains("\r\nContent-Length: 2\r\n") && answer.contains("\r\nConnection: keep-alive\r\n"))
    }
  }

  @Test("a client that says close gets the answer, and no request behind it is read")
  mutating func lastRequest() {
    let request = "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    #expect(receive(request + request) == ["GET /a "])
    answer("bye")
    #expect(session.isClosing)
    #expect(events().isEmpty)
    #expect(sent().hasSuffix("Connection: close\r\n\r\nbye"))
  }

  @Test(
    "what isn't a request is refused, and nothing comes after it",
    arguments: [
      ("nonsense\r\n\r\n", "400 the request line isn't METHOD TARGET HTTP/VERSION"),
      ("GET / HTTP/2.0\r\nHost: x\r\n\r\n", "505 only HTTP/1.1 and HTTP/1.0 are understood"),
      ("GET / HTTP/1.10\r\nHost: x\r\n\r\n", "505 only HTTP/1.1 and HTTP/1.0 are understood"),
      ("GET / HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n", "400 the request needs one Host field"),
      (
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "400 HTTP/1.0 has no Transfer-Encoding; send Content-Length"
      ),
      ("GET / HTTP/1.1\r\n\r\n", "400 the request needs one Host field"),
      ("\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", "400 the request line isn't METHOD TARGET HTTP/VERSION"),
      ("GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", "400 the target must begin with /"),
      ("GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n", "400 the target must begin with /"),
      ("GET /%+1 HTTP/1.1\r\nHost: x\r\n\r\n", "400 the target has a % without two hexadecimal digits"),
      ("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", "400 the target has a % without two hexadecimal digits"),
      (
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n",
        "413 the body has more than 16777216 bytes, which is the limit; send several requests"
      ),
      (
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "400 the request has two Content-Length headers; send one"
      ),
      (
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "400 the request has both Content-Length and Transfer-Encoding; send one of them"
      ),
      (
        "GET / HTTP/1.1\r\nHost: x\r\nOrigin: https://evil.example\r\n\r\n",
        "403 pages of the origin https://evil.example may not connect here"
      ),
    ])
  mutating func refusals(bytes: String, expected: String) throws {
    #expect(receive(bytes + "GET / HTTP/1.1\r\nHost: x\r\n\r\n") == [expected])
    session.refuse(HTTPProblem(400, "why"), "{}", at: Self.time)
    #expect(session.isClosing)
    #expect(sent().contains("\r\nConnection: close\r\n"))
    #expect(receive("GET / HTTP/1.1\r\nHost: x\r\n\r\n").isEmpty)
  }

  @Test("a request that has been read is refused, and the connection stays")
  mutating func refusedRequest() {
    #expect(receive("GET /a HTTP/1.1\r\nHost: x\r\n\r\n") == ["GET /a "])
    session.refuse(HTTPProblem(405, "no", methods: ["GET", "POST"]), "{}", at: Self.time)
    let text = sent()
    #expect(text.hasPrefix("HTTP/1.1 405 Method Not Allowed\r\n\(Self.date)Allow: GET, POST\r\n"), "\(text)")
    #expect(session.isReading)
  }

  @Test(
    "a problem has the fields that tell a client what to do",
    arguments: [
      (HTTPProblem(401, ""), "WWW-Authenticate: Basic realm=\"sluice\", charset=\"UTF-8\""),
      (HTTPProblem(503, "", retryAfter: 1), "Retry-After: 1"),
      (HTTPProblem(405, "", methods: ["GET"]), "Allow: GET"),
    ])
  mutating func fields(problem: HTTPProblem, field: String) {
    _ = receive("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
    session.refuse(problem, "{}", at: Self.time)
    #expect(sent().contains("\r\n\(field)\r\n"))
  }

  @Test(
    "an answer in chunks is as long as its last chunk says; one that breaks off has none, and ends the connection"
  )
  mutating func chunks() {
    for isWhole in [true, false] {
      _ = receive("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
      session.beginAnswer(type: "text/plain", at: Self.time)
      session.append(chunk: Array("hello".utf8))
      session.append(chunk: [])
      session.append(sharedChunk: HTTPChunk.framed([UInt8](repeating: 0x61, count: 20_000)))
      session.endAnswer(isWhole: isWhole)
      let body = "5\r\nhello\r\n4e20\r\n\(String(repeating: "a", count: 20_000))\r\n"
      #expect(sent().components(behind: "\r\n\r\n", whole: true) == [body + (isWhole ? "0\r\n\r\n" : "")])
      #expect(session.isClosing == !isWhole)
    }
  }

  @Test(
    "an answer by HTTP/1.0 has no chunks and ends with the connection, as its content does",
    arguments: ["", "Host: x\r\nConnection: keep-alive\r\nExpect: 100-continue\r\n"], ["GET", "HEAD"])
  mutating func oldVersion(fields: String, method: String) {
    #expect(receive("\(method) /a HTTP/1.0\r\n\(fields)\r\n") == ["\(method) /a "])
    session.beginAnswer(type: "text/plain", at: Self.time)
    session.append(chunk: Array("hello".utf8))
    session.append(sharedChunk: HTTPChunk.framed(Array("one\r\ntwo".utf8)))
    session.append(sharedChunk: HTTPChunk.framed([]))
    session.append(sharedChunk: HTTPChunk.framed([UInt8](repeating: 0x61, count: 20_000)))
    session.endAnswer(isWhole: true)
    let head =
      "HTTP/1.1 200 OK\r\n\(Self.date)Content-Type: text/plain\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    #expect(
      sent() == head
        + (method == "GET" ? "helloone\r\ntwo\(String(repeating: "a", count: 20_000))" : ""))
    #expect(session.isClosing)
  }

  @Test("a request by HTTP/1.0 has a body by its length, and none follows it")
  mutating func oldBody() {
    #expect(
      receive("POST /a HTTP/1.0\r\nContent-Length: 2\r\n\r\nokGET / HTTP/1.0\r\n\r\n") == [
        "waits", "POST /a ok",
      ])
    answer("hello")
    #expect(
      sent()
        == "HTTP/1.1 200 OK\r\n\(Self.date)Content-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
    )
    #expect(session.isClosing && events().isEmpty)
  }

  @Test("a later minor version is read as HTTP/1.1")
  mutating func laterVersion() {
    #expect(receive("GET /a HTTP/1.2\r\nHost: x\r\n\r\n") == ["GET /a "])
    answer("")
    #expect(session.isReading)
  }

  @Test("every status that is answered has its phrase")
  mutating func phrases() {
    _ = receive("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
    answer("", status: 202)
    #expect(sent().hasPrefix("HTTP/1.1 202 Accepted\r\n"))
  }

  @Test("output that the stream doesn't take waits, and is written in order")
  mutating func slowClient() {
    _ = receive("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
    session.beginAnswer(type: "t", at: Self.time)
    let long = HTTPChunk.framed(Array(0..<20_000).map { UInt8(truncatingIfNeeded: $0) })
    session.append(sharedChunk: long)
    session.append(chunk: [1, 2, 3])
    session.append(sharedChunk: long)
    session.endAnswer(isWhole: true)
    var all: [UInt8] = []
    let total = session.output.count
    while !session.output.isEmpty {
      let before = all.count
      let goesOn = session.write {
        let part = $0.prefix(max(0, before + 777 - all.count))
        all += part
        return part.count
      }
      #expect(goesOn)
      #expect(all.count + session.output.count == total)
    }
    let head =
      "HTTP/1.1 200 OK\r\n\(Self.date)Content-Type: t\r\nTransfer-Encoding: chunked\r\nCache-Control: no-store\r\n\r\n"
    #expect(
      all == Array(head.utf8) + long + Array("3\r\n".utf8) + [1, 2, 3, 13, 10] + long
        + Array("0\r\n\r\n".utf8))
  }

  @Test("a stream that has failed stops the writing")
  mutating func brokenClient() {
    _ = receive("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
    answer("hello")
    #expect(!session.write { _ in nil })
    session.dropOutput()
    #expect(session.heldBytes == 0)
  }

  @Test(
    "a connection on which nothing has come just ends; half a request is refused; one that is served has all time"
  )
  mutating func time() {
    #expect(receive("GET /a HTT").isEmpty)
    #expect(session.timeOut(after: .seconds(60))?.status == 408)
    #expect(receive("P/1.1\r\nHost: x\r\n\r\n") == ["GET /a "])
    #expect(session.timeOut(after: .seconds(60)) == nil)
    #expect(!session.isClosing)
    answer("hello")
    #expect(session.timeOut(after: .seconds(60)) == nil)
    #expect(session.isClosing)
  }

  @Test("a connection that is to end does so with the answer of the request that is served")
  mutating func ending() {
    _ = receive("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
    session.end()
    #expect(!session.isClosing)
    answer("hello")
    #expect(session.isClosing)
    #expect(sent().contains("Connection: close"))
  }

  @Test("a browser that asks what its page may do is answered at once, and its request follows")
  mutating func preflight() {
    session = HTTPServerSession(HTTPCrossOrigin(["https://app.example"]))
    let origin = "Host: x\r\nOrigin: https://app.example\r\n"
    #expect(
      receive("OPTIONS /a HTTP/1.1\r\n\(origin)\r\nGET /a HTTP/1.1\r\n\(origin)\r\n") == ["waits", "GET /a "])
    let text = sent()
    #expect(
      text.hasPrefix("HTTP/1.1 204 No Content\r\n\(Self.date)Access-Control-Allow-Methods: "), "\(text)")
    #expect(text.contains("\r\nAccess-Control-Allow-Origin: https://app.example\r\nVary: Origin\r\n"))
  }

  @Test("settings add credentials and fields to what a page may send", arguments: [false, true])
  mutating func preflightSettings(withCredentials: Bool) {
    session = HTTPServerSession(
      HTTPCrossOrigin(["https://app.example"], withCredentials: withCredentials, fields: ["X-Request-Id"]))
    let origin = "Host: x\r\nOrigin: https://app.example\r\n"
    _ = receive("OPTIONS /a HTTP/1.1\r\n\(origin)\r\nGET /a HTTP/1.1\r\n\(origin)\r\n")
    let text = sent()
    #expect(text.contains("Sluice-Key-Base64, X-Request-Id\r\n"), "\(text)")
    #expect(text.contains("\r\nAccess-Control-Allow-Credentials: true\r\n") == withCredentials)
    answer("hello")
    #expect(sent().contains("\r\nAccess-Control-Allow-Credentials: true\r\n") == withCredentials)
    _ = receive("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
    answer("hello")
    #expect(!sent().contains("Access-Control-"))
  }

  @Test("what is held is counted: half a request, its body, what comes behind it, and answers")
  mutating func memory() {
    #expect(session.heldBytes == 0)
    _ = receive(
      "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + String(repeating: "x", count: 99_999))
    #expect(session.heldBytes >= 99_999)
    #expect(receive("x" + String(repeating: "y", count: 500)).count == 1)
    #expect(session.heldBytes >= 100_500)
    answer(String(repeating: "z", count: 1000))
    _ = sent()
    _ = events()
    #expect(session.heldBytes < 8192)
  }

  @Test("a client that is always a request ahead costs no more memory from request to request")
  mutating func endlessPipeline() {
    let request = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
    _ = receive(request)
    for _ in 0..<200 {
      _ = receive(request)
      answer("hello")
      #expect(events() == ["GET /a "])
      _ = receive("GET")
      answer("hello")
      _ = receive(String(request.dropFirst(3)))
      _ = sent()
      #expect(session.heldBytes < 512)
    }
  }
}

extension String {
  /// The bodies of responses whose heads end with `separator` and whose bodies have no line breaks; with `whole`, the whole rest.
  fileprivate func components(behind separator: String, whole: Bool = false) -> [String] {
    var (bodies, rest) = ([String](), self[...])
    while let end = rest.firstRange(of: separator) {
      rest = rest[end.upperBound...]
      if whole { return [String(rest)] }
      let body = rest.firstRange(of: "HTTP/1.1").map { rest[..<$0.lowerBound] } ?? rest
      bodies.append(String(body))
      rest = rest[body.endIndex...]
    }
    return bodies
  }
}
