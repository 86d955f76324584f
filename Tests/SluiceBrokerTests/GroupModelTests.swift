import SluiceIO
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// A group's state compared with ``GroupModel``, event by event, and the final conditions.
struct GroupModelTests {
  /// The state, the model, and the members' deliveries.
  private struct Pair {
    var state: GroupState
    var model: GroupModel
    var now: UInt64 = 0
    /// The assignments to each member that weren't sent yet, and the records sent, each with its delivery number.
    var unsent: [Int: [GroupState.Assignment]] = [:]
    var sent: [Int: [(offset: UInt64, delivery: UInt32)]] = [:]

    init(_ rules: GroupState.Rules, limit: Int) {
      state = GroupState(rules, from: 0, limit: limit)
      model = GroupModel(rules, limit: limit)
    }

    var time: MonotonicTime { MonotonicTime(nanoseconds: now) }

    mutating func distribute() {
      let head = UInt64(model.records.count)
      state.distribute(before: head, now: time)
      while state.mayPass(before: head) {
        let record = model.records[Int(state.frontier)]
        if !record.isWanted {
          state.pass()
        } else if state.wantsRecord(before: head) {
          state.offer(key: record.key, now: time)
        } else {
          break
        }
      }
      model.distribute(now: now)
      let given = Self.singles(state.takeAssignments())
      #expect(given == model.given)
      model.given = []
      for run in given { unsent[run.member, default: []].append(run) }
      state._checkInvariants()
    }

    static func singles(_ runs: [GroupState.Assignment]) -> [GroupState.Assignment] {
      runs.flatMap { run in
        (run.first..<run.first + UInt64(run.count)).map {
          GroupState.Assignment(member: run.member, first: $0, count: 1, delivery: run.delivery)
        }
      }
    }

    mutating func send(_ count: Int, by member: Int) {
      let runs = unsent[member, default: []]
      let gone = runs.prefix(count)
      unsent[member] = Array(runs.dropFirst(count))
      guard !gone.isEmpty else { return }
      if !state.rules.isExplicit {
        for run in gone { model.sent(run.first) }
        state.sent(UInt64(gone.count), by: member, next: unsent[member]?.map(\.first).min())
      }
      sent[member, default: []] += gone.filter { state.holds(member, $0.first, delivery: $0.delivery) }.map {
        ($0.first, $0.delivery)
      }
    }
  }

  private static let kinds: [(String, GroupState.Rules)] = [
    ("automatic", GroupState.Rules()),
    ("filtered", GroupState.Rules(looksAtRecords: true)),
    ("explicit", GroupState.Rules(isExplicit: true)),
    (
      "explicit with limits",
      GroupState.Rules(isExplicit: true, deadline: .milliseconds(50), deliveries: 3, hasDeadLetters: true)
    ),
    ("dropping", GroupState.Rules(isExplicit: true, deadline: .milliseconds(20), deliveries: 2)),
    (
      "with a backoff",
      GroupState.Rules(
        isExplicit: true, deadline: .milliseconds(30), deliveries: 5, hasDeadLetters: true,
        retryBackoff: .init(first: 7, longest: 25))
    ),
    ("by key", GroupState.Rules(isExplicit: true, isOrdered: true, looksAtRecords: true)),
    (
      "by key with a backoff",
      GroupState.Rules(
        isExplicit: true, isOrdered: true, deadline: .milliseconds(30),
        retryBackoff: .init(first: 3, longest: 50), looksAtRecords: true)
    ),
    (
      "by key with limits",
      GroupState.Rules(
        isExplicit: true, isOrdered: true, deadline: .milliseconds(40), deliveries: 3, hasDeadLetters: true,
        looksAtRecords: true)
    ),
  ]

  @Test(arguments: kinds.indices)
  func whateverHappensItDoesWhatTheModelDoes(_ kind: Int) throws {
    let (name, rules) = Self.kinds[kind]
    var random = SeededRandom.printed(for: "\(#function) \(name)")
    for _ in 0..<60 {
      var pair = Pair(rules, limit: Int.random(in: 1...24, using: &random))
      var members: [Int] = []
      for _ in 0..<250 {
        pair.now += UInt64.random(in: 0...8, using: &random) * 1_000_000
        let member = members.randomElement(using: &random)
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<4:
          for _ in 0..<Int.random(in: 1...6, using: &random) {
            pair.model.publish(
              key: Bool.random(using: &random) ? UInt64.random(in: 0...3, using: &random) : nil,
              isWanted: !rules.looksAtRecords || Int.random(in: 0..<4, using: &random) > 0)
          }
        case 4 where members.count < 5:
          members.append(pair.state.join())
        case 5:
          guard let member else { break }
          members.removeAll { $0 == member }
          let unsent = pair.unsent.removeValue(forKey: member) ?? []
          let held = unsent.filter { pair.state.holds(member, $0.first, delivery: $0.delivery) }
          pair.model.leave(member, unsent: Set(held.map(\.first)))
          pair.state.leave(member, unsent: unsent)
        case 6..<10:
          guard let member else { break }
          let room = UInt64.random(in: 0...5, using: &random)
          pair.model.setRoom(room, of: member)
          pair.state.setRoom(room, of: member)
        case 10..<14:
          if let member { pair.send(Int.random(in: 1...4, using: &random), by: member) }
        case 14..<18:
          // Choose from members that have, or had, records; members that left report, too.
          guard rules.isExplicit, let (_, records) = pair.sent.randomElement(using: &random),
            let record = records.randomElement(using: &random)
          else { break }
          let frame = Settle(
            [.acknowledge, .acknowledge, .acknowledge, .retry, .retry, .reject, .extend]
              .randomElement(using: &random)!,
            delivery: record.delivery, firstOffset: record.offset,
            count: [1, 1, 2, 5, 1_000].randomElement(using: &random)!,
            delay: [0, 1, 20, 90, Settle.byBackoff, Settle.byBackoff].randomElement(using: &random)!)
          pair.model.settle(frame, now: pair.now)
          // Settle in parts of a few records each.
          var rest: Settle? = frame
          let part = Int(frame.firstOffset % 7) + 1
          while let frame = rest {
            let (looked, left) = pair.state.settle(frame, atMost: part, now: pair.time)
            #expect(looked <= part)
            rest = left
          }
        case 18:
          if let record = pair.state.nextDeadLetter() {
            #expect(pair.model.records[Int(record.offset)].place == .deadLetter)
            #expect(pair.model.records[Int(record.offset)].deliveries == record.deliveries)
            pair.state.deadLetterDone(record.offset, isKept: true)
            pair.model.deadLetterDone(record.offset)
          }
        default: break
        }
        pair.model.expire(now: pair.now)
        pair.state.expire(now: pair.time)
        pair.distribute()
        #expect(pair.state.frontier == UInt64(pair.model.frontier))
        if rules.isExplicit { #expect(pair.state.floor == UInt64(pair.model.floor)) }
        #expect(pair.state.floor <= UInt64(pair.model.floor))
        #expect(pair.state.counts.dropped == pair.model.dropped)
        #expect(pair.state.delayed == pair.model.delayed)
        #expect(pair.state.nextRetry?.nanoseconds == pair.model.nextRetry)
      }
      try finish(&pair, members)
    }
  }

  /// All members leave except a new one that acknowledges everything: every record completes once.
  private func finish(_ pair: inout Pair, _ members: [Int]) throws {
    for member in members {
      let unsent = pair.unsent.removeValue(forKey: member) ?? []
      let held = unsent.filter { pair.state.holds(member, $0.first, delivery: $0.delivery) }
      pair.model.leave(member, unsent: Set(held.map(\.first)))
      pair.state.leave(member, unsent: unsent)
    }
    let last = pair.state.join()
    for _ in 0..<10_000 where !pair.state.isDone(through: UInt64(pair.model.records.count)) {
      pair.now += 50_000_000
      pair.model.expire(now: pair.now)
      pair.state.expire(now: pair.time)
      pair.model.setRoom(7, of: last)
      pair.state.setRoom(7, of: last)
      pair.distribute()
      for run in pair.unsent[last] ?? [] where pair.state.rules.isExplicit {
        let frame = Settle(.acknowledge, delivery: run.delivery, firstOffset: run.first, count: 1)
        pair.model.settle(frame, now: pair.now)
        pair.state.settle(frame, now: pair.time)
      }
      pair.send(.max, by: last)
      while let record = pair.state.nextDeadLetter() {
        pair.state.deadLetterDone(record.offset, isKept: true)
        pair.model.deadLetterDone(record.offset)
      }
    }
    #expect(pair.state.isDone(through: UInt64(pair.model.records.count)))
    #expect(pair.state.floor == UInt64(pair.model.records.count))
    #expect(pair.model.ends.allSatisfy { $0 == 1 })
  }
}
