import SluiceWire
import TestSupport
import Testing

/// Delays for clients that guess passwords.
@Suite(.onItsOwnThread) struct AttemptLimitTests {
  private let files: AliceFiles

  init() throws {
    files = try AliceFiles()
  }

  /// A broker that remembers failed attempts for longer than any test.
  private func broker(_ options: String...) throws -> BrokerProcess {
    try BrokerProcess(options: files.options + ["--attempts-memory", "10h"] + options)
  }

  private func connect(_ password: String, to broker: BrokerProcess, from source: String = "127.0.0.2") throws
    -> RawClient
  {
    let client = try broker.connect(from: source)
    try client.send(
      Hello(
        versions: 1...1, maximumFrame: 1 << 20, keepalive: 0, name: "test",
        credentials: .password(password, user: "alice")), stream: 0)
    return client
  }

  private func fail(_ times: Int, at broker: BrokerProcess, from source: String = "127.0.0.2") throws {
    for number in 0..<times {
      let guess = try connect("guess \(number)", to: broker, from: source)
      #expect(try guess.expect(Fault.self, stream: 0).code == .authenticationFailed)
    }
  }

  @Test func theFirstOnesCostNothingAndTheNextOneWaits() throws {
    let broker = try broker(
      "--attempts-free", "6", "--attempts-delay", "10h", "--attempts-ceiling", "10h")
    try fail(7, at: broker)
    let slow = try connect("correct horse", to: broker)
    #expect(try slow.receiveIfAny(within: 0.3) == nil)
    #expect(try broker.metric("slowed_authentications") == 1)
    // Other addresses are not delayed.
    _ = try connect("correct horse", to: broker, from: "127.0.0.3").expect(Welcome.self, stream: 0)
  }

  @Test func nobodyWaitsWhereThatIsTurnedOff() throws {
    for options in [["--attempts-delay", "0s"], ["--attempts-ceiling", "0s"], ["--attempts-free", "30"]] {
      let broker = try BrokerProcess(options: files.options + options)
      try fail(20, at: broker)
      _ = try connect("correct horse", to: broker).expect(Welcome.self, stream: 0)
      #expect(try broker.metric("slowed_authentications") == 0)
    }
  }

  @Test func anAddressIsForgottenForAnother() throws {
    let broker = try broker(
      "--attempts-free", "0", "--attempts-delay", "10h", "--attempts-ceiling", "10h", "--attempts-tracked",
      "1", "--attempts-shared-ceiling", "0s")
    try fail(1, at: broker)
    try fail(1, at: broker, from: "127.0.0.3")
    _ = try connect("correct horse", to: broker).expect(Welcome.self, stream: 0)
  }
}
