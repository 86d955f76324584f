import Glibc
import TestSupport
import Testing

/// The broker's notifications to a service manager with a watchdog.
@Suite(.onItsOwnThread) struct WatchdogTests {
  /// - Parameter watched: the value of `WATCHDOG_PID`, as a word of the shell that becomes the program.
  private func sluiced(_ manager: NotifySocket, watched: String?, patience: String = "60000") throws
    -> ChildProcess
  {
    let variable = watched.map { "WATCHDOG_PID=\($0) " } ?? ""
    return try ChildProcess(
      "/bin/sh",
      ["-c", "\(variable)exec \"$0\" --listen 127.0.0.1:0 --admin off", BuiltProduct.path("sluiced")],
      environment: ["NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": patience])
  }

  @Test(arguments: [nil, "$$", "''"])
  func theManagerHearsNowAndThenThatItWorks(watched: String?) throws {
    let manager = try NotifySocket(isAbstract: true)
    let broker = try sluiced(manager, watched: watched)
    #expect(try manager.receive() == ["READY=1"])
    for _ in 0..<5 { #expect(try manager.receive() == ["WATCHDOG=1"]) }
    broker.signal(SIGTERM)
    var last: [Substring] = []
    repeat { last = try manager.receive() } while last == ["WATCHDOG=1"]
    #expect(last == ["STOPPING=1"])
    #expect(try broker.waitForExit() == .code(0))
  }

  @Test(arguments: [("1", "60000"), (nil, "0"), (nil, "often")] as [(String?, String)])
  func aManagerThatWatchesSomebodyElseOrNobodyHearsNothing(watched: String?, patience: String) throws {
    let manager = try NotifySocket(isAbstract: true)
    let broker = try sluiced(manager, watched: watched, patience: patience)
    #expect(try manager.receive() == ["READY=1"])
    pause(0.2)
    broker.signal(SIGTERM)
    #expect(try manager.receive() == ["STOPPING=1"])
    #expect(try broker.waitForExit() == .code(0))
  }
}
