import SluiceAccess
import SluiceBroker
import SluiceDoors
import SluiceTLS
import SluiceWire
import Testing

/// The response to HEAD is the head of the response to GET. HEAD has no other effect.
@Suite struct HTTPHeadTests {
  private static func head(_ answer: HTTPStage.Answer) -> [String] {
    let lines = answer.text.firstRange(of: "\r\n\r\n").map { answer.text[..<$0.lowerBound] } ?? "no head"
    return lines.split(separator: "\r\n").map(String.init).filter { !$0.hasPrefix("Date:") }
  }

  @Test(arguments: [
    "/topics", "/topics?limit=1", "/topics?limit=0", "/topics/t/settings", "/topics/missing/settings",
    "/topics/t?until=live", "/topics/t?count=1&from=earliest", "/topics/missing", "/topics/t?until=never",
    "/topics/t%2Fx", "/topics/%3E?until=live", "/topics/a%3E", "/topics/t/requests?count=1&from=earliest",
    "/topics/t/trim", "/nothing", "/topics/t?cursor=c&until=live&from=earliest",
  ])
  func theHeadIsThatOfGET(target: String) throws {
    for field in ["Accept: */*", "Accept: text/event-stream", "Accept: application/octet-stream"] {
      // Each request has a broker of its own, since GET may create a cursor.
      let answers = try ["GET", "HEAD"].map { method in
        let stage = try HTTPStage()
        _ = stage.publish("t", "1")
        return stage.ask("\(method) \(target)", "", field)
      }
      #expect(answers[1].body == "")
      let (get, head) = (Self.head(answers[0]), Self.head(answers[1]))
      guard target != "/topics/t/trim" else {
        #expect(head.first == "HTTP/1.1 405 Method Not Allowed")
        continue
      }
      #expect(head == get, "\(target)")
    }
  }

  @Test func aConnectionGoesOnBehindHEAD() throws {
    let stage = try HTTPStage()
    _ = stage.publish("t", "1")
    let client = stage.door.connect(1)
    for target in ["/topics", "/topics/t", "/topics/missing", "/topics/%3E"] {
      client.send("HEAD \(target) HTTP/1.1\r\nHost: b\r\n\r\n")
    }
    client.send("GET /topics/t/settings HTTP/1.1\r\nHost: b\r\n\r\n")
    stage.door.settle()
    let statuses = client.text.split(separator: "\r\n").filter { $0.hasPrefix("HTTP/1.1") }
    #expect(statuses.map { $0.dropFirst(9).prefix(3) } == ["200", "200", "404", "200", "200"])
    #expect(client.text.hasSuffix("}\n") && client.text.ranges(of: "{\"topic\"").count == 1, "\(client.text)")
  }

  /// If HEAD subscribed and left again, the topic would restart, and the cursor and the topic for requests would be created.
  @Test func HEADHasNoEffects() throws {
    let stage = try HTTPStage()
    #expect(stage.ask("PUT /topics/t?scope=while-connected").status < 300)
    _ = stage.publish("t", "1")
    let before = stage.ask("GET /topics/t/settings").body
    #expect(stage.ask("HEAD /topics/t?cursor=c").status == 200)
    #expect(stage.ask("HEAD /topics/t").status == 200)
    #expect(stage.ask("GET /topics/t/settings").body == before)
    #expect(stage.ask("HEAD /topics/new/requests").status == 200)
    #expect(stage.ask("GET /topics/new/settings").status == 404)
  }

  @Test func HEADTellsNoMoreThanGET() throws {
    var policy = AccessPolicy()
    policy.users["u"] = PasswordHash(of: "p", cost: .init(logN: 4, r: 1, p: 1))
    policy.permissions["u"] = Permissions([
      Permissions.Rule([.publish, .create], on: try TopicPattern("w.>")),
      Permissions.Rule([.subscribe], on: try TopicPattern("r.>")),
    ])
    let user = "Authorization: Basic dTpw"
    let stage = try HTTPStage(access: policy)
    _ = stage.publish("w.t", "1", user)
    for target in ["w.t", "other", "other.missing", "r.missing", "r.missing/requests", "w.t/requests"] {
      let answers = ["GET", "HEAD"].map { stage.ask("\($0) /topics/\(target)", "", user).status }
      #expect(answers[0] == answers[1], "\(target): \(answers)")
      #expect(answers[0] == (target.hasPrefix("r.") ? 404 : 403), "\(target)")
    }
    #expect(stage.ask("HEAD /topics/r.t").status == 401)
  }

  /// This holds for a malformed request too: a client takes bytes after the head for its next response.
  @Test(arguments: [
    "/topics HTTP/1.0\r\nHost: b\r\nHost: b\r\n\r\n", "/topics HTTP/2.0\r\nHost: b\r\n\r\n",
    "/topics HTTP/1.1\r\n\r\n",
    "/topics HTTP/1.1\r\nHost: b\r\nHost: c\r\n\r\n", "/topics HTTP/1.1\r\nHost\r\n\r\n", "/topics\r\n\r\n",
    "/topics HTTP/1.1\r\nHost: b\r\nContent-Length: x\r\n\r\n", "/topics HTTP/1.1\n\n",
    "/topics HTTP/1.1\r\nHost: b\r\nOrigin: https://evil.example\r\n\r\n",
    "/topics?a=%ff HTTP/1.1\r\nHost: b\r\n\r\n", "/\(String(repeating: "a", count: 9_000))",
    "/topics HTTP/1.1\r\nHost: b\r\n",
  ])
  func aHEADThatCannotBeReadIsAnsweredWithoutABody(rest: String) throws {
    let answers = try ["GET", "HEAD"].map { method in
      let stage = try HTTPStage()
      let client = stage.door.connect(1)
      client.send("\(method) \(rest)")
      // The last request isn't complete, so it ends with its time limit.
      stage.door.settle(.seconds(61))
      #expect(client.hasEnded)
      return HTTPStage.Answer(text: client.text)
    }
    #expect(answers[0].status >= 400 && answers[0].status == answers[1].status, "\(answers)")
    #expect(!answers[0].body.isEmpty)
    #expect(answers[1].text.hasSuffix("\r\n\r\n") && answers[1].body.isEmpty, "\(answers[1])")
  }

  @Test(arguments: [false, true]) func aHEADForWhichThereIsNoConnectionIsAnsweredWithoutABody(isSlow: Bool)
    throws
  {
    let stage = try HTTPStage { $0.limits.connectionsPerAddress = 1 }
    #expect(stage.begin("GET /topics/t/requests").text.hasPrefix("HTTP/1.1 200"))
    let answers = ["GET", "HEAD"].map { method in
      let client = stage.door.connect(1)
      let request = Array("\(method) /topics HTTP/1.1\r\nHost: b\r\n\r\n".utf8)
      for byte in isSlow ? request.map({ [$0] }) : [request] {
        client.send(byte)
        stage.door.settle()
      }
      #expect(client.hasEnded)
      return HTTPStage.Answer(text: client.text)
    }
    for answer in answers {
      #expect(answer.status == 429 && answer.text.ranges(of: "HTTP/1.1").count == 1, "\(answer)")
    }
    #expect(answers[0].body.contains("too-many-connections"))
    #expect(answers[1].text.hasSuffix("\r\n\r\n") && answers[1].body.isEmpty, "\(answers[1])")
  }
}
