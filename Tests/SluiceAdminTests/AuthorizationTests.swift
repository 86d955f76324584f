import SluiceAccess
import SluiceBroker
import SluiceIO
import SluiceWire
import Testing

@testable import SluiceAdmin

@Suite struct AuthorizationTests {
  private func status(_ header: String?) -> Int {
    do {
      _ = try Authorization.credentials(header)
      return 200
    } catch {
      return error.status
    }
  }

  @Test func userAndPasswordOrTokenAreTaken() throws {
    #expect(
      try Authorization.credentials("Basic YWxpY2U6b3BlbiBzZXNhbWU=")
        == .password("open sesame", user: "alice"))
    #expect(try Authorization.credentials("basic  YWxpY2U6YTpi") == .password("a:b", user: "alice"))
    #expect(try Authorization.credentials("Bearer abc.def.ghi") == .token("abc.def.ghi"))
    // In a browser's password prompt a user can enter a token.
    #expect(try Authorization.credentials("Basic OmFiYy5kZWYuZ2hp") == .token("abc.def.ghi"))
  }

  @Test(arguments: [
    nil, "", "Basic", "Basic ", "Basic !!!", "Basic YWxpY2U=", "Bearer", "Bearer ", "Digest x", "Basic /w==",
  ])
  func whatCantBeReadIsAskedForAgain(_ header: String?) {
    #expect(status(header) == 401)
  }

  @Test func aChallengeSaysHow() {
    #expect(throws: AdminProblem.self) { try Authorization.credentials(nil) }
    let header = Authorization.required("x").header
    #expect(header?.name == "WWW-Authenticate")
    #expect(header?.value.hasPrefix("Basic realm=") == true)
  }

  @Test func tooManyAttemptsAreToldApart() {
    #expect(Authorization.problem(WireError(.tooManyAttempts, "x")).status == 429)
    #expect(Authorization.problem(WireError(.authenticationFailed, "x")).status == 401)
    #expect(Authorization.problem(WireError(.credentialsExpired, "x")).status == 401)
  }

  private func may(_ rules: [(Rights, String)], _ route: Route) throws -> Bool {
    let rules = try rules.map { Permissions.Rule($0.0, on: try TopicPattern($0.1)) }
    let identity = Identity(name: "alice", proof: .password, permissions: Permissions(rules))
    do {
      try Authorization.check(identity, route)
      return true
    } catch {
      #expect(error.status == 403)
      return false
    }
  }

  @Test func theWholeBrokerNeedsAdminOnEverything() throws {
    let whole: [Route] = [
      .dashboard, .metrics(.prometheus), .broker, .topics(after: "", limit: 1),
      .connections(filter: "", limit: 1),
      .events(topic: nil), .events(topic: "orders.eu"),
    ]
    for route in whole {
      #expect(try may([(.admin, ">")], route))
      #expect(try !may([([.publish, .subscribe, .create], ">")], route))
      #expect(try !may([(.admin, "orders.>")], route))
      #expect(try !may([], route))
    }
    for route in [Route.health, .readiness(needsStorage: false)] { #expect(try may([], route)) }
  }

  @Test func aTopicNeedsAdminOnIt() throws {
    #expect(try may([(.admin, "orders.>")], .topic("orders.eu")))
    #expect(try !may([(.admin, "orders.>")], .topic("jobs")))
    #expect(try !may([(.subscribe, ">")], .topic("orders.eu")))
  }

  @Test func recordsNeedTheRightToSubscribeAsWell() throws {
    let route = Route.records(topic: "orders.eu", RecordQuery())
    #expect(try !may([(.admin, ">")], route))
    #expect(try !may([(.admin, ">"), (.subscribe, "jobs")], route))
    #expect(try may([(.admin, ">"), (.subscribe, "orders.*")], route))
  }

  @Test func whoWasInIsRememberedForAWhile() {
    var cache = IdentityCache()
    let start = MonotonicTime(nanoseconds: 1_000_000_000)
    let alice = Identity(name: "alice", proof: .password, permissions: .nothing)
    cache.add(alice, for: .password("a", user: "alice"), at: start)
    #expect(cache[.password("a", user: "alice"), at: start + .seconds(59)] == alice)
    #expect(cache[.password("b", user: "alice"), at: start] == nil)
    #expect(cache[.password("a", user: "bob"), at: start] == nil)
    #expect(cache[.token("a"), at: start] == nil)
    #expect(cache[.password("a", user: "alice"), at: start + .seconds(60)] == nil)
    cache.remove(.password("a", user: "alice"))
    #expect(cache[.password("a", user: "alice"), at: start] == nil)
  }
}
