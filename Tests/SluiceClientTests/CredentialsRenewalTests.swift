import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceClient

/// Credentials are renewed before they expire, if others are available.
@Suite struct CredentialsRenewalTests {
  /// A broker that counts time from the handshake, and a client with numbered credentials.
  private struct Scene {
    let broker: ScriptedBroker
    let client: Client
    let asked = Box(0)
    /// The credentials to provide, by the number of the request.
    let answer: Box<(Int) -> Result<Credentials, ClientError>>

    init(lifetime: Int64, _ configure: (inout ClientOptions) -> Void = { _ in }) throws {
      let answer = Box<(Int) -> Result<Credentials, ClientError>> { .success(.token("\($0)")) }
      self.answer = answer
      // The clock of the simulated world isn't known yet.
      let start = SimulatedWorld(seed: 1, loops: 0, conditions: .calm).wallClock
      broker = try ScriptedBroker(
        Welcome(
          maximumFrame: 1 << 20, maximumRecord: 1 << 20, maximumStreams: 100, keepalive: 0, broker: 1,
          software: "",
          identity: "ada", expires: UInt64(start + lifetime)))
      client = try broker.client { [asked] options in
        options.allowsPlaintextCredentials = true
        options.keepalive = .zero
        options.credentials = .computed {
          asked.value += 1
          return answer.value(asked.value)
        }
        configure(&options)
      }
      #expect(broker.world.wallClock - start < 1_000)
    }

    /// The next AUTHENTICATE, and the seconds until it arrived.
    func next() throws -> (frame: Authenticate, stream: UInt32, seconds: Int) {
      let start = broker.world.now
      let came = broker.world.run(limit: .seconds(10_000)) { !broker.received.isEmpty }
      try #require(came)
      let stream = broker.received[0].stream
      let seconds = (broker.world.now - start).components.seconds
      return (try broker.takeOnly(), stream, Int(seconds))
    }

    func accept(for time: Int64, _ stream: UInt32) {
      broker.send(
        Authenticated(identity: "ada", expires: UInt64(broker.world.wallClock + time)), stream)
      broker.settle()
    }
  }

  @Test func theyAreRenewedWhenFourFifthsAreOver() throws {
    let scene = try Scene(lifetime: 1_000_000)
    var (frame, stream, seconds) = try scene.next()
    #expect(frame.credentials == .token("2") && (799...800).contains(seconds))
    scene.accept(for: 2_000_000, stream)
    let expires = scene.client.identity?.expires
    #expect(expires.map { ($0.millisecondsSince1970 - scene.broker.world.wallClock) / 1_000 } == 1_999)
    (frame, stream, seconds) = try scene.next()
    #expect(frame.credentials == .token("3") && (1_599...1_600).contains(seconds))
  }

  @Test func aRefusalIsFollowedByAnotherAttempt() throws {
    let scene = try Scene(lifetime: 1_000_000)
    for (number, expected) in [(2, 799...800), (3, 159...160), (4, 31...32)] {
      let (frame, stream, seconds) = try scene.next()
      #expect(frame.credentials == .token("\(number)") && expected.contains(seconds))
      scene.broker.send(Fault(code: .authenticationFailed, message: "no"), stream)
      scene.broker.settle()
    }
    // This has no effect except the delay.
    #expect(scene.client.failure == nil && !scene.broker.isOver)
  }

  @Test func theSameOnesArentShownTwice() throws {
    let scene = try Scene(lifetime: 1_000_000)
    scene.answer.value = { .success(.token($0 < 4 ? "1" : "other")) }
    let (frame, _, seconds) = try scene.next()
    #expect(frame.credentials == .token("other") && scene.asked.value == 4)
    #expect((991...993).contains(seconds))
  }

  @Test func noneToBeHadIsNoReasonToGive() throws {
    let scene = try Scene(lifetime: 100_000)
    scene.answer.value = { $0 < 3 ? .failure(.closedHere) : .success(.token("\($0)")) }
    let (frame, _, seconds) = try scene.next()
    #expect(frame.credentials == .token("3") && (95...97).contains(seconds))
  }

  @Test func fixedOnesEnd() throws {
    let scene = try Scene(lifetime: 10_000) { $0.credentials = .token("abc") }
    scene.broker.world.run(for: .seconds(60))
    #expect(scene.broker.received.isEmpty && scene.asked.value == 0)
  }

  @Test func aTimeThatIsOverOrFarAwayIsTakenAsItIs() throws {
    for lifetime in [-5_000, 0, 1, Int64.max / 2] {
      let scene = try Scene(lifetime: lifetime)
      scene.broker.world.run(for: .seconds(60))
      #expect(!scene.broker.isOver)
      #expect(scene.client.failure == nil)
    }
  }

  @Test func theNextConnectionHasOnesOfItsOwn() throws {
    let scene = try Scene(lifetime: 1_000_000) { $0.reconnect = .quick }
    let (_, stream, _) = try scene.next()
    scene.broker.breakOff()
    _ = stream
    // The former connection's reply is dropped; the lifetime of the new one starts again.
    scene.broker.settle()
    #expect(scene.asked.value == 3)
    #expect(scene.broker.takeReceived().isEmpty)
    let (frame, _, _) = try scene.next()
    #expect(frame.credentials == .token("4"))
  }

  @Test func aClosedClientRenewsNothing() throws {
    let scene = try Scene(lifetime: 10_000)
    scene.client.close()
    scene.broker.world.run(for: .seconds(60))
    #expect(scene.asked.value == 1 && scene.broker.received.isEmpty)
  }
}
