import SluiceAccess
import SluiceBroker
import SluiceDoors
import SluiceIO
import SluiceTLS
import SluiceWire
import TestSupport
import Testing

/// Signed links of the HTTP gateway.
@Suite struct HTTPLinkTests {
  private let stage: HTTPStage
  private let policy: AccessPolicy
  private static let alice = "Authorization: Basic \(Base64Text.standard.encode(Array("alice:pass12".utf8)))"
  private static let bob = "Authorization: Basic \(Base64Text.standard.encode(Array("bobby:pass12".utf8)))"

  init() throws {
    var policy = AccessPolicy()
    let hash = try #require(PasswordHash(of: "pass12", cost: Scrypt.Cost(logN: 4, r: 1, p: 1)))
    policy.users = ["alice": hash, "bobby": hash]
    policy.permissions["alice"] = Permissions([Permissions.Rule(.all, on: try TopicPattern("a.>"))])
    policy.permissions["bobby"] = Permissions([Permissions.Rule(.subscribe, on: try TopicPattern("b.>"))])
    self.policy = policy
    var options = DoorOptions()
    options.longestLinkTime = .seconds(600)
    stage = try HTTPStage(options: options, access: policy)
    #expect(stage.publish("a.x", "secret", Self.alice).status == 200)
  }

  private func link(_ parameters: String, _ user: String = alice) throws -> String {
    let answer = stage.ask("POST /links?\(parameters)", "", user)
    #expect(answer.status == 201, "\(answer.text)")
    #expect(answer.field("Cache-Control") == "no-store")
    let parts = answer.body.split(separator: "\"", omittingEmptySubsequences: false)
    #expect(parts[1] == "url")
    return String(parts[3])
  }

  private func get(_ target: String, _ fields: String...) -> HTTPStage.Answer {
    HTTPStage.Answer(text: stage.begin("GET \(target)", "", fields).text)
  }

  @Test func aReaderNeedsNoAuthorization() throws {
    let url = try link("topic=a.x&operation=read")
    #expect(url.hasPrefix("/topics/a.x?link=link1."))
    let answer = get(url + "&until=live", "Accept: text/event-stream")
    #expect(answer.status == 200 && answer.body.contains("\"payload\":\"secret\""))
    #expect(get("/topics/a.x?until=live").status == 401)
    #expect(stage.ask("HEAD \(url)").status == 200)
    let name = try link("topic=a.L%2520x&operation=publish")
    #expect(name.hasPrefix("/topics/a.L%2520x?link="))
    #expect(stage.ask("POST \(name)", "x").status == 200)
  }

  @Test func aPublisherNeedsNoneEither() throws {
    let url = try link("topic=a.new&operation=publish&for=10s")
    #expect(stage.ask("POST \(url)&lines", "one\ntwo\n").body.contains("\"records\":2"))
    #expect(get(url).status == 403)
    #expect(get("/topics/a.new?until=live", Self.alice).body.contains("two"))
  }

  @Test func aLinkIsForNothingElse() throws {
    let url = try link("topic=a.x&operation=read")
    let credentials = url.drop { $0 != "?" }
    for (line, part) in [
      ("GET /topics/a.y\(credentials)", "reading a.x alone"), ("GET /topics/a.*\(credentials)", "alone"),
      ("POST \(url)", "another link for POST"), ("DELETE \(url)", "another link for DELETE"),
      ("PUT \(url)", "another link"), ("GET /topics\(credentials)", "this address"),
      ("GET /topics/a.x/settings\(credentials)", "this address"),
      ("POST /links\(credentials)", "this address"),
      ("POST /topics/a.x/groups/g/next\(credentials)", "this address"),
      ("POST /topics/a.x/request\(credentials)", "this address"),
      ("GET /topics/a.x/requests\(credentials)", "this address"), ("GET \(url)&cursor=c", "durable cursor"),
    ] {
      let answer = stage.ask(line)
      #expect(answer.status == 403 && answer.body.contains(part), "\(line): \(answer.text)")
    }
    #expect(get(url, Self.alice).status == 400)
    for text in ["", "x", "link1.x.y", "eyJ.x.y"] {
      let answer = get("/topics/a.x?link=\(text)")
      #expect(answer.status == 401 && answer.body.contains("isn't a signed link"), "\(text)")
    }
    // It is no token, by HTTP and by other protocols.
    let bearer = "Authorization: Bearer \(credentials.dropFirst(6))"
    #expect(get("/topics/a.x?until=live", bearer).status == 401)
    let native = stage.door.connect(0)
    let hello = Hello(
      maximumFrame: 1 << 20, keepalive: 0, name: "", credentials: .token(String(credentials.dropFirst(6))))
    native.send(hello.encoded(stream: 0))
    stage.door.settle(.seconds(1))
    #expect(native.hasEnded && native.text.contains("signed links are addresses for HTTP"))
  }

  @Test func timeAndAlterationsEndALink() throws {
    let url = try link("topic=a.x&operation=read&for=5s")
    #expect(get(url + "&until=live").status == 200)
    let altered = get(String(url.dropLast()) + (url.last == "A" ? "Q" : "A") + "&until=live")
    #expect(altered.status == 401 && altered.body.contains("it was altered"), "\(altered.text)")
    stage.door.settle(.seconds(6))
    let late = get(url + "&until=live")
    #expect(late.status == 401 && late.body.contains("the link has expired"), "\(late.text)")
    let standard = try link("topic=a.x&operation=read")
    stage.door.settle(.seconds(50))
    #expect(get(standard + "&until=live").status == 200)
    stage.door.settle(.seconds(15))
    #expect(get(standard + "&until=live").status == 401)
  }

  @Test func requestsForLinksAreChecked() throws {
    for (line, status, part) in [
      ("POST /links", 400, "topic=NAME and operation=read"), ("POST /links?topic=a.x", 400, "operation"),
      ("POST /links?topic=a.x&operation=delete", 400, "read or publish"),
      ("POST /links?topic=a.*&operation=read", 400, ""),
      ("POST /links?topic=a.x&operation=read&for=0s", 400, "10m"),
      ("POST /links?topic=a.x&operation=read&for=11m", 400, "10m at most"),
      ("POST /links?topic=a.x&operation=read&foo=1", 400, "there is no parameter 'foo'"),
      ("POST /links?topic=b.x&operation=read", 403, "may not subscribe"), ("GET /links", 405, "POST"),
    ] {
      let answer = stage.ask(line, "", Self.alice)
      #expect(answer.status == status && answer.body.contains(part), "\(line): \(answer.text)")
    }
    #expect(stage.ask("POST /links?topic=a.x&operation=read").status == 401)
    let open = try HTTPStage()
    #expect(open.ask("POST /links?topic=a.x&operation=read").status == 409)
  }

  @Test func aUserThatIsRevokedHasNoLinks() throws {
    let url = try link("topic=a.x&operation=read")
    let stream = stage.begin("GET \(url)", "", ["Accept: text/event-stream"])
    #expect(stream.text.contains("secret") && !stream.hasEnded)
    var next = policy
    next.permissions["alice"] = Permissions([Permissions.Rule(.publish, on: try TopicPattern("a.>"))])
    stage.door.broker.updateAccess(next)
    stage.door.settle(.seconds(1))
    #expect(stream.hasEnded)
    let denied = get(url + "&until=live")
    #expect(denied.status == 403, "\(denied.text)")
    next.users["alice"] = nil
    stage.door.broker.updateAccess(next)
    stage.door.settle(.seconds(1))
    let revoked = get(url + "&until=live")
    #expect(revoked.status == 401 && revoked.body.contains("may no longer be connected"), "\(revoked.text)")
  }

  /// Browsers send requests of a page with different credentials on one connection.
  @Test func requestsOfSeveralIdentitiesShareAConnection() throws {
    let url = try link("topic=a.x&operation=read")
    let client = stage.door.connect(1)
    func ask(_ line: String, _ fields: String...) -> HTTPStage.Answer {
      let end = "Content-Length: 0\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
      client.send("\(line) HTTP/1.1\r\nHost: b\r\n\(end)")
      stage.door.settle(.milliseconds(300))
      return HTTPStage.Answer(text: String(decoding: client.take(), as: UTF8.self))
    }
    #expect(ask("GET /topics", Self.alice).body.contains("a.x"))
    #expect(ask("GET \(url)&until=live").body.contains("secret"))
    #expect(ask("GET /topics", Self.bob).body.contains("a.x") == false)
    #expect(ask("GET /topics/a.x?until=live", Self.bob).status == 403)
    #expect(ask("GET \(url)&until=live").body.contains("secret"))
    #expect(ask("GET /topics").status == 401)
    #expect(client.hasEnded)
  }
}
