import SluiceBroker
import SluiceIO
import TestSupport
import Testing

@testable import SluiceAdmin

/// Limits of the work that visitors may cause in the listener.
@Suite struct AdminLimitTests {
  private func server(_ change: (inout AdminLimits) -> Void) throws -> AdminServer {
    var options = AdminOptions()
    change(&options.limits)
    return try AdminServer(at: .host(Loopback.freshHost(), port: 0), FixtureSource(), options)
  }

  private func get(_ server: AdminServer, _ target: String) throws -> RawHTTP.Answer {
    try RawHTTP.get(server.address.description, target)
  }

  private func watcher(_ server: AdminServer) throws -> (connection: RawHTTP, status: Int) {
    let connection = try RawHTTP(server.address.description)
    try connection.request("/api/events")
    return (connection, try connection.answer(hasBody: false).status)
  }

  @Test func whoCannotWatchIsToldSoAndCounted() throws {
    let server = try server { $0.watchers = 1 }
    defer { server.stop() }
    let first = try watcher(server)
    #expect(first.status == 200)
    for _ in 0..<2 { #expect(try watcher(server).status == 503) }
    #expect(try get(server, "/metrics").text.contains("\nsluice_admin_refused_watchers_total 2\n"))
    withExtendedLifetime(first) {}
  }

  @Test func whoFindsNoRoomWaitsForIt() throws {
    let server = try server { $0.connections = 1 }
    defer { server.stop() }
    // Keeps its connection as long as it wants.
    let first = try watcher(server)
    let second = try RawHTTP(server.address.description)
    try second.request("/healthz")
    #expect(!second.socket.wait(until: Deadline(in: 0.3)))
    first.connection.socket.close()
    #expect(try second.answer().status == 200)
  }

  @Test func noListIsLongerThanItMayBe() throws {
    func route(_ target: String, _ change: (inout AdminLimits) -> Void) throws -> Route {
      var limits = AdminLimits()
      change(&limits)
      var request = AdminRequest()
      request.method = "GET"
      request.target = target
      return try Route(request, limits)
    }
    #expect(try route("/api/topics") { $0.topics = 3 } == .topics(after: "", limit: 3))
    #expect(try route("/api/connections") { $0.listedConnections = 2 } == .connections(filter: "", limit: 2))
    #expect(
      try route("/api/topics/t/records?count=5") { $0.records = 5 }
        == .records(topic: "t", RecordQuery(count: 5)))
    for target in ["/api/topics?limit=6", "/api/connections?limit=6", "/api/topics/t/records?count=6"] {
      #expect(throws: AdminProblem.self, "\(target)") {
        try route(target) { ($0.topics, $0.listedConnections, $0.records) = (5, 5, 5) }
      }
    }
    // An invalid limit is replaced by the lowest valid one.
    #expect(try route("/api/topics") { $0.topics = 0 } == .topics(after: "", limit: 1))
  }
}
