import TestSupport
import Testing

@testable import SluiceDoors

/// The process and connection that own a session, computed from the records of the log.
@Suite struct MQTTRosterTests {
  private static let key = MQTTHub.Key(identity: "alice", clientID: "c")

  /// A log, and a roster that has read all of it.
  private final class Log {
    var roster = MQTTRoster()
    var records: [(key: MQTTHub.Key?, record: MQTTRosterRecord)] = []
    var effects: [MQTTRoster.Effect] = []
    var serials: [UInt64: UInt64] = [:]

    @discardableResult
    func write(
      _ process: UInt64, _ kind: MQTTRosterRecord.Kind, _ key: MQTTHub.Key? = MQTTRosterTests.key
    ) -> Bool {
      serials[process, default: 0] += 1
      let record = MQTTRosterRecord(process: process, serial: serials[process] ?? 0, kind: kind)
      return write(record, key)
    }

    @discardableResult
    func write(_ record: MQTTRosterRecord, _ key: MQTTHub.Key?) -> Bool {
      records.append((key, record))
      return roster.apply(record, of: key, &effects)
    }

    func take() -> [MQTTRoster.Effect] {
      defer { effects = [] }
      return effects
    }
  }

  private static func snapshot(_ roster: MQTTRoster, partBytes: Int) -> [[UInt8]] {
    var writer = MQTTRoster.SnapshotWriter(roster)
    var parts: [[UInt8]] = []
    while let part = writer.next(bytes: partBytes) { parts.append(part) }
    return parts
  }

  private static func log() -> Log {
    let log = Log()
    for process in [1, 2, 3] as [UInt64] { log.write(process, .hello(node: "n\(process)", time: 0), nil) }
    _ = log.take()
    return log
  }

  private static func state(_ text: String, will: String? = nil, delay: UInt32 = 0) -> MQTTRosterState {
    MQTTRosterState(
      bytes: Array(text.utf8), expiry: 60, will: will.map { Array($0.utf8) },
      willDelay: will == nil ? 0 : delay)
  }

  private static func claim(_ process: UInt64, _ number: UInt64) -> MQTTClaim {
    MQTTClaim(process: process, number: number)
  }

  /// Entries without connections are packed; unpacking returns the written entry.
  @Test func sessionsThatWereLeftAreAsTheyWereLeft() throws {
    let log = Self.log()
    var sessions: [MQTTHub.Key: MQTTKeptSession] = [:]
    for round in 0..<3 {
      for number in 0..<20 {
        let key = MQTTHub.Key(identity: "", clientID: "c\(number)")
        var session = MQTTKeptSession(
          state: [1, 2, 3], producer: UInt64(number), topics: [:], positions: [:], exact: [:], expiry: 60)
        for topic in 0..<(number + round) % 7 {
          session.topics[UInt32(topic)] = MQTTKnownTopic(name: "t.\(topic * (round + 1))", epoch: 9)
          session.positions[1, default: MQTTPositions()].offsets[UInt32(topic)] = UInt64(topic * 1000)
        }
        log.write(1, .claim(number: UInt64(round), isClean: false), key)
        for case .granted(_, _, let state, let leftAt, _) in log.take() {
          #expect(leftAt == (round == 0 ? nil : Int64(round - 1)))
          #expect((try? MQTTKeptSession(decoding: state.bytes)) == sessions[key])
        }
        log.write(
          1, .release(number: UInt64(round), MQTTRosterState(session), time: Int64(round), mourns: false),
          key)
        sessions[key] = session
      }
      var restored = try MQTTRoster(parts: Self.snapshot(log.roster, partBytes: 500))
      for (key, session) in sessions {
        #expect(try MQTTKeptSession(decoding: #require(restored.entries[key]).state.bytes) == session)
      }
      #expect(restored.tally == log.roster.tally)
      #expect(restored.tally.count == 20)
      #expect(restored.entries.expired(at: Int64(60_000 + round)).count == 20)
      #expect(restored.entries.expired(at: 59_000).isEmpty)
      // Their topics go with them.
      for key in sessions.keys { restored.restore(MQTTRoster.Entry(), key) }
      #expect(restored.entries == MQTTRosterEntries())
      #expect(restored.tally.bytes == 0)
    }
  }

  @Test func theNextConnectionHasWhatTheOneBeforeItHasWrittenLast() {
    let log = Self.log()
    log.write(1, .claim(number: 7, isClean: false))
    #expect(log.take() == [.granted(Self.key, Self.claim(1, 7), MQTTRosterState(), leftAt: nil)])
    log.write(1, .state(number: 7, Self.state("first")))
    log.write(2, .claim(number: 1, isClean: false))
    #expect(log.take() == [.lost(Self.key, Self.claim(1, 7), isClean: false)])
    #expect(log.write(1, .state(number: 7, Self.state("second"))))
    log.write(1, .release(number: 7, Self.state("last"), time: 1000, mourns: false))
    #expect(log.take() == [.granted(Self.key, Self.claim(2, 1), Self.state("last"), leftAt: 1000)])
    #expect(!log.write(1, .state(number: 7, Self.state("late"))))
  }

  @Test func theLastOfSeveralClaimsWins() {
    let log = Self.log()
    log.write(1, .claim(number: 1, isClean: false))
    log.write(2, .claim(number: 1, isClean: false))
    _ = log.take()
    log.write(3, .claim(number: 1, isClean: false))
    #expect(log.take().first == .lost(Self.key, Self.claim(2, 1), isClean: false))
    log.write(1, .release(number: 1, Self.state("s"), time: 0, mourns: false))
    #expect(log.roster.has(Self.claim(3, 1), Self.key))
  }

  @Test func aProcessThatIsGoneWritesNothingAnyMore() {
    let log = Self.log()
    log.write(1, .claim(number: 1, isClean: false))
    log.write(1, .state(number: 1, Self.state("s", will: "w", delay: 5)))
    log.write(2, .claim(number: 1, isClean: false))
    _ = log.take()
    log.write(2, .gone(process: 1, time: 50), nil)
    let former = Self.state("s", will: "w", delay: 5)
    #expect(
      log.take().contains(
        .granted(Self.key, Self.claim(2, 1), Self.state("s"), leftAt: 50, former: former)))
    #expect(!log.write(1, .state(number: 1, Self.state("late"))))
    #expect(!log.write(1, .claim(number: 2, isClean: true)))
    // The client reconnects before its will's delay has passed.
    #expect(log.roster.bereaved.isEmpty)
  }

  @Test func aNodeThatBeginsAgainHasEndedBefore() {
    let log = Self.log()
    log.write(1, .claim(number: 1, isClean: false))
    log.write(1, .state(number: 1, Self.state("s", will: "w", delay: 5)))
    _ = log.take()
    log.write(4, .hello(node: "n1", time: 70), nil)
    #expect(log.roster.processes.keys.sorted() == [2, 3, 4])
    #expect(log.roster.entries[Self.key]?.due.map(\.delay) == [5])
    #expect(log.roster.entries[Self.key]?.leftAt == 70)
    log.write(4, .willDone(Self.claim(1, 1)))
    #expect(log.roster.bereaved.isEmpty)
  }

  @Test func aCleanStartEndsTheSessionAndItsWillIsDueNow() {
    let log = Self.log()
    log.write(1, .claim(number: 1, isClean: false))
    log.write(1, .release(number: 1, Self.state("s", will: "w", delay: 5), time: 0, mourns: true))
    _ = log.take()
    log.write(2, .claim(number: 1, isClean: true))
    #expect(
      log.take() == [
        .willNow(Self.key, Self.claim(1, 1)),
        .granted(Self.key, Self.claim(2, 1), MQTTRosterState(), leftAt: 0, former: Self.state("s")),
      ])
  }

  @Test func partsOfASnapshotAreNoLongerThanTheLongestEntry() {
    let log = Self.log()
    for number in 0..<8 as Range<UInt64> {
      let key = MQTTHub.Key(identity: "", clientID: "c\(number)")
      log.write(1, .claim(number: number, isClean: false), key)
      let bytes = [UInt8](repeating: 1, count: number % 2 == 0 ? 900 : 5000)
      log.write(1, .state(number: number, MQTTRosterState(bytes: bytes, expiry: 60)), key)
    }
    let parts = Self.snapshot(log.roster, partBytes: 2000)
    #expect(parts.allSatisfy { $0.count < 5100 }, "\(parts.map(\.count))")
    #expect((try? MQTTRoster(parts: parts))?.entries == log.roster.entries)
  }

  /// A connection whose client gets no answer restores the earlier state, including a will that waited.
  @Test func aClaimKnowsWhatThereWas() {
    let log = Self.log()
    log.write(1, .claim(number: 1, isClean: false))
    log.write(1, .release(number: 1, Self.state("s", will: "w", delay: 5), time: 9, mourns: true))
    _ = log.take()
    log.write(2, .claim(number: 1, isClean: false))
    let former = Self.state("s", will: "w", delay: 5)
    #expect(
      log.take() == [
        .willDropped(Self.key, Self.claim(1, 1)),
        .granted(Self.key, Self.claim(2, 1), Self.state("s"), leftAt: 9, former: former),
      ])
    log.write(2, .release(number: 1, former, time: 9, mourns: true))
    let entry = log.roster.entries[Self.key]
    #expect(entry?.state == Self.state("s"))
    #expect(entry?.leftAt == 9)
    #expect(entry?.due == [MQTTRosterWill(claim: Self.claim(2, 1), delay: 5, bytes: Array("w".utf8))])
  }

  @Test func aConnectionThatDoesNotLeaveLosesItsSession() {
    let log = Self.log()
    log.write(1, .claim(number: 1, isClean: false))
    log.write(1, .state(number: 1, Self.state("s")))
    log.write(2, .claim(number: 1, isClean: false))
    log.write(2, .seize(number: 1))
    #expect(log.roster.has(Self.claim(2, 1), Self.key))
    #expect(!log.write(1, .release(number: 1, Self.state("late"), time: 0, mourns: true)))
  }

  @Test func whatComesAgainCountsOnce() {
    let log = Self.log()
    log.write(1, .claim(number: 1, isClean: false))
    log.write(1, .state(number: 1, Self.state("first")))
    log.write(1, .state(number: 1, Self.state("second")))
    let again = log.records.suffix(2)
    for (key, record) in again { #expect(!log.write(record, key)) }
    #expect(log.roster.entries[Self.key]?.state == Self.state("second"))
  }

  @Test func recordsAreReadAsTheyWereWritten() throws {
    let will = Self.state("s", will: "w", delay: 9)
    let kinds: [MQTTRosterRecord.Kind] = [
      .hello(node: "n", time: -1), .gone(process: 5, time: 3), .claim(number: 1, isClean: true),
      .state(number: 2, will), .release(number: 3, MQTTRosterState(), time: 4, mourns: true),
      .seize(number: 5),
      .willDone(Self.claim(6, 7)), .expired(leftAt: 8), .snapshot(offset: 9, part: 1, bytes: [1, 2]),
      .snapshotEnd(offset: 9, parts: 2),
    ]
    for kind in kinds {
      let record = MQTTRosterRecord(process: 11, serial: 12, kind: kind)
      let encoded = record.encoded
      #expect(encoded.withUnsafeBytes { MQTTRosterRecord(decoding: $0) } == record)
      for count in 0..<encoded.count {
        #expect(encoded[..<count].withUnsafeBytes { MQTTRosterRecord(decoding: $0) } == nil)
      }
    }
  }

  /// Processes start, end, claim, leave and seize at random, and write snapshots. A process that reads from a snapshot on has the same state as those that
  /// have read all records.
  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func allProcessesHaveTheSame(seed: UInt64) throws {
    var random = TestSupport.SeededRandom(seed: seed)
    let log = Log()
    var (living, snapshots): ([UInt64], [Int]) = ([], [])
    var lastProcess: UInt64 = 0
    func key() -> MQTTHub.Key {
      MQTTHub.Key(identity: "i", clientID: "c\(Int.random(in: 0..<4, using: &random))")
    }
    for step in 0..<400 {
      let roster = log.roster
      let process = living.randomElement(using: &random) ?? 0
      let claims = roster.entries.flatMap { key, entry in
        [entry.holder, entry.waiting?.claim].compactMap(\.self).map { (key, $0) }
      }.sorted { ($0.0, $0.1.number) < ($1.0, $1.1.number) }
      let (chosen, claim) = claims.randomElement(using: &random) ?? (key(), Self.claim(process, 0))
      let will = Bool.random(using: &random) ? "w\(step)" : nil
      let state = Self.state("s\(step)", will: will, delay: UInt32.random(in: 0...1, using: &random))
      switch random.next() % 12 {
      case 0:
        lastProcess += 1
        living.append(lastProcess)
        log.write(lastProcess, .hello(node: "n\(random.next() % 4)", time: Int64(step)), nil)
      case _ where process == 0: continue
      case 1 where random.next() % 4 == 0:
        // The removed process still writes.
        let gone = living.randomElement(using: &random) ?? 0
        log.write(process, .gone(process: gone, time: Int64(step)), nil)
      case 2...4: log.write(process, .claim(number: UInt64(step), isClean: random.next() % 4 == 0), key())
      case 5, 6: log.write(claim.process, .state(number: claim.number, state), chosen)
      case 7:
        log.write(
          claim.process, .release(number: claim.number, state, time: Int64(step), mourns: true), chosen)
      case 8: log.write(claim.process, .seize(number: claim.number), chosen)
      case 9:
        if let (key, entry) = roster.entries.first(where: { !$0.entry.due.isEmpty }),
          let will = entry.due.first
        {
          log.write(process, .willDone(will.claim), key)
        }
      case 10:
        // Records that are written twice.
        for (key, record) in log.records.suffix(3) { log.write(record, key) }
      default:
        let offset = log.records.count
        for (index, part) in Self.snapshot(roster, partBytes: 40).enumerated() {
          log.write(process, .snapshot(offset: UInt64(offset), part: UInt32(index), bytes: part), nil)
          if random.next() % 3 == 0 {
            log.write(process, .claim(number: UInt64(1000 + offset + index), isClean: false), key())
          }
        }
        let parts = Self.snapshot(roster, partBytes: 40).count
        log.write(process, .snapshotEnd(offset: UInt64(offset), parts: UInt32(parts)), nil)
        snapshots.append(offset)
      }
      for (_, entry) in log.roster.entries {
        for claim in [entry.holder, entry.waiting?.claim].compactMap(\.self) {
          #expect(log.roster.processes[claim.process] != nil)
        }
        #expect(entry.waiting == nil || entry.holder != nil)
      }
    }
    for first in [0] + snapshots {
      var replica = MQTTRosterReplica()
      var effects: [MQTTRoster.Effect] = []
      replica.begin(first: UInt64(first))
      for (offset, (key, record)) in log.records.enumerated() where offset >= first {
        replica.take(record, of: key, at: UInt64(offset), &effects)
      }
      #expect(replica.isLoaded)
      #expect(replica.roster == log.roster, "from \(first) on")
    }
  }
}
