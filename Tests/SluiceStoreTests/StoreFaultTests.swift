import SluiceWire
import TestSupport
import Testing

@testable import SluiceStore
@testable import SluiceStoreLMDB

/// Effects of disk faults on a store in a file: a commit fails as a whole, and has no other effect.
@Suite struct StoreFaultTests {
  /// Faults from some call on.
  struct Scenario: CustomTestStringConvertible, Sendable {
    var calls: DiskWatch.Calls
    var fault: DiskWatch.Fault
    /// The number of consecutive calls that fail.
    var count: Int64

    var testDescription: String { "\(calls.rawValue) \(fault) \(count)" }
  }

  static let scenarios: [Scenario] = {
    let inCommits: [DiskWatch.Calls] = [.writes, .syncs, [.writes, .syncs]]
    var all: [Scenario] = []
    for calls in inCommits {
      for fault in DiskWatch.Fault.allCases {
        if calls == .syncs, fault == .short { continue }
        for count in fault == .firstDoneButSaidToFail ? [2, 3] : [1, 2, 40] as [Int64] {
          all.append(Scenario(calls: calls, fault: fault, count: count))
        }
      }
    }
    for calls in [.opens, .maps] as [DiskWatch.Calls] {
      all.append(Scenario(calls: calls, fault: .inputOutputError, count: 1))
      all.append(Scenario(calls: calls, fault: .noSpace, count: 2))
    }
    return all
  }()

  private static func options() -> LMDBStore.Options {
    var options = LMDBStore.Options()
    options.limit = 64 << 20
    return options
  }

  /// Every call in turn is the first one to fail.
  @Test(arguments: scenarios)
  func commitsSucceedOrChangeNothing(_ scenario: Scenario) throws {
    var call: Int64 = 0
    // If many fail in a row, most runs are the same whichever call is the first.
    let step = scenario.count == 1 ? 1 : scenario.count == 2 ? 3 : 7
    while try play(scenario, from: call) { call += Int64(step) }
    #expect(call > 0)
  }

  /// Returns whether that many calls were made.
  private func play(_ scenario: Scenario, from call: Int64) throws -> Bool {
    let scratch = try ScratchDirectory()
    let watch = try DiskWatch(scratch.path)
    var workload = StoreWorkload(seed: 7)
    watch.fail(scenario.calls, after: call, count: scenario.count, scenario.fault)
    do {
      var store: LMDBStore? = try open(scratch, watch)
      for round in 0..<11 {
        try step(#require(store), &workload)
        // By then the faults must have ended.
        if round == 7 { watch.heal() }
        if round == 4 || round == 9 {
          try reopen(&store, scratch, watch, &workload, isClean: round == 4)
        }
      }
      try store?.check(against: workload.model)
      try reopen(&store, scratch, watch, &workload, isClean: false)
    } catch {
      throw TestFailure("call \(call): \(error)")
    }
    return watch.failures > 0
  }

  private func step(_ store: LMDBStore, _ workload: inout StoreWorkload) throws {
    let (changes, after) = workload.commit()
    do {
      try store.commit(changes)
      workload.adopt(after)
    } catch {
      try #require([.full, .failed].contains(error.kind))
      try #require(error.message.contains("couldn't"))
    }
    _ = try? store.reclaim()
    // Readers continue, whatever the result of the commit.
    let id = TopicID(rawValue: .random(in: 0..<workload.model.nextTopic.rawValue, using: &workload.random))
    try readable(store) {
      try same(store.contents().topics, workload.model.contents.topics, "the topics")
      try store.check(id, against: workload.model)
    }
  }

  /// A broken environment is reopened. That may fail while opening files fails; then the next call tries again.
  private func readable(_ store: LMDBStore, _ body: () throws -> Void) throws {
    do {
      try body()
    } catch let error as StoreError where error.kind == .failed {
      try body()
    }
  }

  private func open(_ scratch: ScratchDirectory, _ watch: DiskWatch) throws -> LMDBStore {
    do {
      return try LMDBStore.open(at: scratch.path, Self.options())
    } catch {
      try #require([.full, .failed].contains(error.kind), "\(error)")
      try #require(watch.failures > 0)
      watch.heal()
      return try LMDBStore.open(at: scratch.path, Self.options())
    }
  }

  private func reopen(
    _ store: inout LMDBStore?, _ scratch: ScratchDirectory, _ watch: DiskWatch,
    _ workload: inout StoreWorkload, isClean: Bool
  ) throws {
    if isClean {
      do {
        try store?.close()
      } catch {
        watch.heal()
        try store?.close()
      }
      workload.reopened(cleanly: true)
    }
    store = nil
    store = try open(scratch, watch)
    try store?.check(against: workload.model, isJustOpened: true)
  }

  /// After an error in writing the page that completes a commit, LMDB requires reopening.
  @Test(arguments: DiskWatch.Fault.allCases)
  func readersGoOnThroughAFaultThatBreaksTheEnvironment(_ fault: DiskWatch.Fault) throws {
    let scratch = try ScratchDirectory()
    let watch = try DiskWatch(scratch.path)
    let id = TopicID(rawValue: 1)
    let store = try LMDBStore.open(at: scratch.path, Self.options())
    try store.add(id, row: .named("a"), payloads: [[0]])
    let isOver = Flag()
    let read: @Sendable () throws -> Void = {
      while !isOver.isRaised {
        do {
          try Self.readAll(id, store)
        } catch let error as StoreError where error.kind == .failed && fault == .firstDoneButSaidToFail {
          // Remains of the failed commit must be overwritten first.
        }
      }
    }
    try concurrently(read, read) {
      defer { isOver.raise() }
      for round in 1...24 {
        let before = try store.stored(id)
        let payload = Array(repeating: UInt8(round), count: 300)
        watch.fail(.syncedWrites, count: Int64(1 + round % 6), fault)
        do {
          try store.add(id, payloads: [payload])
        } catch let error as StoreError where [.full, .failed].contains(error.kind) {
          if fault == .firstDoneButSaidToFail { watch.heal() }
          try same(store.stored(id), before, "batches after round \(round)")
          watch.heal()
          try store.add(id, payloads: [payload])
        }
        watch.heal()
        try same(store.stored(id).count, before.count + 1, "batches after round \(round)")
      }
    }
    #expect(try store.extent(of: id)?.head == 25)
  }

  /// Removing data from a copy-on-write tree first needs space.
  @Test func aStoreOnAFullDiskCanBeEmptied() throws {
    let scratch = try ScratchDirectory()
    let watch = try DiskWatch(scratch.path)
    watch.limit(4 << 20)
    let store = try LMDBStore.open(at: scratch.path, Self.options())
    for number in 1...6 as ClosedRange<UInt64> {
      let id = TopicID(rawValue: number)
      try store.add(id, row: .named("t\(number)"))
      var records = 0
      for size in [60_000, 8000, 100] {
        let error = #expect(throws: StoreError.self) {
          while true {
            try store.add(id, payloads: [Array(repeating: 1, count: size)])
            records += 1
          }
        }
        #expect(error?.kind == .full)
      }
      #expect(try store.stored(id).count == records)
      #expect(records > 20)
      var change = TopicChange(id)
      if number.isMultiple(of: 2) { change.isDeletion = true } else { change.truncateBefore = .max }
      // There may be more short ones than one call removes.
      for _ in 0..<20 { try store.commit([change]) }
      while try store.reclaim() {}
    }
  }

  private static func readAll(_ id: TopicID, _ store: LMDBStore) throws {
    var next: UInt64 = 0
    let head = try store.extent(of: id)?.head ?? 0
    try store.batches(of: id, from: 0) { offset, bytes in
      if BatchView(bytes, of: id, at: offset) == nil || offset != next {
        Issue.record("what was found at \(offset) isn't a batch, or doesn't follow")
      }
      next = offset + 1
      return true
    }
    if next < head { Issue.record("\(head) records were there, and \(next) were found") }
  }
}
