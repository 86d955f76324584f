import SluiceWire
import TestSupport
import Testing

/// Problems that are derived from counters of the last minute.
@Suite(.onItsOwnThread) struct StatusProblemTests {
  /// No client has requested problems before these logins, whether the admin listener or the broker itself looks for them.
  @Test(arguments: [[], ["--admin", "off"], ["--admin-history", "0s"]])
  func theFirstStatusTellsOfRejectedLogins(_ options: [String]) throws {
    for _ in 0..<4 where try isToldOfRejectedLogins(options) { return }
    throw TestFailure("in none of four attempts status told of the logins within 50 s")
  }

  /// Whether `sluice status` reports logins that were rejected before its first call, within the minute that they count. Its figures may be some seconds old.
  /// A broker on a busy machine may read its counters too late, so the caller retries with another broker.
  private func isToldOfRejectedLogins(_ options: [String]) throws -> Bool {
    let stage = try AdminAccessTests.Stage(
      permissions: "alice all >\n", options + ["--attempts-delay", "0s"])
    let password = stage.directory.file("alice")
    try AdminAccessTests.Stage.write("alice's secret\n", to: password)
    let start = ContinuousClock.now
    for _ in 0..<8 {
      let guess = try stage.broker.connect()
      try guess.send(
        Hello(
          versions: 1...1, maximumFrame: 1 << 20, keepalive: 0, name: "guess",
          credentials: .password("not alice's secret", user: "alice")), stream: 0)
      #expect(try guess.expect(Fault.self, stream: 0).code == .authenticationFailed)
      guess.close()
    }
    while ContinuousClock.now - start < .seconds(50) {
      let status = try stage.broker.run("status", "--user", "alice", "--password-file", password)
      if status.standardOutput.text.contains("logins were rejected within the last minute") { return true }
      pause(0.2)
    }
    return false
  }
}
