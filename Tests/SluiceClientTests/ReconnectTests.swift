import SluiceIO
import Testing

@testable import SluiceClient

/// The order and times of connection attempts to several servers.
@Suite struct ReconnectTests {
  private func policy(_ configure: (inout ReconnectPolicy) -> Void = { _ in }) -> ReconnectPolicy {
    var policy = ReconnectPolicy()
    policy.initialDelay = .milliseconds(100)
    policy.maximumDelay = .seconds(1)
    policy.jitter = 0
    configure(&policy)
    return policy
  }

  private func time(_ milliseconds: UInt64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
  }

  @Test func theFirstTimeEachServerIsTriedOnce() {
    var reconnect = Reconnect(policy(), servers: 3, seed: 1)
    #expect(reconnect.first(at: time(0)) == .connect(server: 0))
    #expect(reconnect.failed(at: time(1)) == .connect(server: 1))
    #expect(reconnect.failed(at: time(2)) == .connect(server: 2))
    #expect(reconnect.failed(at: time(3)) == .giveUp)
  }

  @Test func theFirstTimeMayGoOnAsWell() {
    var reconnect = Reconnect(policy { $0.includesFirst = true }, servers: 1, seed: 1)
    #expect(reconnect.first(at: time(0)) == .connect(server: 0))
    #expect(reconnect.failed(at: time(1)) == .wait(.milliseconds(100)))
    #expect(reconnect.waited() == .connect(server: 0))
    #expect(reconnect.failed(at: time(2)) == .wait(.milliseconds(200)))
  }

  @Test func withoutAPolicyALossIsTheEnd() {
    var reconnect = Reconnect(nil, servers: 2, seed: 1)
    #expect(reconnect.first(at: time(0)) == .connect(server: 0))
    reconnect.connected(at: time(1))
    #expect(reconnect.lost(at: time(2)) == .giveUp)
  }

  @Test func theNextServerIsTriedFirstAndEachBeforeTheNextWait() {
    var reconnect = Reconnect(policy(), servers: 2, seed: 1)
    _ = reconnect.first(at: time(0))
    reconnect.connected(at: time(1))
    #expect(reconnect.lost(at: time(5_000)) == .wait(.milliseconds(100)))
    #expect(reconnect.waited() == .connect(server: 1))
    #expect(reconnect.failed(at: time(5_200)) == .connect(server: 0))
    #expect(reconnect.failed(at: time(5_300)) == .wait(.milliseconds(200)))
    #expect(reconnect.waited() == .connect(server: 1))
    #expect(reconnect.attempts == 3)
    reconnect.connected(at: time(5_500))
    #expect(reconnect.lost(at: time(9_000)) == .wait(.milliseconds(100)))
    #expect(reconnect.waited() == .connect(server: 0))
    #expect(reconnect.attempts == 1)
  }

  @Test func waitsGrowUpToTheLongest() {
    var reconnect = Reconnect(policy { $0.multiplier = 3 }, servers: 1, seed: 1)
    _ = reconnect.first(at: time(0))
    reconnect.connected(at: time(0))
    var waits = [reconnect.lost(at: time(1))]
    for _ in 0..<4 {
      _ = reconnect.waited()
      waits.append(reconnect.failed(at: time(2)))
    }
    #expect(waits == [100, 300, 900, 1_000, 1_000].map { .wait(.milliseconds($0)) })
  }

  @Test func aBrokerThatBreaksDownAtOnceIsLeftAloneForLonger() {
    var reconnect = Reconnect(policy(), servers: 1, seed: 1)
    _ = reconnect.first(at: time(0))
    reconnect.connected(at: time(0))
    var waits: [Reconnect.Step] = []
    for round in 1...4 as ClosedRange<UInt64> {
      waits.append(reconnect.lost(at: time(round * 10)))
      _ = reconnect.waited()
      reconnect.connected(at: time(round * 10 + 1))
    }
    #expect(waits == [100, 200, 400, 800].map { .wait(.milliseconds($0)) })
    #expect(reconnect.lost(at: time(5_000)) == .wait(.milliseconds(100)))
  }

  @Test func chanceLeavesOffAPartOfTheWaitAndNoMore() {
    for seed in 1...200 as ClosedRange<UInt64> {
      var reconnect = Reconnect(policy { $0.jitter = 0.25 }, servers: 1, seed: seed)
      _ = reconnect.first(at: time(0))
      reconnect.connected(at: time(0))
      guard case .wait(let delay) = reconnect.lost(at: time(1)) else {
        Issue.record("no wait")
        continue
      }
      #expect(delay >= .milliseconds(75) && delay <= .milliseconds(100))
    }
  }

  @Test func theLastAttemptComesWhenTheTimeIsUp() {
    var reconnect = Reconnect(policy { $0.giveUpAfter = .milliseconds(250) }, servers: 1, seed: 1)
    _ = reconnect.first(at: time(0))
    reconnect.connected(at: time(0))
    #expect(reconnect.lost(at: time(1_000)) == .wait(.milliseconds(100)))
    _ = reconnect.waited()
    #expect(reconnect.failed(at: time(1_100)) == .wait(.milliseconds(150)))
    #expect(reconnect.waited() == .connect(server: 0))
    #expect(reconnect.failed(at: time(1_250)) == .giveUp)
  }

  @Test func attemptsAreCounted() {
    var reconnect = Reconnect(policy { $0.attempts = 3 }, servers: 2, seed: 1)
    _ = reconnect.first(at: time(0))
    reconnect.connected(at: time(0))
    _ = reconnect.lost(at: time(1))
    _ = reconnect.waited()
    #expect(reconnect.failed(at: time(2)) == .connect(server: 0))
    #expect(reconnect.failed(at: time(3)) == .wait(.milliseconds(200)))
    _ = reconnect.waited()
    #expect(reconnect.failed(at: time(4)) == .giveUp)
  }

  @Test(arguments: [-1, 0, .infinity, -.infinity, .nan] as [Double])
  func settingsThatMakeNoSenseDoNoHarm(value: Double) {
    let policy = policy {
      $0.jitter = value
      $0.multiplier = value
      $0.initialDelay = value < 0 ? .seconds(-1) : .zero
    }
    var reconnect = Reconnect(policy, servers: 1, seed: 1)
    _ = reconnect.first(at: time(0))
    reconnect.connected(at: time(0))
    var steps = [reconnect.lost(at: time(1))]
    for _ in 0..<5 { steps.append(reconnect.failed(at: time(2))) }
    #expect(steps.allSatisfy { if case .wait(let delay) = $0 { delay >= .zero } else { false } })
  }

  @Test func manyClientsSpreadThemselves() {
    let starts = Set(
      (1...100 as ClosedRange<UInt64>).map { seed in
        var reconnect = Reconnect(policy { $0.startsAnywhere = true }, servers: 3, seed: seed)
        return "\(reconnect.first(at: time(0)))"
      })
    #expect(starts.count == 3)
  }
}
