import Glibc
import TestSupport
import Testing

/// Changes that visitors of the admin listener make at a real broker. The same permissions, audit and metrics apply as for clients.
@Suite(.onItsOwnThread) struct AdminActionProcessTests {
  private final class Visitor {
    let address: String
    let credentials: [String]
    private var token = ""

    init(_ address: String, _ credentials: [String] = []) throws {
      self.address = address
      self.credentials = credentials
      let page = try RawHTTP.get(address, "/", headers: credentials)
      let mark = "<meta name=\"sluice-token\" content=\""
      guard page.status == 200, let start = page.text.firstRange(of: mark)?.upperBound else { return }
      token = String(page.text[start...].prefix { $0 != "\"" })
    }

    func send(_ method: String, _ target: String, _ body: String? = nil, token: String? = nil) throws
      -> RawHTTP.Answer
    {
      let headers = [
        "Origin: http://\(address)", "Sluice-Token: \(token ?? self.token)", "Content-Type: application/json",
      ]
      return try RawHTTP.send(address, method, target, headers: headers + credentials, body: body)
    }

    var ownToken: String { token }
  }

  @Test func topicsAndConnectionsAreAdministered() throws {
    let directory = try TemporaryDirectory()
    let broker = try BrokerProcess(
      "--admin", "\(Loopback.freshHost()):0", "--admin-actions", "on", "--data", directory.path, "--audit",
      "on")
    let visitor = try Visitor(try #require(broker.adminAddress))
    let created = try visitor.send(
      "PUT", "/api/topics/orders", #"{"settings": {"storage": "durable", "replay-records": 100}}"#)
    #expect(created.status == 200 && created.text.contains(#""replay-records":"100""#))
    // Creating it with other settings conflicts, as in the protocol.
    #expect(
      try visitor.send("PUT", "/api/topics/orders", #"{"settings": {"flow": "lossless"}}"#).status == 409)
    let set = try visitor.send("PATCH", "/api/topics/orders", #"{"settings": {"replay-age": "48h"}}"#)
    #expect(set.status == 200 && set.text.contains(#""replay-age":"2d""#))
    #expect(
      try visitor.send("PATCH", "/api/topics/orders", #"{"settings": {"storage": "memory"}}"#).status == 400)
    #expect(
      try visitor.send("PATCH", "/api/topics/none", #"{"settings": {"replay-age": "48h"}}"#).status == 404)
    try broker.run("pub", "orders", "--quiet", "a", "b", "c")
    let trimmed = try visitor.send("POST", "/api/topics/orders/trim", #"{"keepLast": 1}"#)
    #expect(trimmed.status == 200 && trimmed.text.contains(#""firstOffset":2"#))
    #expect(try visitor.send("POST", "/api/topics/orders/trim", #"{"before": 9}"#).status == 400)
    #expect(try broker.run("sub", "orders", "--until-live").standardOutput.text == "c\n")

    let cursor = "/api/topics/orders/consumers/billing"
    #expect(try visitor.send("POST", "\(cursor)/move", #"{"to": "time:2020-01-01"}"#).status == 200)
    #expect(try visitor.send("POST", "\(cursor)/move", #"{"to": "offset:3"}"#).status == 200)
    #expect(try visitor.send("POST", "\(cursor)/move", #"{"to": "nowhere"}"#).status == 400)
    #expect(try visitor.send("POST", "\(cursor)/move", #"{"to": "new", "from": "new"}"#).status == 400)
    let moved = try RawHTTP.get(visitor.address, "/api/consumers?topic=orders").text
    #expect(moved.contains(#""name":"billing","kind":"cursor","nextOffset":3"#))
    #expect(try visitor.send("DELETE", cursor).status == 200)
    #expect(try visitor.send("DELETE", cursor).status == 404)
    #expect(try visitor.send("DELETE", "/api/topics/none/consumers/billing").status == 404)

    let subscriber = try broker.sluice("sub", "orders")
    try subscriber.standardOutput.wait(bytes: 2)
    let listed = try RawHTTP.get(visitor.address, "/api/connections").text
    let number = try #require(listed.firstRange(of: "\"id\":")).upperBound
    let connection = listed[number...].prefix { $0.isNumber }
    #expect(try visitor.send("DELETE", "/api/connections/\(connection)").status == 200)
    try eventually("the subscriber is told") { subscriber.standardError.text.contains("operator") }
    subscriber.stop()
    #expect(try visitor.send("DELETE", "/api/connections/99999").status == 404)

    #expect(try visitor.send("DELETE", "/api/topics/orders").status == 200)
    #expect(try visitor.send("DELETE", "/api/topics/orders").status == 404)
    let metrics = try RawHTTP.get(visitor.address, "/metrics").text
    for line in [
      "sluice_broker_setting_changes_total 1", "sluice_broker_trims_total 1",
      "sluice_broker_records_trimmed_total 2",
      "sluice_broker_closed_by_operators_total 1",
    ] {
      #expect(metrics.contains("\(line)\n"), "\(line)")
    }
    for action in ["create-topic", "set-topic", "trim-topic", "close-connection", "delete-topic"] {
      try eventually("the audit has \(action)") {
        broker.process.standardError.lines.contains { line in
          ["action=\(action)", "outcome=done", "admin listener"].allSatisfy { line.contains($0) }
        }
      }
    }
    #expect(
      broker.process.standardError.lines.contains {
        $0.contains("action=set-topic") && $0.contains("outcome=refused")
      })
  }

  @Test func permissionsAreThoseOfClients() throws {
    let stage = try AdminAccessTests.Stage(
      permissions: "alice admin >\nbob admin >\nbob all jobs.>\n", "--admin-actions", "on")
    let alice = try Visitor(stage.address, [AdminAccessTests.header("alice", "alice's secret")])
    let bob = try Visitor(stage.address, [AdminAccessTests.header("bob", "bob's secret")])
    #expect(alice.ownToken != bob.ownToken && !alice.ownToken.isEmpty)
    // Alice has admin rights but may not create topics; bob may create topics under `jobs`.
    #expect(try alice.send("PUT", "/api/topics/jobs.a").status == 403)
    #expect(try bob.send("PUT", "/api/topics/orders").status == 403)
    #expect(try bob.send("PUT", "/api/topics/jobs.a").status == 200)
    // Another visitor's token is rejected, and so is a token without credentials.
    #expect(try alice.send("DELETE", "/api/topics/jobs.a", token: bob.ownToken).status == 403)
    let stranger = try Visitor(stage.address)
    #expect(try stranger.send("DELETE", "/api/topics/jobs.a", token: alice.ownToken).status == 401)
    #expect(try alice.send("DELETE", "/api/topics/jobs.a").status == 200)
    // Log lines appear later than responses.
    for parts in [
      ["outcome=denied", "identity=alice", "jobs.a"],
      ["action=delete-topic", "identity=alice", "outcome=done"],
    ] {
      try eventually("the audit has \(parts)") {
        stage.broker.process.standardError.lines.contains { line in parts.allSatisfy { line.contains($0) } }
      }
    }
  }
}
