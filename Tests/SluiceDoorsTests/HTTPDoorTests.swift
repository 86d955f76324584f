import SluiceBroker
import SluiceDoors
import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@Suite struct HTTPDoorTests {
  private let door: DoorWorld
  private let client: ByteClient

  init() throws {
    door = try DoorWorld([.http])
    client = door.connect(1)
  }

  private struct Answer: Equatable {
    var status: Int
    var fields: [String: String]
    var body: String
  }

  /// Sends a request, and returns the head and body that arrived, unchanged.
  private func ask(_ request: String, _ body: String = "", for time: Duration = .milliseconds(200)) -> Answer
  {
    client.send(request.replacing("\n", with: "\r\n") + "\r\n\r\n" + body)
    door.settle(time)
    return Self.answer(String(decoding: client.take(), as: UTF8.self))
  }

  private static func answer(_ text: String) -> Answer {
    guard let end = text.firstRange(of: "\r\n\r\n") else { return Answer(status: 0, fields: [:], body: text) }
    let lines = text[..<end.lowerBound].split(separator: "\r\n")
    var fields: [String: String] = [:]
    for line in lines.dropFirst() {
      let pair = line.split(separator: ":", maxSplits: 1)
      fields[pair[0].lowercased()] = pair.count > 1 ? String(pair[1].dropFirst()) : ""
    }
    return Answer(
      status: Int(lines[0].split(separator: " ")[1]) ?? 0, fields: fields,
      body: String(text[end.upperBound...]))
  }

  /// The bytes of a chunked body, and whether its last chunk has arrived.
  private static func dechunked(_ text: String) -> (body: String, isWhole: Bool) {
    var rest = Array(text.utf8)[...]
    var body: [UInt8] = []
    while let end = rest.firstIndex(of: 0x0A) {
      let size = Int(String(decoding: rest[..<end].dropLast(), as: UTF8.self), radix: 16) ?? 0
      rest = rest[(end + 1)...]
      if size == 0 { return (String(decoding: body, as: UTF8.self), true) }
      body += rest.prefix(size)
      rest = rest.dropFirst(size + 2)
    }
    return (String(decoding: body, as: UTF8.self), false)
  }

  private func publish(_ topic: String, _ body: String, _ fields: String = "") -> Answer {
    ask("POST /topics/\(topic) HTTP/1.1\nHost: b\nContent-Length: \(body.utf8.count)\(fields)", body)
  }

  private func payloads(_ body: String) -> [String] {
    body.split(separator: "\n").compactMap { line in
      line.firstRange(of: "\"payload\":\"").map { (mark: Range<String.Index>) -> String in
        String(line[mark.upperBound...].dropLast(2))
      }
    }
  }

  @Test func aBodyIsARecord() throws {
    let answer = publish(
      "a.b", "hello", "\nContent-Type: text/plain; charset=utf-8\nSluice-Key: k\nSluice-Header-Color: red")
    #expect(answer.status == 200)
    #expect(answer.body == "{\"topic\":\"a.b\",\"records\":1,\"lastOffset\":0}\n")
    #expect(answer.fields["date"]?.hasSuffix(" GMT") == true)
    let native = try NativeClient(door)
    native.send(Subscribe(topic: "a.b", grantedThrough: 10), stream: 1)
    let record = try #require(native.records(stream: 1).first)
    #expect(record.key == "k")
    #expect(record.headers == ["content-type": "text/plain; charset=utf-8", "color": "red"])
    #expect(record.payload == Array("hello".utf8))
  }

  /// A record couldn't show that its payload is encoded.
  @Test func aBodyInAContentCodingIsRefused() {
    #expect(publish("t", "x", "\nContent-Encoding: gzip").status == 415)
    #expect(publish("t", "x", "\nContent-Encoding: identity").status == 200)
  }

  @Test func linesAreRecordsAndTheConnectionStays() {
    #expect(
      publish("t", "one\ntwo\r\n\nthree", "\nContent-Type: application/x-ndjson").body.contains(
        "\"records\":3,\"lastOffset\":2"))
    #expect(publish("t?lines", "four\nfive\n").body.contains("\"records\":2,\"lastOffset\":4"))
    let chunked = ask(
      "POST /topics/t HTTP/1.1\nHost: b\nTransfer-Encoding: chunked",
      "3\r\nsix\r\n4;x=y\r\n six\r\n0\r\nA: b\r\n\r\n")
    #expect(chunked.body.contains("\"lastOffset\":5"))
    let answer = ask("GET /topics/t?until=live HTTP/1.1\nHost: b")
    #expect(answer.fields["content-type"] == "application/x-ndjson")
    let (body, isWhole) = Self.dechunked(answer.body)
    #expect(isWhole)
    #expect(payloads(body) == ["one", "two", "three", "four", "five", "six six"])
    #expect(body.hasPrefix("{\"offset\":0,\"topic\":\"t\",\"time\":\""))
  }

  @Test func aRequestThatComesAgainPublishesOnce() {
    let key = "\nIdempotency-Key: 8e03978e"
    #expect(publish("t", "x", key).body.contains("\"lastOffset\":0"))
    #expect(publish("t", "x", key).body.contains("\"isDuplicate\":true"))
    #expect(publish("t", "y", "\nIdempotency-Key: other").body.contains("\"lastOffset\":1"))
  }

  @Test func recordsBeginAndEndWhereTheClientSays() {
    _ = publish("t?lines", (0..<20).map { "\($0)" }.joined(separator: "\n"))
    func read(_ query: String) -> [String] {
      payloads(Self.dechunked(ask("GET /topics/t?until=live&\(query) HTTP/1.1\nHost: b").body).body)
    }
    #expect(read("from=last:2") == ["18", "19"])
    #expect(read("from=offset:17") == ["17", "18", "19"])
    #expect(read("from=earliest&count=3") == ["0", "1", "2"])
    #expect(read("from=new") == [])
    #expect(read("from=time:2000-01-01T00:00:00Z&count=1") == ["0"])
  }

  @Test func eventsResumeBehindTheLastOne() throws {
    _ = publish("t?lines", "a\nb\nc")
    let answer = ask("GET /topics/t HTTP/1.1\nHost: b\nAccept: text/event-stream\nLast-Event-ID: 0")
    #expect(answer.fields["content-type"] == "text/event-stream")
    var (body, isWhole) = Self.dechunked(answer.body)
    #expect(!isWhole)
    // An id begins with the topic's epoch.
    #expect(body.hasPrefix("id: ") && body.contains("-1\ndata: {\"offset\":1,"))
    #expect(body.contains("-2\ndata: {"))
    // Records that are published later follow, and then the end.
    let native = try NativeClient(door)
    native.publish("t", ["d"], stream: 1)
    native.send(Complete(.failure(code: ErrorCode(rawValue: 1234), message: "broken")), stream: 1)
    native.settle()
    (body, isWhole) = Self.dechunked(String(decoding: client.take(), as: UTF8.self))
    #expect(isWhole)
    #expect(body.hasPrefix("id: ") && body.contains("-3\ndata: {"))
    #expect(
      body.hasSuffix("event: failure\ndata: {\"topic\":\"t\",\"code\":1234,\"message\":\"broken\"}\n\n"))
  }

  @Test func aPatternIsReadLikeATopic() {
    _ = publish("a.x", "1")
    _ = publish("a.y", "2")
    _ = publish("b", "3")
    let answer = ask(
      "GET /topics/a.%2A?until=live&from=earliest HTTP/1.1\nHost: b\nAccept: application/octet-stream")
    #expect(Set(Self.dechunked(answer.body).body) == ["1", "2"])
  }

  @Test(arguments: [
    ("GET /topics/none HTTP/1.1\nHost: b", 404), ("GET /other HTTP/1.1\nHost: b", 404),
    ("TRACE /topics/t HTTP/1.1\nHost: b", 405), ("GET /topics/t HTTP/1.1", 400),
    ("GET /topics/t HTTP/2.0\nHost: b", 505), ("GET /topics/none HTTP/1.0", 404),
    ("POST /topics/t HTTP/1.0\nTransfer-Encoding: chunked", 400),
    ("GET /topics/a..b HTTP/1.1\nHost: b", 400), ("GET /topics/t?from=x HTTP/1.1\nHost: b", 400),
    ("GET /topics/%zz HTTP/1.1\nHost: b", 400),
    ("POST /topics/t HTTP/1.1\nHost: b\nContent-Length: 99999999999", 413),
    ("POST /topics/t HTTP/1.1\nHost: b\nContent-Length: 1\nTransfer-Encoding: chunked", 400),
    ("GET /topics/t HTTP/1.1\nHost: b\nAuthorization: Nonsense", 401),
    ("GET /topics/t HTTP/1.1\nHost: b\nOrigin: https://evil.example", 403),
    ("nonsense", 400),
  ]) func whatCannotBeServedIsAnsweredWithAReason(request: String, status: Int) {
    let answer = ask(request)
    #expect(answer.status == status)
    #expect(answer.body.hasPrefix("{\"message\":\""))
  }

  @Test func pagesOfAllowedOriginsAreToldSo() throws {
    var options = DoorOptions()
    options.origins = ["https://app.example"]
    let door = try DoorWorld([.http], options: options)
    let client = door.connect(1)
    client.send("OPTIONS /topics/t HTTP/1.1\r\nHost: b\r\nOrigin: https://app.example\r\n\r\n")
    door.settle()
    let answer = Self.answer(client.text)
    #expect(answer.status == 204)
    #expect(answer.fields["access-control-allow-origin"] == "https://app.example")
    #expect(answer.fields["access-control-allow-methods"] == "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT")
  }

  @Test func pagesMaySendHeadersOfRecordsAndSeeTheAnswersFields() throws {
    var options = DoorOptions()
    options.origins = ["https://app.example"]
    let stage = try HTTPStage(options: options)
    let origin = "Origin: https://app.example"
    let asked = stage.ask(
      "OPTIONS /topics/t", "", origin,
      "Access-Control-Request-Headers: content-type,sluice-header-unit, sluice-header-bad name, x-other")
    let allowed = asked.field("Access-Control-Allow-Headers") ?? ""
    #expect(allowed.hasSuffix("Sluice-Key, Sluice-Key-Base64, sluice-header-unit"), "\(allowed)")
    // The page may read a member's name, and the time after which to retry.
    _ = stage.publish("t", "x")
    let next = stage.ask("POST /topics/t/groups/g/next?from=earliest&wait=1s", "", origin)
    #expect(next.field("Sluice-Member") != nil)
    #expect(next.field("Access-Control-Expose-Headers") == "Sluice-Member", "\(next)")
  }

  @Test func whatIsNotReadIsNotAskedFor() throws {
    let native = try NativeClient(door)
    let text = String(repeating: "x", count: 20_000)
    for round in 0..<10 {
      native.publish("t", [String](repeating: text, count: 20), from: UInt64(round * 20), stream: 1)
    }
    client.isPaused = true
    client.send("GET /topics/t?from=earliest&until=live HTTP/1.1\r\nHost: b\r\n\r\n")
    door.settle(.seconds(2))
    #expect(native.show("t").subscriptions.contains { $0.nextOffset < 150 })
    client.isPaused = false
    door.settle(.seconds(5))
    let (body, isWhole) = Self.dechunked(Self.answer(client.text).body)
    #expect(isWhole)
    #expect(payloads(body).count == 200)
  }

  @Test func aRequestThatNeverEndsIsGivenUp() {
    _ = publish("t", "x")
    client.send("POST /topics/t HTTP/1.1\r\nHost: b\r\nContent-Length: 10\r\n\r\nabc")
    door.settle(.seconds(70))
    #expect(client.text.contains("HTTP/1.1 408 "))
    #expect(client.hasEnded)
    #expect(door.broker.metrics[.connections] == 0)
  }

  @Test func aClientThatLeavesIsLeft() {
    _ = publish("t", "x")
    client.send("GET /topics/t HTTP/1.1\r\nHost: b\r\n\r\n")
    door.settle()
    #expect(door.broker.metrics[.subscriptions] == 1)
    client.abort()
    door.settle(.seconds(1))
    #expect(door.broker.metrics[.connections] == 0)
    #expect(door.broker.metrics[.subscriptions] == 0)
  }

  /// Pipelined requests, through a network that splits them at any byte.
  @Test(arguments: 1...10 as ClosedRange<UInt64>) func requestsAreServedInTheirOrder(seed: UInt64) throws {
    let door = try DoorWorld(seed: seed, [.http], conditions: SimulatedConditions())
    let client = door.connect(1)
    door.settle(.seconds(1))
    for number in 0..<20 {
      client.send("POST /topics/t HTTP/1.1\r\nHost: b\r\nContent-Length: 2\r\n\r\n\(number + 10)")
    }
    client.send("GET /topics/t?until=live&from=earliest HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n")
    door.settle(.seconds(20))
    #expect(client.hasEnded)
    let text = client.text
    for number in 0..<20 { #expect(text.contains("\"lastOffset\":\(number)}")) }
    #expect(payloads(text) == (0..<20).map { "\($0 + 10)" })
  }
}
