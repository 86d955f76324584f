import SluiceAccess
import SluiceIO
import SluiceSimulation
import SluiceWire
import Synchronization
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Password guesses from many addresses don't lock out an identity. The tests count verifications, each of which takes about a tenth of a second.
@Suite struct LoginFairnessTests {
  /// The identities of successful verifications, and the guesses, in order.
  private final class Log: Sendable {
    private let names = Mutex<[String]>([])

    var value: [String] { names.withLock { $0 } }

    func add(_ name: String) { names.withLock { $0.append(name) } }

    func removeAll() { names.withLock { $0 = [] } }
  }

  private let world = SimulatedWorld(seed: 1, loops: 1, conditions: .calm)
  private let authenticator: Authenticator
  private let log = Log()

  init() throws {
    var limits = BrokerLimits()
    // Otherwise delays after guesses would hide the order.
    limits.attempts.free = 1_000_000
    let log = log
    authenticator = Authenticator(
      try PlainAccess.policy(["ada": "all >", "bob": "all >"]), on: world.group.loops[0], limits: limits,
      metrics: BrokerMetrics()
    ) { policy, credentials, clientID, security, now in
      log.add(credentials.secret == "right" ? credentials.user : "guess")
      return PlainAccess.verify(policy, credentials, clientID, security, now)
    }
  }

  private func attempt(_ credentials: Credentials, from host: String) throws {
    _ = try authenticator.attempt(credentials, of: "", by: .host(host, port: 1), nil) { _ in }
  }

  /// Sixty addresses guess the password of `ada`, eight times each.
  private func guess() {
    for round in 0..<8 {
      for address in 1...60 {
        try? attempt(.password("wrong \(round)", user: "ada"), from: "10.0.0.\(address)")
      }
    }
  }

  /// The number of verifications until a login succeeds, its own included.
  private func verifications(from host: String, as name: String) throws -> Int {
    log.removeAll()
    guess()
    try attempt(PlainAccess.password(of: name), from: host)
    world.run(for: .seconds(1))
    return try #require(log.value.firstIndex(of: name)) + 1
  }

  @Test func anAddressThatHasLoggedInBeforeWaitsForItsTurnOnly() throws {
    try attempt(PlainAccess.password(of: "ada"), from: "192.0.2.1")
    world.run(for: .seconds(1))
    for _ in 0..<5 {
      #expect(try verifications(from: "192.0.2.1", as: "ada") <= AttemptStanding.allCases.count)
    }
  }

  @Test func anAddressWithoutFailuresWaitsForItsTurnOnly() throws {
    guess()
    world.run(for: .seconds(1))
    for round in 1...5 {
      #expect(try verifications(from: "192.0.2.\(round)", as: "bob") <= AttemptStanding.allCases.count)
    }
  }

  @Test func aQueueFullOfGuessesHasRoomForOthers() throws {
    guess()
    world.run(for: .seconds(1))
    for round in 0..<64 {
      for address in 1...60 {
        try? attempt(.password("wrong \(round)", user: "ada"), from: "10.0.0.\(address)")
      }
    }
    #expect(throws: WireError.self) { try attempt(.password("wrong", user: "ada"), from: "10.0.0.1") }
    log.removeAll()
    try attempt(PlainAccess.password(of: "bob"), from: "192.0.2.7")
    world.run(for: .seconds(1))
    #expect(try #require(log.value.firstIndex(of: "bob")) < AttemptStanding.allCases.count)
  }
}
