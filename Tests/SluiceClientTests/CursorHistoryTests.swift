import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceClient

/// A durable cursor across many subscribers that are killed, disconnected, cancelled or closed while records arrive.
@Suite struct CursorHistoryTests {
  @Test(arguments: 1...60 as ClosedRange<UInt64>)
  func everyRecordComesAndNoneAgainThatWasCommitted(seed: UInt64) throws {
    try History(seed: seed).play()
  }

  private final class History {
    private let stage: Stage
    private var random: TestSupport.SeededRandom
    private let observer: Client
    private let publisher: Client
    private let total = 300
    private var published = 0
    /// All offsets that any subscriber received.
    private var seen: Set<UInt64> = []

    init(seed: UInt64) throws {
      random = TestSupport.SeededRandom(seed: seed)
      var conditions = SimulatedConditions.calm
      conditions.latency = .microseconds(10)...Duration.milliseconds(Int.random(in: 1...20, using: &random))
      conditions.shortWriteOneIn = 4
      conditions.partialReadOneIn = 4
      stage = try Stage(seed: seed, conditions: conditions)
      observer = try stage.client("observer")
      publisher = try stage.client("publisher")
    }

    private func pick(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    private func publish() throws {
      let count = min(pick(0...20), total - published)
      try stage.publish((published..<published + count).map { Message("\($0)") }, to: "t", with: publisher)
      published += count
    }

    private func place() throws -> UInt64 {
      try stage.wait { observer.cursors(of: "t", completion: $0) }.first?.nextOffset ?? 0
    }

    func play() throws {
      try publish()
      var lives = 0
      while seen.count < total {
        try live(lives)
        try publish()
        lives += 1
        try #require(lives < 2_000, "\(seen.count) records after \(lives) lives")
      }
      #expect(seen == Set(0..<UInt64(total)))
      // The last subscriber may have ended before its commit arrived; an undisturbed one completes it.
      let last = Recorder<TopicRecord>()
      observer.topic("t", cursor: "c").subscribe(last)
      stage.world.run(for: .seconds(2))
      #expect(try place() == UInt64(total))
    }

    /// Runs one subscriber from start to end; it ends in one of several ways.
    private func live(_ number: Int) throws {
      let persists = pick(0...1) == 0
      let client = try persists ? stage.persistentClient("s\(number)") : stage.client("s\(number)")
      let loop = client.core.loop as! SimulatedLoop
      let before = try place()
      var offsets: [UInt64] = []
      var committed: UInt64 = 0
      let byHand = pick(0...2) == 0
      let demand = pick(1...40)
      let recorder = Recorder<TopicRecord>(initial: .max(demand)) { [self] recorder, record in
        offsets.append(record.offset)
        if byHand, pick(0...3) == 0 {
          record.commit()
          committed = record.offset + 1
        }
        return pick(0...3) == 0 ? .max(pick(1...4)) : .none
      }
      let prefetch = pick(0...2) == 0 ? SubscriptionPlan.Prefetch.keepFull(pick(1...20)) : .byRequest
      client.topic(
        "t", cursor: .init("c", commit: byHand ? .manual : .automatic), prefetch: prefetch
      ).subscribe(recorder)
      stage.world.run(for: .milliseconds(pick(0...400)))
      if persists, pick(0...1) == 0 {
        stage.latestConnection(of: loop)?.reset()
        try publish()
        stage.world.run(for: .milliseconds(pick(0...3_000)))
      }
      let manner = pick(0...3)
      switch manner {
      case 0: recorder.subscription?.cancel()
      case 1: client.close()
      case 2: stage.world.network.crash(loop)
      // The subscription is cancelled below.
      default: break
      }
      let heardUntilThen = offsets
      stage.world.run(for: .milliseconds(500))
      if manner < 3 { #expect(offsets == heardUntilThen) }
      // The subscription starts at the cursor's position, and gets consecutive offsets.
      if let first = offsets.first {
        #expect(first == before)
        #expect(offsets == Array(first..<first + UInt64(offsets.count)))
      }
      if manner == 3 {
        recorder.subscription?.cancel()
        stage.world.run(for: .milliseconds(500))
      }
      let after = try place()
      #expect(after >= before)
      let dealtWith = byHand ? max(before, committed) : max(before, offsets.last.map { $0 + 1 } ?? 0)
      #expect(after <= dealtWith)
      // A client that cancels sends its last commit, if its connection is up.
      if manner == 0, !persists { #expect(after == dealtWith) }
      seen.formUnion(offsets)
      if byHand {
        // Uncommitted records are delivered again, so forget them.
        seen = seen.filter { $0 < after }
      }
    }
  }
}
