import Glibc
import SluiceBroker
import SluiceIO
import TestSupport
import Testing

@testable import SluiceDaemon

@Suite("Who watches over the process")
struct WatchdogTests {
  private func interval(_ environment: [String: String]) -> Duration? {
    Watchdog.interval(of: 77) { environment[$0] }
  }

  @Test("is told twice in the time that it has patience, if it watches at all, and this process")
  func environment() {
    #expect(interval(["WATCHDOG_USEC": "30000000"]) == .seconds(15))
    #expect(interval(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "77"]) == .seconds(15))
    #expect(interval(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": ""]) == .seconds(15))
    #expect(interval(["WATCHDOG_USEC": "1"]) == .milliseconds(1))
    #expect(interval(["WATCHDOG_USEC": "\(Int64.max)"]) == .microseconds(Int64.max) / 2)
    for text in ["", "0", "-5", "30s", "\(UInt64.max)"] { #expect(interval(["WATCHDOG_USEC": text]) == nil) }
    for text in ["78", "-77", "x"] {
      #expect(interval(["WATCHDOG_USEC": "1000", "WATCHDOG_PID": text]) == nil)
    }
    #expect(interval([:]) == nil)
  }

  @Test("a round is over when all have answered, and no other begins before")
  func rounds() {
    var round = LivenessRound()
    let early = round.answered(by: 0)
    #expect(!early)
    for _ in 0..<2 {
      let begins = (round.begin(3), round.begin(3))
      #expect(begins == (true, false))
      let ends = [2, 0, 2, 3, 1, 1].map { round.answered(by: $0) }
      #expect(ends == [false, false, false, false, true, false])
    }
  }

  @Test("hears nothing while a loop of the broker's hangs, and again when it goes on")
  func hangingLoop() throws {
    let group = try LoopGroup.threads(count: 2)
    let signals = try EpollLoop.start(name: "signals")
    defer {
      signals.stop()
      signals.join()
      group.stopThreads()
    }
    let socket = try NotifySocket(isAbstract: true)
    let manager = ServiceManager(Logger(level: .error, format: .text)) {
      $0 == "NOTIFY_SOCKET" ? socket.name : nil
    }
    let broker = try Broker(BrokerConfiguration(), network: SocketNetwork(), group: group)
    let watchdog = Watchdog(broker, notifying: manager, every: .milliseconds(5), on: signals)
    watchdog.start()
    for _ in 0..<3 { #expect(try socket.receive() == ["WATCHDOG=1"]) }

    let (hangs, goesOn) = (Flag(), Flag())
    defer { goesOn.raise() }
    group.loops[1].execute {
      hangs.raise()
      while !goesOn.isRaised { pause(0.001) }
    }
    try eventually("the loop hangs") { hangs.isRaised }
    // Earlier replies are reported then, and nothing after that.
    for loop in [group.loops[0], signals] as [any EventLoop] {
      let hasComeRound = Flag()
      loop.execute { hasComeRound.raise() }
      try eventually("\(loop) comes round") { hasComeRound.isRaised }
    }
    while !socket.isSilent {}
    pause(0.05)
    #expect(socket.isSilent)
    goesOn.raise()
    for _ in 0..<3 { #expect(try socket.receive() == ["WATCHDOG=1"]) }
    withExtendedLifetime(watchdog) {}
  }
}
