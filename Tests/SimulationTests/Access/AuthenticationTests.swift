import SluiceAccess
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Which clients may connect, and for how long.
@Suite struct AuthenticationTests {
  private static let rules = ["ada": "all >", "bob": "subscribe > create >"]

  private func refusal(_ client: ScriptedClient) throws -> ErrorCode? {
    #expect(client.types == [.error])
    return try client.fault(on: 0)?.code
  }

  // MARK: The handshake

  @Test func whoProvesAnIdentityIsWelcome() throws {
    let small = try SmallWorld(rules: Self.rules)
    let expires = small.world.wallClock + 60_000
    for (credentials, end) in [
      (PlainAccess.password(of: "ada"), Authenticated.never),
      (PlainAccess.token(of: "ada", until: expires), UInt64(expires)),
    ] {
      let client = small.connect(credentials: credentials)
      let welcome = try #require(client.frames.first).decoded(Welcome.self)
      #expect(welcome.identity == "ada" && welcome.expires == end)
      #expect(client.ask(Ping(token: 5), stream: 0, in: small).map(\.header.type) == [.pong])
    }
  }

  @Test func whoDoesntIsToldNothingElse() throws {
    let small = try SmallWorld(rules: Self.rules)
    #expect(try refusal(small.connect()) == .authenticationRequired)
    let wrong = small.connect(credentials: .password("wrong", user: "ada"))
    #expect(try refusal(wrong) == .authenticationFailed)
    let unknown = small.connect(credentials: .password("wrong", user: "eve"))
    #expect(try refusal(unknown) == .authenticationFailed)
    #expect(wrong.frames.map(\.body) == unknown.frames.map(\.body))
    let late = small.connect(credentials: PlainAccess.token(of: "ada", until: small.world.wallClock - 1))
    #expect(try refusal(late) == .credentialsExpired)
    #expect(late.hasEnded && wrong.hasEnded)
    small.settle(.seconds(3))
    #expect(small.broker.core.isEmpty)
  }

  @Test func nobodyIsAskedWhereThereIsNoPolicy() throws {
    let small = try SmallWorld()
    let client = small.connect(credentials: .password("wrong", user: "eve"))
    let welcome = try #require(client.frames.first).decoded(Welcome.self)
    #expect(welcome.identity.isEmpty && welcome.expires == Authenticated.never)
    let answer = client.ask(Authenticate(.token("x")), stream: 1, in: small)
    #expect(try answer.first?.decoded(Authenticated.self) == Authenticated(identity: ""))
  }

  @Test func nothingMayBeSentWhileTheAnswerIsAwaited() throws {
    let small = try SmallWorld(rules: Self.rules)
    let client = small.connect(raw: true)
    let hello = Hello(
      maximumFrame: 1 << 20, keepalive: 0, name: "", credentials: PlainAccess.password(of: "ada"))
    client.send(hello.encoded(stream: 0) + Ping(token: 1).encoded(stream: 0))
    small.settle()
    #expect(try refusal(client) == .unexpectedFrame)
  }

  @Test func whoGuessesIsSlowedDownAndNobodyElse() throws {
    let small = try SmallWorld(rules: Self.rules) { $0.limits.handshake = .seconds(3) }
    var codes: [ErrorCode?] = []
    for _ in 0..<30 {
      let client = small.connect(credentials: .password("wrong", user: "ada"))
      _ = small.world.run(limit: .seconds(10)) { client.hasEnded }
      codes.append(try client.fault(on: 0)?.code)
    }
    // After some attempts the delay exceeds the handshake timeout.
    #expect(codes.prefix(4).allSatisfy { $0 == .authenticationFailed })
    #expect(Set(codes) == [.authenticationFailed, .handshakeTimeout])
    #expect(codes.count { $0 == .authenticationFailed } < 20)
  }

  @Test func oneAddressHasSoManyAttemptsWaiting() throws {
    let small = try SmallWorld(rules: Self.rules) {
      $0.limits.authenticationsPerAddress = 3
      $0.limits.handshake = .seconds(600)
    }
    // Guess until the next attempt is delayed by some seconds.
    var hasToWait = false
    while !hasToWait {
      let client = small.connect(credentials: .password("wrong", user: "ada"))
      hasToWait = !small.world.run(limit: .seconds(5)) { client.hasEnded }
    }
    let waiting = (0..<2).map { _ in small.connect(credentials: PlainAccess.password(of: "ada")) }
    #expect(waiting.allSatisfy { $0.frames.isEmpty })
    #expect(try refusal(small.connect(credentials: PlainAccess.password(of: "ada"))) == .tooManyAttempts)
    // A client that disconnects makes room for another.
    waiting[0].close()
    small.settle()
    let next = small.connect(credentials: PlainAccess.password(of: "bob"))
    small.settle(.seconds(120))
    #expect(waiting[1].types.first == .welcome && next.types.first == .welcome)
  }

  @Test func aPolicyThatChangesMeanwhileCounts() throws {
    let small = try SmallWorld(rules: Self.rules) { $0.limits.handshake = .seconds(600) }
    let client = small.connect(raw: true)
    client.send(
      Hello(maximumFrame: 1 << 20, keepalive: 0, name: "", credentials: PlainAccess.password(of: "bob")),
      stream: 0)
    // Change the policy while the result travels from one loop to the other.
    let policy = try PlainAccess.policy(["ada": "all >"])
    for _ in 0..<200 where client.frames.isEmpty {
      small.settle(.microseconds(20))
      small.broker.updateAccess(policy)
    }
    small.settle()
    let isRefused = try client.fault(on: 0).map { [.authenticationFailed, .accessRevoked].contains($0.code) }
    #expect(isRefused == true)
    #expect(client.hasEnded)
  }

  @Test func aBrokerThatStopsLetsNobodyWait() throws {
    let small = try SmallWorld(rules: Self.rules) { $0.limits.handshake = .seconds(600) }
    var client = small.connect(credentials: .password("wrong", user: "ada"))
    while client.hasEnded { client = small.connect(credentials: .password("wrong", user: "ada")) }
    small.broker.shutdown()
    _ = small.world.run(limit: .seconds(5)) { client.hasEnded }
    #expect(client.hasEnded && client.frames.isEmpty)
  }

  // MARK: How long

  @Test func credentialsThatExpireEndTheConnection() throws {
    let small = try SmallWorld(rules: Self.rules)
    let expires = small.world.wallClock + 5_000
    let client = small.connect(credentials: PlainAccess.token(of: "ada", until: expires))
    while small.world.wallClock < expires {
      #expect(!client.hasEnded)
      small.settle()
    }
    small.settle(.milliseconds(1_100))
    #expect(try client.fault(on: 0)?.code == .credentialsExpired && client.hasEnded)
  }

  @Test func renewedOnesDoNot() throws {
    let small = try SmallWorld(rules: Self.rules)
    let expires = small.world.wallClock + 5_000
    let client = small.connect(credentials: PlainAccess.token(of: "ada", until: expires))
    let answer = client.ask(
      Authenticate(PlainAccess.token(of: "ada", until: expires + 5_000)), stream: 3, in: small)
    #expect(
      try answer.map { try $0.decoded(Authenticated.self) }
        == [Authenticated(identity: "ada", expires: UInt64(expires + 5_000))])
    small.settle(.seconds(8))
    #expect(!client.hasEnded)
    small.settle(.seconds(3))
    #expect(try client.fault(on: 0)?.code == .credentialsExpired)
  }

  @Test func whatIsRefusedChangesNothing() throws {
    let small = try SmallWorld(rules: Self.rules)
    let expires = small.world.wallClock + 5_000
    let client = small.connect(credentials: PlainAccess.token(of: "ada", until: expires))
    for (credentials, code) in [
      (Credentials.token("nonsense"), ErrorCode.authenticationFailed),
      (PlainAccess.password(of: "bob"), .authenticationFailed),
      (PlainAccess.token(of: "ada", until: 1), .credentialsExpired), (.none, .authenticationRequired),
    ] {
      _ = client.ask(Authenticate(credentials), stream: 1, in: small)
      #expect(try client.fault(on: 1)?.code == code)
      #expect(!client.hasEnded)
    }
    small.settle(.seconds(6))
    #expect(try client.fault(on: 0)?.code == .credentialsExpired)
  }

  @Test func whoCancelsARenewalHasntRenewed() throws {
    let small = try SmallWorld(rules: Self.rules)
    let expires = small.world.wallClock + 5_000
    let client = small.connect(credentials: PlainAccess.token(of: "ada", until: expires))
    client.send(
      Authenticate(PlainAccess.token(of: "ada", until: expires + 50_000)).encoded(stream: 1)
        + Cancel().encoded(stream: 1))
    small.settle()
    #expect(client.types == [.welcome, .cancelled])
    small.settle(.seconds(7))
    #expect(try client.fault(on: 0)?.code == .credentialsExpired)
  }

  @Test func anIdentityThatIsTakenAwayIsDisconnected() throws {
    let small = try SmallWorld(brokerLoops: 2, rules: Self.rules)
    let (ada, bob) = (small.connect(as: "ada"), small.connect(as: "bob"))
    _ = bob.ask(Subscribe(topic: "t", grantedThrough: 1), stream: 1, in: small)
    try small.change(["ada": "all >"])
    #expect(try bob.fault(on: 0)?.code == .accessRevoked && bob.hasEnded)
    #expect(ada.ask(Ping(token: 1), stream: 0, in: small).map(\.header.type) == [.pong])
    #expect(small.broker.core.registry.find("t")?.attached.subscriptions == 0)
  }
}
