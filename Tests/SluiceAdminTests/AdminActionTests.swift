import SluiceAccess
import SluiceBroker
import SluiceIO
import SluiceWire
import Synchronization
import TestSupport
import Testing

@testable import SluiceAdmin

/// Visitors' changes that the listener passes on to the broker, and those that it rejects before.
@Suite struct AdminActionTests {
  /// A listener with actions enabled, and a visitor of its page.
  private final class Stage {
    let source: FixtureSource
    let server: AdminServer
    let address: String
    let token: String

    init(_ change: (inout FixtureSource.State) -> Void = { _ in }) throws {
      source = FixtureSource {
        $0.snapshot.topics = [TopicSnapshot("orders")]
        change(&$0)
      }
      var options = AdminOptions()
      options.actions = true
      options.history.length = 0
      server = try AdminServer(at: .host(Loopback.freshHost(), port: 0), source, options)
      address = server.address.description
      let page = try RawHTTP.get(address, "/").text
      let mark = "<meta name=\"sluice-token\" content=\""
      let start = try #require(page.firstRange(of: mark)).upperBound
      token = String(page[start...].prefix { $0 != "\"" })
    }

    deinit { server.stop() }

    /// The headers that a browser and the page send.
    var good: [String] {
      [
        "Origin: http://\(address)", "Sec-Fetch-Site: same-origin", "Sluice-Token: \(token)",
        "Content-Type: application/json",
      ]
    }

    func send(
      _ method: String, _ target: String, _ body: String? = nil, headers: [String]? = nil
    ) throws -> RawHTTP.Answer {
      try RawHTTP.send(address, method, target, headers: headers ?? good, body: body)
    }

    var asked: [AdministrationRequest] { source.state.withLock { $0.administered.map(\.request) } }
  }

  @Test func theBrokerIsAskedForWhatThePageWants() throws {
    let stage = try Stage()
    var settings = TopicSettings()
    settings.flow = .lossless
    settings.replayRecords = 1000
    let body = #"{"settings": {"flow": "lossless", "replay-records": 1000}}"#
    let created = try stage.send("PUT", "/api/topics/orders", body)
    #expect(created.status == 200 && created.text.contains("\"name\":\"orders\""))
    #expect(try stage.send("PUT", "/api/topics/orders").status == 200)
    #expect(try stage.send("PATCH", "/api/topics/orders", body).status == 200)
    #expect(
      try stage.send("POST", "/api/topics/orders/trim", #"{"before": 18446744073709551615}"#).status == 200)
    #expect(try stage.send("POST", "/api/topics/orders/trim", #"{"keepLast": "7"}"#).status == 200)
    let record =
      #"{"key": {"text": "k"}, "headers": [{"name": "n", "hex": "00fF"}], "payload": {"text": "é"}}"#
    let published = try stage.send("POST", "/api/topics/orders/records", record)
    #expect(published.status == 200 && published.text == "{\"done\":true}\n")
    #expect(try stage.send("POST", "/api/topics/orders/records", #"{"payload": {"hex": ""}}"#).status == 200)
    let deleted = try stage.send("DELETE", "/api/topics/orders")
    #expect(deleted.status == 200 && deleted.text == "{\"done\":true}\n")
    #expect(try stage.send("DELETE", "/api/connections/42").status == 200)
    let consumer = "/api/topics/orders/consumers/b%2Fc"
    #expect(try stage.send("POST", "\(consumer)/move", #"{"to": "offset:7"}"#).status == 200)
    #expect(try stage.send("POST", "\(consumer)/move", #"{"to": "new"}"#).status == 200)
    let refused = try stage.send("POST", "\(consumer)/move", #"{"to": "nowhere"}"#)
    #expect(refused.status == 400 && refused.text.contains("it can be new, earliest,"))
    #expect(try stage.send("DELETE", consumer).status == 200)
    #expect(
      stage.asked == [
        .createTopic(TopicCreate(topic: "orders", settings: settings)),
        .createTopic(TopicCreate(topic: "orders", settings: TopicSettings())),
        .setTopic(TopicSet(topic: "orders", settings: settings)),
        .trimTopic(TopicTrim(topic: "orders", .from(.max))),
        .trimTopic(TopicTrim(topic: "orders", .newest(7))),
        .publish(
          RecordPublication(
            topic: "orders", key: [UInt8]("k".utf8),
            headers: [RecordSnapshot.Header(name: [UInt8]("n".utf8), value: [0, 255])],
            payload: [UInt8]("é".utf8))),
        .publish(RecordPublication(topic: "orders")),
        .deleteTopic("orders"), .closeConnection(42),
        .moveCursor(CursorMove(topic: "orders", name: "b/c", to: .offset(7))),
        .moveCursor(CursorMove(topic: "orders", name: "b/c", to: .new)),
        .deleteCursor(CursorDelete(topic: "orders", name: "b/c")),
      ])
  }

  @Test func otherSitesPagesChangeNothing() throws {
    let stage = try Stage()
    let token = "Sluice-Token: \(stage.token)"
    let own = "Origin: http://\(stage.address)"
    let refused: [[String]] = [
      // A form or an image of another page, with and without the headers that old browsers omit.
      ["Origin: http://evil.example", "Sec-Fetch-Site: cross-site"], ["Origin: http://evil.example"],
      ["Origin: null"],
      ["Sec-Fetch-Site: cross-site"], [],
      // Such pages can't read the token; even with it, the origin is checked.
      [token], ["Origin: http://evil.example", token], ["Origin: null", token],
      ["Sec-Fetch-Site: cross-site", token],
      ["Sec-Fetch-Site: same-site", token], ["Sec-Fetch-Site: none", token],
      [own, "Sec-Fetch-Site: cross-site", token],
      // The page itself needs the right token.
      [own, "Sec-Fetch-Site: same-origin"], [own, "Sluice-Token:"], [own, "Sluice-Token: x"],
      [own, "Sluice-Token: \(stage.token)x"],
      [own, "Sluice-Token: \(ActionCheck().token(of: .anonymous))"],
      // A foreign host name that resolves to this address.
      ["Host: evil.example", "Origin: http://evil.example", token],
    ]
    for headers in refused {
      #expect(try stage.send("DELETE", "/api/topics/orders", headers: headers).status == 403, "\(headers)")
      let json = headers + ["Content-Type: application/json"]
      #expect(try stage.send("PUT", "/api/topics/orders", "{}", headers: json).status == 403, "\(headers)")
    }
    // Preflight requests are rejected as well.
    let preflight = ["Origin: http://evil.example", "Access-Control-Request-Method: DELETE"]
    let answer = try stage.send("OPTIONS", "/api/topics/orders", headers: preflight)
    #expect(answer.status == 405 && !answer.headers.keys.contains { $0.hasPrefix("access-control") })
    #expect(stage.asked.isEmpty)
    #expect(try stage.send("DELETE", "/api/topics/orders", headers: [own, token]).status == 200)
  }

  @Test func bodiesAreBoundedAndJSON() throws {
    let stage = try Stage()
    let long = #"{"settings": {"flow": ""# + String(repeating: "x", count: 16 << 10) + #""}}"#
    #expect(try stage.send("PUT", "/api/topics/orders", long).status == 413)
    let forms = [
      "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
      "application/jsonp",
    ]
    for type in forms {
      let headers = stage.good.dropLast() + ["Content-Type: \(type)"]
      #expect(
        try stage.send("PUT", "/api/topics/orders", "{}", headers: Array(headers)).status == 415, "\(type)")
    }
    #expect(
      try stage.send("PUT", "/api/topics/orders", "{}", headers: Array(stage.good.dropLast())).status == 415)
    let chunked = try stage.send(
      "PUT", "/api/topics/orders", headers: stage.good + ["Transfer-Encoding: chunked"])
    #expect(chunked.status == 411)
    #expect(try stage.send("DELETE", "/api/topics/orders", "{}").status == 400)
    for body in [
      "", "x", "[]", "{", "{}", #"{"settings": 7}"#, #"{"settings": {}, "more": 1}"#,
      #"{"settings": {"floww": "free"}}"#,
      #"{"settings": {"flow": "fre"}}"#, #"{"settings": {"flow": null}}"#,
      #"{"settings": {"flow": ["free"]}}"#,
      #"{"settings": {}}"#, "{\"settings\": {\"flow\": \"\u{0}\"}}", String(repeating: "[", count: 16_000),
    ] {
      #expect(try stage.send("PATCH", "/api/topics/orders", body).status == 400, "\(body.prefix(40))")
    }
    for body in [
      "{}", #"{"before": -1}"#, #"{"before": 1, "keepLast": 1}"#, #"{"before": 1.5}"#, #"{"keepLast": true}"#,
      #"{"before": 18446744073709551616}"#,
    ] {
      #expect(try stage.send("POST", "/api/topics/orders/trim", body).status == 400, "\(body)")
    }
    for body in [
      "{}", #"{"payload": "x"}"#, #"{"payload": {}}"#, #"{"payload": {"text": "x", "hex": "00"}}"#,
      #"{"payload": {"hex": "0"}}"#, #"{"payload": {"hex": "zz"}}"#,
      #"{"payload": {"text": "x"}, "offset": 1}"#,
      #"{"payload": {"text": "x"}, "key": 1}"#, #"{"payload": {"text": "x"}, "headers": [{"text": "y"}]}"#,
    ] {
      #expect(try stage.send("POST", "/api/topics/orders/records", body).status == 400, "\(body)")
    }
    #expect(stage.asked.isEmpty)
    // The connection continues after a body that was read.
    let client = try RawHTTP(stage.address)
    for _ in 0..<2 {
      try client.request("/api/topics/orders", method: "PUT", headers: stage.good + ["Content-Length: 16"])
      try client.send(#"{"settings": {}}"#)
      #expect(try client.answer().status == 200)
    }
    #expect(stage.asked.count == 2)
  }

  @Test func aBodyThatDoesntComeIsntWaitedForForEver() throws {
    var options = AdminOptions()
    options.actions = true
    options.history.length = 0
    options.limits.head = 1
    let source = FixtureSource()
    let server = try AdminServer(at: .host(Loopback.freshHost(), port: 0), source, options)
    defer { server.stop() }
    let client = try RawHTTP(server.address.description)
    let headers = [
      "Origin: http://\(server.address)", "Sluice-Token: x", "Content-Type: application/json",
      "Content-Length: 100",
    ]
    try client.request("/api/topics/orders", method: "PUT", headers: headers)
    try client.send("{")
    try client.waitForClose()
    #expect(source.state.withLock { $0.administered.isEmpty })
  }

  @Test(arguments: [
    (ErrorCode.permissionDenied, 403), (.unknownTopic, 404), (.unknownConnection, 404), (.topicExists, 409),
    (.topicEnded, 409), (.keyRequired, 400), (.recordTooLarge, 400), (.invalidSetting, 400),
    (.topicMoved, 421), (.limitReached, 429), (.storageFull, 507),
    (.storageFailed, 503),
  ])
  func theBrokersRefusalIsTold(code: ErrorCode, status: Int) throws {
    let stage = try Stage { $0.refusal = WireError(code, "because") }
    let answer = try stage.send("DELETE", "/api/topics/orders")
    #expect(answer.status == status && answer.text.contains("because"))
  }

  @Test func offThereAreNoActionsAndNoToken() throws {
    let source = FixtureSource()
    let server = try AdminServer(at: .host(Loopback.freshHost(), port: 0), source, AdminOptions())
    defer { server.stop() }
    let address = server.address.description
    #expect(try RawHTTP.get(address, "/").text.contains("<meta name=\"sluice-token\" content=\"\">"))
    let headers = ["Origin: http://\(address)", "Sluice-Token: x"]
    let answer = try RawHTTP.send(address, "DELETE", "/api/topics/orders", headers: headers)
    #expect(answer.status == 405 && answer.text.contains("--admin-actions is off"))
    #expect(source.state.withLock { $0.administered.isEmpty })
  }
}
