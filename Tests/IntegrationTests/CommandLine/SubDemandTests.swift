import Glibc
import SluiceWire
import TestSupport
import Testing

/// The demand of `sluice sub`, as shown by the broker's admin listener and `sluice topic show`.
@Suite(.onItsOwnThread) struct SubDemandTests {
  private let broker: BrokerProcess

  init() throws {
    broker = try BrokerProcess("--admin", "\(Loopback.freshHost()):0")
    try broker.client().create("t")
  }

  /// The records granted to the topic's only subscriber, those sent, and those that may still be sent; nil means unlimited.
  private struct Demand: Equatable {
    var granted: Int?
    var sent: Int
    var outstanding: Int?

    init(granted: Int?, sent: Int) {
      self.granted = granted
      self.sent = sent
      outstanding = granted.map { $0 - sent }
    }

    init?(_ subscriber: [String: Any]) {
      guard let sent = subscriber["sent"] as? Int else { return nil }
      granted = subscriber["granted"] as? Int
      self.sent = sent
      outstanding = subscriber["outstanding"] as? Int
    }
  }

  private func demand() throws -> Demand? {
    let address = try #require(broker.adminAddress)
    let topic = try object(try RawHTTP.get(address, "/api/topics/t").text)
    return (topic["subscribers"] as? [[String: Any]])?.first.flatMap { Demand($0) }
  }

  private func waitFor(_ expected: Demand) throws {
    var last: Demand?
    try eventually("\(expected); there is \(String(describing: last))", every: 0.03) {
      last = try demand()
      return last == expected
    }
  }

  private func publish(_ count: Int) throws {
    try broker.client("producer").publishAll((0..<count).map { "\($0)" }, to: "t")
  }

  @Test(
    arguments: [
      (["--demand", "7"], 7), (["--demand", "10", "--count", "4"], 4), (["--demand", "unlimited"], nil),
      (["--demand", "unlimited", "--count", "9"], 9), (["--exec", "cat"], 1),
      (["--exec", "cat", "--demand", "3"], 3), (["--demand", "2", "--prefetch", "10"], 10), ([], 256),
      (["--count", "20"], 20), (["--group", "g", "--demand", "6"], 6),
    ] as [([String], Int?)])
  func asMuchIsAskedForAsWasSaid(options: [String], granted: Int?) throws {
    let process = try ChildProcess.sluice(["sub", "t"] + options, server: broker.address)
    try waitFor(Demand(granted: granted, sent: 0))
    let shown = try #require(try broker.shown("t")["subscriptions"] as? [[String: Any]])
    #expect(shown.count == 1 && shown[0]["granted"] as? Int == granted, "\(shown)")
    process.stop()
  }

  @Test func moreIsAskedForWhenAllOfItIsPrinted() throws {
    let process = try broker.sluice("sub", "t", "--demand", "7")
    try waitFor(Demand(granted: 7, sent: 0))
    try publish(3)
    try waitFor(Demand(granted: 7, sent: 3))
    try process.standardOutput.wait(bytes: 6)
    #expect(try demand() == Demand(granted: 7, sent: 3))
    try publish(4)
    try waitFor(Demand(granted: 14, sent: 7))
    // A batch of requested records arrives at once, and the same number is requested again.
    try publish(20)
    try waitFor(Demand(granted: 28, sent: 27))
    process.stop()
  }

  @Test func aCommandThatIsAtWorkIsGivenNoMore() throws {
    try publish(20)
    let command = try HeldCommand()
    let process = try broker.sluice("sub", "t", "--exec", command.text)
    try waitFor(Demand(granted: 1, sent: 1))
    // With `--prefetch`, records beyond the demand wait at the client instead of the broker.
    let ahead = try BrokerProcess("--listen", "127.0.0.1:0")
    try ahead.client().publishAll((0..<20).map { "\($0)" }, to: "t")
    let second = try ahead.sluice("sub", "t", "--exec", command.text, "--prefetch", "5")
    try eventually("five records are on their way") { try ahead.show("t").subscriptions.first?.sent == 5 }
    #expect(try demand() == Demand(granted: 1, sent: 1))
    command.letGo()
    try waitFor(Demand(granted: 21, sent: 20))
    process.stop()
    second.stop()
  }
}
