import SluiceIO
import Testing

@testable import SluiceCluster

@Suite("Whether the brokers of other nodes can be reached")
struct PeerChecksTests {
  private static func time(_ milliseconds: Int) -> MonotonicTime {
    MonotonicTime(nanoseconds: UInt64(10_000 + milliseconds) * 1_000_000)
  }

  private static func entry(
    broker: UInt64 = 9, address: String = "b:1", _ state: NodeRecord.State = .live
  ) -> NodeEntry {
    NodeEntry(
      sequence: 1,
      record: NodeRecord(
        writer: 9, count: 1, session: 1, state: state, address: address, version: "1", broker: broker),
      heard: time(0), lastSign: time(0), since: time(0))
  }

  private static let peer = PeerCheck(node: "b", address: "b:1", broker: 9)

  /// The checks of node `a`, which knows `b`.
  private static func checks() -> PeerChecks {
    var checks = PeerChecks(of: "a")
    checks.observed(entry(), of: "b", at: time(0))
    return checks
  }

  @Test("a node that joins is checked once, and what was found is to be stated")
  func reached() {
    var checks = Self.checks()
    #expect(checks.takeDue(at: Self.time(0)) == [Self.peer])
    #expect(checks.takeDue(at: Self.time(10)) == [])
    #expect(checks.unstated == [])
    checks.finished(Self.peer, nil, at: Self.time(20))
    #expect(checks.unstated == ["b"])
    checks.isStated("b")
    // Its renewals contain no new information.
    checks.observed(Self.entry(), of: "b", at: Self.time(500))
    #expect(checks.takeDue(at: Self.time(10_000)) == [] && checks.unstated == [])
    #expect(checks.deadlines(lasting: .seconds(3)) == [])
  }

  @Test("a node that can't be reached is checked again and again, and named after the silence of a dead one")
  func unreachable() {
    var checks = Self.checks()
    var (now, tries) = (0, 0)
    while now < 20_000 {
      for peer in checks.takeDue(at: Self.time(now)) {
        tries += 1
        checks.finished(peer, "connection refused", at: Self.time(now))
      }
      let isNamed = checks.problems(lasting: .seconds(3), at: Self.time(now)) == ["b": "connection refused"]
      #expect(isNamed == (now >= 3_000))
      now += 100
    }
    #expect((6...10).contains(tries))
    #expect(checks.problem(of: "b") == "connection refused" && checks.unstated == [])
    checks.observed(Self.entry(.ended), of: "b", at: Self.time(now))
    #expect(checks.problem(of: "b") == nil && checks.problems(lasting: .zero, at: Self.time(now)) == [:])
  }

  @Test("a node that was started again, or has another address, is another one")
  func another() {
    for entry in [Self.entry(broker: 10), Self.entry(address: "b:2")] {
      var checks = Self.checks()
      _ = checks.takeDue(at: Self.time(0))
      checks.observed(entry, of: "b", at: Self.time(5))
      // The result of a check of the former address says nothing about the new one.
      checks.finished(Self.peer, nil, at: Self.time(10))
      #expect(checks.unstated == [])
      #expect(checks.takeDue(at: Self.time(10)).map(\.node) == ["b"])
    }
  }

  @Test("a node is checked again when a link to it has failed")
  func doubt() {
    var checks = Self.checks()
    _ = checks.takeDue(at: Self.time(0))
    checks.finished(Self.peer, nil, at: Self.time(10))
    checks.isStated("b")
    checks.doubt("b", at: Self.time(1_000))
    #expect(checks.takeDue(at: Self.time(1_000)) == [Self.peer])
    checks.finished(Self.peer, "no route", at: Self.time(1_100))
    #expect(checks.problem(of: "b") == "no route")
    #expect(checks.takeDue(at: Self.time(1_599)) == [] && checks.takeDue(at: Self.time(1_600)) == [Self.peer])
    checks.finished(Self.peer, nil, at: Self.time(1_700))
    #expect(checks.problem(of: "b") == nil)
  }

  @Test("this node itself, and nodes of versions that don't state their broker, aren't checked")
  func without() {
    var checks = PeerChecks(of: "a")
    checks.observed(Self.entry(), of: "a", at: Self.time(0))
    checks.observed(Self.entry(broker: 0), of: "b", at: Self.time(0))
    #expect(checks.takeDue(at: Self.time(0)) == [])
  }
}
