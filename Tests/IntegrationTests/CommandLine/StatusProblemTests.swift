import SluiceWire
import TestSupport
import Testing

/// Problems that only show in counters of the last minute.
@Suite(.onItsOwnThread) struct StatusProblemTests {
  /// Nothing has asked for problems before these logins, whether the admin listener looks for them or the broker itself.
  @Test(arguments: [[], ["--admin", "off"], ["--admin-history", "0s"]])
  func theFirstStatusTellsOfRejectedLogins(_ options: [String]) throws {
    for _ in 0..<8 {
      let (status, age) = try statusAfterRejectedLogins(options)
      // On a machine that takes the better part of a minute for this, the broker may tell of fewer, and rightly.
      guard age < .seconds(50) else { continue }
      #expect(status.contains("logins were rejected within the last minute"), "\(status)")
      return
    }
    throw TestFailure("eight logins and a status took 50 s each time")
  }

  /// What the first status of a broker says, and for how long the oldest of the logins before it may have been rejected by then.
  private func statusAfterRejectedLogins(_ options: [String]) throws -> (status: String, age: Duration) {
    let stage = try AdminAccessTests.Stage(permissions: "alice all >\n", options + ["--attempts-delay", "0s"])
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
    let status = try stage.broker.run("status", "--user", "alice", "--password-file", password)
    return (status.standardOutput.text, ContinuousClock.now - start)
  }
}
