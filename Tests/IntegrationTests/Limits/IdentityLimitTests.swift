import Glibc
import SluiceAccess
import SluiceTLS
import SluiceWire
import TestSupport
import Testing

/// Limits of the connections of an identity, and of the clients waiting for authentication.
@Suite(.onItsOwnThread) struct IdentityLimitTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  /// A broker with the users alice and bob, each with its name as its password.
  private func broker(cost: Scrypt.Cost, _ options: String...) throws -> BrokerProcess {
    let users = try ["alice", "bob"].map { name in
      "\(name):\(try #require(PasswordHash(of: name, cost: cost)).text)\n"
    }
    try writeFile(directory.file("users"), Array(users.joined().utf8))
    try writeFile(directory.file("permissions"), Array("* all >\n".utf8))
    return try BrokerProcess(
      options: ["--users", directory.file("users"), "--permissions", directory.file("permissions")] + options)
  }

  private func hello(_ user: String, to broker: BrokerProcess, from source: String? = nil) throws -> RawClient
  {
    let client = try broker.connect(from: source)
    try client.send(
      Hello(
        versions: 1...1, maximumFrame: 1 << 20, keepalive: 0, name: "test",
        credentials: .password(user, user: user)), stream: 0)
    return client
  }

  @Test func connectionsOfAnIdentity() throws {
    let broker = try broker(cost: .init(logN: 4, r: 1, p: 1), "--max-connections-per-identity", "2")
    let first = try (0..<2).map { _ in try hello("alice", to: broker) }
    for client in first { _ = try client.expect(Welcome.self, stream: 0) }
    let refused = try hello("alice", to: broker)
    let fault = try refused.expectFault(.tooManyConnections, stream: 0)
    #expect(fault.message.contains("alice has 2 connections"))
    #expect(try broker.metric("refused_connections_per_identity") == 1)
    _ = try hello("bob", to: broker).expect(Welcome.self, stream: 0)
    first[0].close()
    try eventually("there is room again") { try hello("alice", to: broker).receive().type == .welcome }
  }

  /// The hash takes a while, so that concurrent attempts wait for each other.
  @Test(arguments: ["--max-authentications", "--max-authentications-per-address"])
  func whoWaitsToBeLookedAt(option: String) throws {
    let broker = try broker(cost: .init(logN: 14, r: 8, p: 1), option, "1")
    let isPerAddress = option.hasSuffix("address")
    try eventually("some are refused") {
      // The limit covers all addresses together, or one address.
      let clients = try (1...8).map { number in
        try hello("alice", to: broker, from: isPerAddress ? "127.9.9.1" : "127.9.9.\(number)")
      }
      var refused = 0
      for client in clients {
        let answer = try client.receive()
        if answer.type == .welcome { continue }
        #expect(try answer.decode(Fault.self).code == .tooManyAttempts)
        refused += 1
      }
      #expect(refused < clients.count)
      return refused > 0
    }
    #expect(try broker.metric("refused_authentications") > 0)
    guard isPerAddress else { return }
    // With that many addresses no client delays another.
    let clients = try (1...8).map { try hello("alice", to: broker, from: "127.9.9.\($0)") }
    for client in clients { _ = try client.expect(Welcome.self, stream: 0) }
  }
}
