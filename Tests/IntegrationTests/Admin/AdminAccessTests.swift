import Glibc
import TestSupport
import Testing

/// Permissions on the admin listener of a broker whose clients authenticate.
@Suite(.onItsOwnThread) struct AdminAccessTests {
  static func header(_ user: String, _ password: String) -> String {
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    let bytes = Array("\(user):\(password)".utf8)
    var text = ""
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
      for place in 0..<4 {
        text.append(place <= group.count ? letters[bits >> (18 - 6 * place) & 63] : "=")
      }
    }
    return "Authorization: Basic \(text)"
  }

  final class Stage {
    let directory: TemporaryDirectory
    let broker: BrokerProcess
    let address: String

    convenience init(permissions: String, _ options: String...) throws {
      try self.init(permissions: permissions, options)
    }

    init(permissions: String, _ options: [String]) throws {
      directory = try TemporaryDirectory()
      let users = directory.file("users")
      for name in ["alice", "bob"] {
        let tool = try ChildProcess(
          BuiltProduct.path("sluice"), ["user", "add", name, "--file", users],
          input: .bytes(Array("\(name)'s secret\n".utf8)))
        guard try tool.waitForExit() == .code(0) else { throw TestFailure(tool.messages) }
      }
      try Self.write(permissions, to: directory.file("permissions"))
      let admin = options.contains("--admin") ? [] : ["--admin", "\(Loopback.freshHost()):0"]
      broker = try BrokerProcess(
        options: ["--users", users, "--permissions", directory.file("permissions")] + admin + options)
      // Empty for a broker without an admin listener.
      address = broker.adminAddress ?? ""
    }

    static func write(_ text: String, to path: String) throws {
      let file = fopen(path, "w")
      guard file != nil else { throw TestFailure("open \(path): error \(errno)") }
      fputs(text, file)
      fclose(file)
      chmod(path, 0o600)
    }

    func status(_ target: String, _ user: String?, password: String? = nil) throws -> Int {
      let headers = user.map { [AdminAccessTests.header($0, password ?? "\($0)'s secret")] } ?? []
      return try RawHTTP.get(address, target, headers: headers).status
    }
  }

  @Test func visitorsSayWhoTheyAre() throws {
    let stage = try Stage(permissions: "alice admin >\nbob all jobs.>\n")
    let refused = try RawHTTP.get(stage.address, "/")
    #expect(refused.status == 401)
    #expect(refused.headers["www-authenticate"]?.hasPrefix("Basic realm=") == true)
    for target in ["/", "/metrics", "/api/broker", "/api/topics", "/api/connections", "/api/topics/x"] {
      #expect(try stage.status(target, nil) == 401, "\(target)")
    }
    for target in ["/", "/metrics", "/api/broker", "/api/topics", "/api/connections"] {
      #expect(try stage.status(target, "alice") == 200, "\(target)")
      #expect(try stage.status(target, "bob") == 403, "\(target)")
    }
    #expect(try stage.status("/metrics", "alice", password: "wrong") == 401)
    // A service manager needs only these two.
    #expect(try stage.status("/healthz", nil) == 200)
    #expect(try stage.status("/readyz", nil) == 200)
  }

  @Test func recordsNeedTheRightToReadThem() throws {
    let stage = try Stage(permissions: "alice admin >\nbob all jobs.>\n")
    #expect(try stage.status("/api/topics/jobs.a/records", "alice") == 403)
    #expect(try stage.status("/api/topics/jobs.a/records", "bob") == 404)
    #expect(try stage.status("/api/topics/orders/records", "bob") == 403)
    #expect(try stage.status("/api/topics/orders", "bob") == 403)
  }

  @Test func whoMayNotAnyMoreIsNotShownAnyMore() throws {
    let stage = try Stage(permissions: "alice admin >\n")
    let watcher = try RawHTTP(stage.address)
    try watcher.request("/api/events", headers: [Self.header("alice", "alice's secret")])
    _ = try watcher.text(upTo: "event: sample")
    try Stage.write("alice publish >\n", to: stage.directory.file("permissions"))
    stage.broker.process.signal(SIGHUP)
    // The end of a response in chunks.
    _ = try watcher.text(upTo: "0\r\n\r\n")
    #expect(try stage.status("/metrics", "alice") == 403)
  }
}
