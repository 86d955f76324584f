import Glibc
import TestSupport
import Testing

/// The broker's notifications to a service manager such as systemd.
@Suite(.onItsOwnThread) struct ServiceManagerTests {
  @Test(arguments: [false, true])
  func theManagerIsToldOfTheWholeLife(isAbstract: Bool) throws {
    let manager = try NotifySocket(isAbstract: isAbstract)
    let broker = try sluiced(["--listen", "127.0.0.1:0"], tells: manager.name)
    #expect(try manager.receive() == ["READY=1"])
    // A service that starts after the broker may connect immediately.
    let listening = try broker.standardOutput.line(startingWith: "sluiced listening on ")
    let client = try RawClient(String(listening.dropFirst("sluiced listening on ".count)))
    try client.shakeHands()

    let before = Deadline.now / 1000
    broker.signal(SIGHUP)
    let reloading = try manager.receive()
    let after = Deadline.now / 1000
    #expect(reloading.first == "RELOADING=1")
    let since = reloading.last.flatMap { UInt64($0.dropFirst("MONOTONIC_USEC=".count)) }
    #expect(since.map { (before...after).contains($0) } == true, "\(reloading)")
    #expect(try manager.receive() == ["READY=1"])

    broker.signal(SIGTERM)
    #expect(try manager.receive() == ["STOPPING=1"])
    #expect(try broker.waitForExit() == .code(0))
    #expect(manager.isSilent)
  }

  @Test func whoCannotStartIsNotReady() throws {
    let first = try BrokerProcess()
    let manager = try NotifySocket(isAbstract: true)
    let second = try sluiced(["--listen", first.address], tells: manager.name)
    #expect(try second.waitForExit() == .code(2))
    #expect(manager.isSilent)
  }

  @Test(arguments: ["/nonexistent/notify", "vsock:2:1234", "@" + String(repeating: "x", count: 200)])
  func aManagerThatCannotBeReachedIsToldOfInTheLog(name: String) throws {
    let broker = try sluiced(["--listen", "127.0.0.1:0"], tells: name)
    try eventually("a warning: \(broker.messages)") {
      broker.standardError.lines.contains { $0.contains("service manager") && $0.contains("READY=1") }
    }
    broker.signal(SIGTERM)
    #expect(try broker.waitForExit() == .code(0))
  }

  private func sluiced(_ options: [String], tells name: String) throws -> ChildProcess {
    try ChildProcess(
      BuiltProduct.path("sluiced"), ["--admin", "off"] + options, environment: ["NOTIFY_SOCKET": name])
  }
}
