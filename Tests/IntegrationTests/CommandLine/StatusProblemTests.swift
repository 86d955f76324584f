import TestSupport
import Testing

/// Problems that only show in counters of the last minute.
@Suite(.onItsOwnThread) struct StatusProblemTests {
  /// Nothing has asked for problems before these logins, whether the admin listener looks for them or the broker itself.
  @Test(arguments: [[], ["--admin", "off"], ["--admin-history", "0s"]])
  func theFirstStatusTellsOfRejectedLogins(_ options: [String]) throws {
    let stage = try AdminAccessTests.Stage(permissions: "alice all >\n", options)
    let (password, wrong) = (stage.directory.file("alice"), stage.directory.file("wrong"))
    try AdminAccessTests.Stage.write("alice's secret\n", to: password)
    try AdminAccessTests.Stage.write("not alice's secret\n", to: wrong)
    for _ in 0..<5 {
      try stage.broker.run("topic", "list", "--user", "alice", "--password-file", wrong, code: 1)
    }
    try eventually("status tells of the logins", every: 0.2) {
      let status = try stage.broker.run("status", "--user", "alice", "--password-file", password)
      return status.standardOutput.text.contains("logins were rejected within the last minute")
    }
  }
}
