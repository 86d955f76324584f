import Glibc
import TestSupport
import Testing

/// Hostile clients of the admin listener.
@Suite(.onItsOwnThread) struct AdminAttackTests {
  private let broker: BrokerProcess
  private let address: String

  init() throws {
    broker = try BrokerProcess("--admin", "\(Loopback.freshHost()):0")
    address = try #require(broker.adminAddress)
  }

  private func requireHealth() throws {
    #expect(try RawHTTP.get(address, "/healthz").status == 200)
    try broker.requireRunning()
    try broker.client().roundTrip()
  }

  @Test func hugeHeadsAreRefused() throws {
    for head in [
      "GET /\(String(repeating: "a", count: 200_000)) HTTP/1.1\r\n",
      "GET / HTTP/1.1\r\nX: \(String(repeating: "a", count: 200_000))\r\n\r\n",
      "GET / HTTP/1.1\r\n" + (0..<20_000).map { "X\($0): y\r\n" }.joined(),
    ] {
      let client = try RawHTTP(address)
      do {
        try client.send(head)
        let status = try client.answer().status
        #expect([400, 413, 414, 431].contains(status), "\(status)")
      } catch is RawSocket.Closed {}
    }
    try requireHealth()
  }

  @Test func garbageIsNoRequest() throws {
    for text in [
      "\0\0\0\0\r\n\r\n", "SLUI\u{1}\u{2}\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
      "\r\n\r\n\r\n\r\n",
    ] {
      let client = try RawHTTP(address)
      try? client.send(text)
      client.socket.endOutput()
    }
    try requireHealth()
  }

  @Test func onlyReadingIsPossible() throws {
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
      let answer = try RawHTTP.get(address, "/api/broker", method: method)
      #expect(answer.status == 405, "\(method)")
      #expect(answer.headers["allow"] == "GET, HEAD")
      #expect(answer.text.hasPrefix("{\"status\":405,"))
    }
    let head = try RawHTTP.get(address, "/metrics", method: "HEAD")
    #expect(head.status == 200 && head.body.isEmpty)
    #expect(try RawHTTP.get(address, "/api/events", method: "HEAD").status == 200)
  }

  @Test func aBodyIsntReadAsTheNextRequest() throws {
    for head in ["Content-Length: 36", "Transfer-Encoding: chunked"] {
      let client = try RawHTTP(address)
      try client.request("/healthz", headers: [head])
      try client.send("GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
      #expect(try client.answer().status == 400)
      try client.waitForClose()
    }
    try requireHealth()
  }

  @Test func pathsLeadNowhereElse() throws {
    for path in [
      "/../../etc/passwd", "/api/topics/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd",
    ] {
      #expect(try RawHTTP.get(address, path).status == 404, "\(path)")
    }
    #expect(try RawHTTP.get(address, "/api/topics/%00").status == 404)
    #expect(try RawHTTP.get(address, "/api/topics/%ff").status == 400)
  }

  @Test func otherSitesGetNothing() throws {
    #expect(try RawHTTP.get(address, "/metrics", headers: ["Host: attacker.example"]).status == 403)
    #expect(try RawHTTP.get(address, "/metrics", headers: ["Origin: http://attacker.example"]).status == 403)
    #expect(try RawHTTP.get(address, "/metrics", headers: ["Sec-Fetch-Site: cross-site"]).status == 403)
    #expect(try RawHTTP.get(address, "/metrics", headers: ["Host: localhost:1"]).status == 200)
    let answer = try RawHTTP.get(address, "/")
    #expect(answer.status == 200)
    #expect(answer.headers["access-control-allow-origin"] == nil)
    #expect(answer.headers["cache-control"] == "no-store")
    #expect(answer.headers["x-content-type-options"] == "nosniff")
    let policy = try #require(answer.headers["content-security-policy"])
    #expect(policy.contains("default-src 'none'") && policy.contains("script-src 'sha256-"))
    #expect(!policy.contains("unsafe"))
  }

  @Test func thousandsOfConnectionsAreBounded() throws {
    var idle: [RawSocket] = []
    let before = try descriptors()
    // They send nothing, or an incomplete request head.
    for number in 0..<2_000 {
      guard let socket = try? RawSocket(address) else { break }
      if number % 2 == 0 {
        _ = try? Array("GET / HTTP/1.1\r\nX".utf8).withUnsafeBytes { try socket.write($0) }
      }
      idle.append(socket)
    }
    #expect(idle.count > 1_000)
    #expect(try descriptors() <= before + 80)
    // The broker is unaffected, and closes each of them after a while.
    try broker.client().roundTrip()
    let socket = idle[0]
    let deadline = Deadline(in: Deadline.patience)
    var byte = [UInt8](repeating: 0, count: 4_096)
    #expect(throws: RawSocket.Closed.self) {
      while socket.wait(until: deadline) { _ = try byte.withUnsafeMutableBytes { try socket.read(into: $0) } }
    }
    for socket in idle { socket.close() }
    try requireHealth()
  }

  @Test func watchersAreBoundedAndMakeRoomWhenTheyLeave() throws {
    var watchers: [RawHTTP] = []
    while watchers.count < 100 {
      let watcher = try RawHTTP(address)
      try watcher.request("/api/events")
      let answer = try watcher.answer(hasBody: false)
      if answer.status == 503 { break }
      #expect(answer.status == 200)
      watchers.append(watcher)
    }
    #expect(watchers.count == 32)
    try requireHealth()
    watchers = []
    try eventually("a client may watch again", every: 0.5) {
      let watcher = try RawHTTP(address)
      try watcher.request("/api/events")
      return try watcher.answer(hasBody: false).status == 200
    }
  }

  private func descriptors() throws -> Int {
    guard let directory = opendir("/proc/\(broker.process.pid)/fd") else { throw TestFailure("no /proc") }
    defer { closedir(directory) }
    var count = 0
    while readdir(directory) != nil { count += 1 }
    return count
  }
}
