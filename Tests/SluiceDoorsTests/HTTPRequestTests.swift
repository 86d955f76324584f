import SluiceAccess
import SluiceDoors
import SluiceIO
import SluiceTLS
import SluiceWire
import TestSupport
import Testing

/// Requests and replies over HTTP.
@Suite struct HTTPRequestTests {
  private let door: DoorWorld

  init() throws {
    door = try DoorWorld([.http, .mqtt])
  }

  private func begin(_ line: String, _ body: String = "", _ fields: String = "") -> ByteClient {
    let client = door.connect(1)
    send(client, line, body, fields + "Connection: close\r\n")
    return client
  }

  private func send(_ client: ByteClient, _ line: String, _ body: String = "", _ fields: String = "") {
    client.send("\(line) HTTP/1.1\r\nHost: x\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
    door.settle()
  }

  private func ask(_ line: String, _ body: String = "", _ fields: String = "") -> String {
    begin(line, body, fields).text
  }

  /// The addresses for replies that a response names.
  private func addresses(_ text: String) -> [String] {
    text.split(separator: "\"reply\":\"").dropFirst().map { String($0.prefix { $0 != "\"" }) }
  }

  private func status(_ text: String) -> String { String(text.dropFirst(9).prefix(3)) }

  @Test func aReplyByHTTPAnswersTheRequest() throws {
    let responder = begin("GET /topics/prices/requests")
    let requester = begin(
      "POST /topics/prices/request", "ACME",
      "Sluice-Key: k\r\nSluice-Header-Color: red\r\nContent-Type: application/x-ndjson\r\n")
    let request = responder.text
    #expect(request.contains("\"payload\":\"ACME\"") && request.contains("\"key\":\"k\""), "\(request)")
    #expect(request.contains("{\"name\":\"color\",\"value\":\"red\"}"), "\(request)")
    let address = try #require(addresses(request).first)
    #expect(address.hasPrefix("/replies/_inbox."))
    #expect(requester.text.isEmpty)
    let fields = "Content-Type: text/plain\r\nSluice-Key: K\r\nSluice-Header-Unit: EUR\r\n"
    #expect(status(ask("POST \(address)", "42", fields)) == "204")
    let answer = requester.text
    #expect(status(answer) == "200")
    #expect(answer.hasSuffix("\r\n\r\n42"))
    let expected = [
      "Content-Type: text/plain", "Sluice-Key: K", "Sluice-Header-unit: EUR", "Content-Length: 2",
    ]
    for field in expected {
      #expect(answer.contains("\r\n\(field)\r\n"), "\(answer)")
    }
    // No client waits for a second reply.
    let late = ask("POST \(address)", "43")
    #expect(status(late) == "410", "\(late)")
  }

  @Test func aConnectionAsksAgainAndAgain() throws {
    let responder = begin("GET /topics/t/requests")
    let client = door.connect(1)
    for number in 1...5 {
      send(client, "POST /topics/t/request", "\(number)")
      let address = try #require(addresses(responder.text).last)
      // A second reply to an earlier request isn't the response to this one.
      if number > 1 { _ = ask("POST \(addresses(responder.text)[0])", "late") }
      #expect(status(ask("POST \(address)", "reply \(number)")) == "204")
      let answer = String(decoding: client.take(), as: UTF8.self)
      #expect(answer.hasSuffix("\r\n\r\nreply \(number)"), "\(answer)")
    }
    #expect(addresses(responder.text).count == 5)
  }

  @Test func aResponderThatHasNoReplySaysWhy() throws {
    let responder = begin("GET /topics/t/requests")
    let requester = begin("POST /topics/t/request", "x")
    let address = try #require(addresses(responder.text).first)
    _ = ask("POST \(address)", "", "Sluice-Header-Reply-Error: out of order\r\n")
    #expect(status(requester.text) == "502")
    #expect(requester.text.contains("the request couldn't be answered: out of order"))
  }

  @Test func withoutAResponderNothingIsPublished() throws {
    #expect(status(ask("POST /topics/t/request", "x")) == "503")
    _ = ask("POST /topics/t", "record")
    let answer = ask("POST /topics/t/request", "x")
    #expect(status(answer) == "503" && answer.contains("no subscriber is attached to topic t"), "\(answer)")
    #expect(try NativeClient(door).show("t").summary.nextOffset == 1)
  }

  @Test func aRequestWaitsAsLongAsItSays() throws {
    let responder = begin("GET /topics/t/requests")
    let client = door.connect(1)
    send(client, "POST /topics/t/request?timeout=2s", "one")
    door.settle(.milliseconds(1500))
    #expect(client.text.isEmpty)
    door.settle(.seconds(1))
    let answer = String(decoding: client.take(), as: UTF8.self)
    #expect(status(answer) == "504" && answer.contains("no reply came within"), "\(answer)")
    // The connection stays open. A late reply is no response to a later request.
    send(client, "POST /topics/t/request", "two")
    let requests = addresses(responder.text)
    _ = ask("POST \(requests[0])", "late")
    #expect(client.text.isEmpty)
    _ = ask("POST \(requests[1])", "in time")
    #expect(client.text.hasSuffix("in time"))
  }

  @Test func whatARequestCannotHaveIsRefused() {
    for (line, fields) in [
      ("POST /topics/t/request?timeout=0s", ""), ("POST /topics/t/request?timeout=301s", ""),
      ("POST /topics/t/request?timeout=x", ""),
      ("POST /topics/t/request", "Sluice-Header-Reply-To: elsewhere\r\n"),
      ("POST /topics/t/request", "Sluice-Header-Correlation-Id: 7\r\n"),
      ("POST /topics/t/request", "Idempotency-Key: 7\r\n"), ("POST /replies/_inbox.a/xyz", ""),
      ("POST /replies/_inbox.a/123", ""), ("POST /replies/_inbox.a/+1", ""), ("POST /replies/a%20b/12", ""),
    ] {
      let answer = ask(line, "x", fields)
      #expect(status(answer) == "400", "\(line): \(answer)")
    }
    #expect(status(ask("GET /topics/t/request")) == "405")
    #expect(status(ask("POST /topics/t/requests")) == "405")
    #expect(status(ask("GET /replies/_inbox.a/12")) == "405")
    #expect(status(ask("POST /replies/_inbox.a/12")) == "410")
  }

  @Test func aHeaderThatNoFieldCanHaveIsLeftOut() throws {
    let responder = try NativeClient(door)
    responder.send(Subscribe(topic: "t", start: .new, grantedThrough: 10), stream: 1)
    responder.settle()
    let requester = begin("POST /topics/t/request", "x")
    let request = try #require(responder.records(stream: 1).first)
    var batch = BatchBuilder()
    let headers = [
      ("correlation-id", request.headers["correlation-id"] ?? ""), ("split", "a\r\nSet-Cookie: b"),
      ("with space", "x"), ("content-type", "text/html\r\nX: y"), ("good", "yes"),
    ]
    try batch.append(
      key: nil, headers: headers.map { (Array($0.0.utf8), Array($0.1.utf8)) },
      payload: UnsafeRawBufferPointer(start: nil, count: 0))
    responder.publish(request.headers["reply-to"] ?? "", batch, stream: 2)
    door.settle()
    let answer = requester.text
    #expect(status(answer) == "200")
    #expect(answer.contains("Sluice-Header-good: yes"))
    for text in ["Cookie", "X: y", "with space"] { #expect(!answer.contains(text), "\(answer)") }
  }

  @Test func aGroupMemberReplies() throws {
    _ = ask("PUT /topics/t")
    let waiting = begin("POST /topics/t/groups/g/next?wait=60s")
    door.settle(.milliseconds(300))
    let requester = begin("POST /topics/t/request", "work")
    let address = try #require(addresses(waiting.text).first)
    _ = ask("POST \(address)", "done")
    #expect(requester.text.hasSuffix("done"))
  }

  @Test func aClientThatIsGoneLeavesNoRequest() throws {
    let responder = begin("GET /topics/t/requests")
    let requester = begin("POST /topics/t/request?timeout=60s", "x")
    requester.abort()
    door.settle(.seconds(20))
    let address = try #require(addresses(responder.text).first)
    #expect(status(ask("POST \(address)", "late")) == "410")
  }
}

/// Requests and replies over HTTP by clients with permissions.
@Suite struct HTTPRequestAccessTests {
  private let door: DoorWorld

  init() throws {
    var policy = AccessPolicy()
    for (name, rights, pattern) in [
      ("asker", Rights.publish, "prices"), ("replier", [.subscribe, .create], "prices"),
      ("stranger", .publish, "other"),
    ] {
      policy.users[name] = PasswordHash(of: "secret", cost: .init(logN: 4, r: 1, p: 1))
      policy.permissions[name] = Permissions([Permissions.Rule(rights, on: try TopicPattern(pattern))])
    }
    door = try DoorWorld([.http], access: policy)
  }

  private func begin(_ user: String, _ line: String, _ body: String = "") -> ByteClient {
    let client = door.connect(1)
    // Base64 of "asker:secret" and so on.
    let proof = [
      "asker": "YXNrZXI6c2VjcmV0", "replier": "cmVwbGllcjpzZWNyZXQ=", "stranger": "c3RyYW5nZXI6c2VjcmV0",
    ][user, default: ""]
    client.send(
      "\(line) HTTP/1.1\r\nHost: x\r\nAuthorization: Basic \(proof)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    )
    door.settle(.milliseconds(300))
    return client
  }

  /// A requester needs the publish permission for the topic, a responder the subscribe permission. Neither needs a permission for the inbox.
  @Test func requestsNeedThePermissionsOfTheirTopics() throws {
    #expect(begin("asker", "GET /topics/prices/requests").text.hasPrefix("HTTP/1.1 403"))
    let responder = begin("replier", "GET /topics/prices/requests")
    #expect(responder.text.hasPrefix("HTTP/1.1 200"))
    #expect(begin("stranger", "POST /topics/prices/request", "x").text.hasPrefix("HTTP/1.1 403"))
    #expect(begin("replier", "POST /topics/prices/request", "x").text.hasPrefix("HTTP/1.1 403"))
    let requester = begin("asker", "POST /topics/prices/request", "x")
    let parts = responder.text.split(separator: "\"reply\":\"")
    try #require(parts.count == 2)
    let address = parts[1].prefix { $0 != "\"" }
    // Knowing an inbox's name gives no permission to an identity that subscribes to nothing.
    #expect(begin("stranger", "POST \(address)", "y").text.hasPrefix("HTTP/1.1 403"))
    #expect(begin("replier", "POST \(address)", "y").text.hasPrefix("HTTP/1.1 204"))
    #expect(requester.text.hasSuffix("\r\n\r\ny"))
  }
}
