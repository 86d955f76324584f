import SluiceBroker
import SluiceWire
import Testing

@testable import SluiceAdmin

@Suite struct RouteTests {
  private func route(_ target: String, method: String = "GET") throws -> Route {
    var request = AdminRequest()
    request.method = method
    request.target = target
    return try Route(request, AdminLimits())
  }

  private func status(_ target: String, method: String = "GET") -> Int {
    do {
      _ = try route(target, method: method)
      return 200
    } catch {
      return (error as? AdminProblem)?.status ?? 0
    }
  }

  @Test func pathsLeadWhereTheySay() throws {
    #expect(try route("/") == .dashboard)
    #expect(try route("/healthz") == .health)
    #expect(try route("/readyz", method: "HEAD") == .readiness(needsStorage: false))
    #expect(try route("/metrics") == .metrics(.prometheus))
    #expect(try route("/metrics?collect=all") == .metrics(.prometheus))
    #expect(try route("/api/broker") == .broker)
    #expect(try route("/api/topics") == .topics(after: "", limit: 1_000))
    #expect(try route("/api/topics?limit=7&after=a.b") == .topics(after: "a.b", limit: 7))
    #expect(try route("/api/topics/a.b") == .topic("a.b"))
    #expect(try route("/api/topics/%C3%A9%2F%2e") == .topic("é/."))
    #expect(try route("/api/topics/records") == .topic("records"))
    #expect(try route("/api/topics/a/records?count=3") == .records(topic: "a", RecordQuery(count: 3)))
    #expect(try route("/api/connections") == .connections(filter: "", limit: 200))
    #expect(try route("/api/connections?filter=a%20b") == .connections(filter: "a b", limit: 200))
    #expect(try route("/api/consumers") == .consumers(topic: nil, filter: "", limit: 200))
    #expect(try route("/api/consumers?topic=a&limit=3") == .consumers(topic: "a", filter: "", limit: 3))
    #expect(
      try route("/api/consumers?filter=w") == .consumers(topic: nil, filter: "w", limit: 200))
    #expect(try route("/api/problems") == .problems)
    #expect(try route("/api/history") == .history(topic: nil, seconds: 3_600, step: nil))
    #expect(try route("/api/history?topic=a&range=60&step=10") == .history(topic: "a", seconds: 60, step: 10))
    #expect(try route("/api/events") == .events(topic: nil))
    #expect(try route("/api/events?topic=a%20b") == .events(topic: "a b"))
  }

  @Test func recordsAreLookedForWhereThePageSays() throws {
    func query(_ parameters: String) throws -> RecordQuery? {
      guard case .records("a", let query) = try route("/api/topics/a/records?\(parameters)") else {
        return nil
      }
      return query
    }
    #expect(try query("from=earliest") == RecordQuery(.from(.earliest)))
    #expect(try query("from=offset:7&count=3") == RecordQuery(.from(.offset(7)), count: 3))
    #expect(try query("from=last:9") == RecordQuery(.from(.last(9))))
    #expect(try query("from=time:1500") == RecordQuery(.from(.time(1_500))))
    #expect(try query("from=time:1970-01-01T00:00:02Z") == RecordQuery(.from(.time(2_000))))
    guard case .from(.time(let ago))? = try query("from=time:-10m")?.start else {
      Issue.record("a time ago isn't a time")
      return
    }
    #expect(ago > 600_000)
    #expect(try query("before=12") == RecordQuery(.before(12)))
    #expect(
      try query("key=k%201&text=%C3%A9") == RecordQuery(key: Array("k 1".utf8), text: Array("é".utf8)))
    #expect(try query("key=") == RecordQuery(key: []))
    for wrong in [
      "from=", "from=now", "from=offset:", "from=offset:-1", "from=last:x", "from=time:yesterday",
      "from=time:-x",
      "before=", "before=-1", "from=earliest&before=3", "count=0", "filter=x",
    ] {
      #expect(status("/api/topics/a/records?\(wrong)") == 400, "\(wrong)")
    }
  }

  @Test(arguments: [
    "/x", "//", "/healthz/", "/../etc/passwd", "/api/../../etc/passwd", "/api/%2e%2e/%2e%2e/etc/passwd",
    "/api/topics/", "/api/topics/a/", "/api/topics/a/records/", "/api", "/index.html", "/metrics/x",
  ])
  func whatIsntThereIsntFound(_ target: String) {
    #expect(status(target) == 404)
  }

  @Test(arguments: [
    "", "healthz", "http://x/healthz", "/%", "/%4", "/%zz", "/%ff", "/api/topics?limit=0",
    "/api/topics?limit=x", "/api/topics?limit=1&limit=2", "/api/topics?lmit=1",
    "/api/topics/a/records?count=-1",
    "/api/topics/a/records?count=1000000", "/api/broker?x",
    "/api/topics/a/records?count=99999999999999999999",
  ])
  func whatCantBeReadIsRefused(_ target: String) {
    #expect(status(target) == 400)
  }

  @Test(arguments: ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "X"])
  func nothingCanBeChanged(_ method: String) {
    #expect(status("/metrics", method: method) == 405)
    #expect(status("/nowhere", method: method) == 404)
  }

  private func action(_ target: String, _ method: String) throws -> Route {
    var request = AdminRequest()
    request.method = method
    request.target = target
    return try Route(request, AdminLimits(), actions: true)
  }

  @Test func actionsAreRoutesWhereTheyAreOn() throws {
    #expect(try action("/api/topics/a.b", "PUT") == .action(.create(topic: "a.b")))
    #expect(try action("/api/topics/a.b", "PATCH") == .action(.set(topic: "a.b")))
    #expect(try action("/api/topics/a%2Fb", "DELETE") == .action(.delete(topic: "a/b")))
    #expect(try action("/api/topics/trim/trim", "POST") == .action(.trim(topic: "trim")))
    #expect(try action("/api/topics/a%2Fb/records", "POST") == .action(.publish(topic: "a/b")))
    #expect(try action("/api/connections/7", "DELETE") == .action(.disconnect(7)))
    #expect(try action("/api/topics/a.b", "GET") == .topic("a.b"))
    for (target, method) in [
      ("/api/topics/a", "POST"), ("/api/topics/a/trim", "GET"), ("/api/topics/a/trim", "PUT"),
      ("/api/connections/7", "GET"), ("/api/topics", "DELETE"), ("/api/connections", "DELETE"), ("/", "POST"),
      ("/api/topics/a/records", "DELETE"),
    ] {
      let problem = #expect(throws: AdminProblem.self, "\(method) \(target)") { try action(target, method) }
      #expect(problem?.status == 405 && problem?.header?.name == "Allow", "\(method) \(target)")
    }
    #expect(throws: AdminProblem.self) { try action("/api/topics/a?x=1", "PUT") }
    #expect(throws: AdminProblem.self) { try action("/api/connections/-1", "DELETE") }
    // Disabled actions respond like missing ones.
    #expect(status("/api/topics/a", method: "PUT") == 405)
    #expect(status("/api/connections/7", method: "DELETE") == 404)
  }

  @Test func bodiesAreRefused() {
    var request = AdminRequest()
    request.target = "/metrics"
    request.hasBody = true
    #expect(throws: AdminProblem.self) { try Route(request, AdminLimits()) }
  }

  @Test func whoAsksForOpenMetricsGetsThem() {
    #expect(MetricsFormat(accept: nil) == .prometheus)
    #expect(MetricsFormat(accept: "text/plain;version=0.0.4;q=1,*/*;q=0.1") == .prometheus)
    #expect(MetricsFormat(accept: "application/openmetrics-text;version=1.0.0,text/plain") == .openMetrics)
  }
}
