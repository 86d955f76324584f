import FaultyDisk
import Glibc
import SluiceWire
import TestSupport
import Testing

@testable import SluiceStore
@testable import SluiceStoreLMDB

/// The power fails at some moment, and some unsynced writes are lost: whole sectors, in any order.
@Suite struct PowerLossTests {
  /// One call to commit, with its range of write events.
  private struct Attempt {
    var firstEvent: Int
    var endEvent: Int
    var before: StoreModel
    var after: StoreModel
    var isDone: Bool
  }

  /// The writes of a store.
  private struct Recording {
    var base: [UInt8]
    var attempts: [Attempt]
    var watch: DiskWatch
    var scratch: ScratchDirectory

    /// The states that may be found after `events` events have started, if the last one may not have ended.
    func states(after events: Int) -> [StoreModel] {
      let done = attempts.lastIndex { $0.isDone && $0.endEvent < events }
      var states = [done.map { attempts[$0].after } ?? attempts[0].before]
      // A failed attempt may be what is found. The next attempt distinguishes it from a completed one.
      for attempt in attempts.dropFirst(done.map { $0 + 1 } ?? 0) where attempt.firstEvent < events {
        states.append(attempt.after)
      }
      return states
    }
  }

  private static func options(_ access: LMDBStore.Access = .create) -> LMDBStore.Options {
    var options = LMDBStore.Options()
    options.limit = 64 << 20
    options.access = access
    return options
  }

  @Test(arguments: [512, 4096], [false, true])
  func whatWasCommittedIsThereAfterwards(sectorSize: Int, hasFaults: Bool) throws {
    var random = SeededRandom.printed(for: "whatWasCommittedIsThereAfterwards(\(sectorSize), \(hasFaults))")
    for _ in 0..<4 {
      let recording = try record(seed: random.next()) { watch, workload, _ in
        guard hasFaults, workload.chance(40) else { return }
        let calls: DiskWatch.Calls = workload.chance(50) ? .syncs : .syncedWrites
        let fault = DiskWatch.Fault.allCases.randomElement(using: &workload.random)!
        watch.fail(calls, count: .random(in: 1...3, using: &workload.random), fault)
      }
      try check(recording, sectorSize, images: 0...(hasFaults ? 4 : 1), &random)
    }
  }

  /// A commit fails in its final write, but the disk has it. It must be removed from there before its pages are reused. If a sync has failed, the
  /// covering page must be written again, since the next sync would have nothing to write.
  @Test func aFailedCommitDoesNotComeBack() throws {
    var random = SeededRandom.printed()
    let recording = try record(seed: random.next()) { watch, _, round in
      if round == 6 { watch.fail(.syncedWrites, count: 2, .doneButSaidToFail) }
      if round == 7 { watch.fail(.syncs, count: 2) }
    }
    try require(!recording.attempts[6].isDone && !recording.attempts[7].isDone, "the faults had no effect")
    try check(recording, 512, images: 5...5, from: recording.attempts[6].firstEvent, &random)
  }

  private func check(
    _ recording: Recording, _ sectorSize: Int, images: ClosedRange<Int>, from first: Int = 0,
    _ random: inout SeededRandom
  ) throws {
    var file = VolatileFile(recording.base, sectorSize: sectorSize)
    for index in 0..<recording.watch.eventCount {
      let event = recording.watch.event(index)
      guard String(cString: event.name) == StoreDirectory.dataName else { continue }
      file.begin(event)
      for _ in 0..<(index < first ? 0 : Int.random(in: images, using: &random)) {
        try check(file, recording.states(after: index + 1), &random)
      }
      file.end(event)
    }
  }

  /// - Parameter fault: may make calls fail during the next commit.
  private func record(
    seed: UInt64, _ fault: (DiskWatch, inout StoreWorkload, _ round: Int) -> Void
  ) throws -> Recording {
    let scratch = try ScratchDirectory()
    let watch = try DiskWatch(scratch.path)
    let store = try LMDBStore.open(at: scratch.path, Self.options())
    watch.record()
    var recording = Recording(
      base: try contents("\(scratch.path)/data.mdb"), attempts: [], watch: watch, scratch: scratch)
    var workload = StoreWorkload(seed: seed)
    for round in 0..<12 {
      let (changes, after) = workload.commit()
      fault(watch, &workload, round)
      var attempt = Attempt(
        firstEvent: watch.eventCount, endEvent: 0, before: workload.model, after: after, isDone: true)
      do {
        try store.commit(changes)
        workload.adopt(after)
      } catch {
        try require(watch.failures > 0, "\(error)")
        attempt.isDone = false
      }
      watch.heal()
      attempt.endEvent = watch.eventCount
      recording.attempts.append(attempt)
      if workload.chance(30) { _ = try store.reclaim() }
    }
    return recording
  }

  private func contents(_ path: String) throws -> [UInt8] {
    let file = open(path, O_RDONLY)
    defer { close(file) }
    var status = stat()
    fstat(file, &status)
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    let count = bytes.withUnsafeMutableBytes { read(file, $0.baseAddress, $0.count) }
    try require(count == bytes.count, "\(path) can't be read")
    return bytes
  }

  /// Opens the remaining file, and continues with it.
  private func check(
    _ file: VolatileFile, _ states: [StoreModel], _ random: inout SeededRandom
  ) throws {
    let scratch = try ScratchDirectory()
    let bytes = file.image(lost: [0, 10, 50, 90, 100].randomElement(using: &random)!, &random)
    let image = open("\(scratch.path)/data.mdb", O_WRONLY | O_CREAT, 0o600)
    let count = bytes.withUnsafeBytes { write(image, $0.baseAddress, $0.count) }
    close(image)
    try require(count == bytes.count, "the image can't be written")

    let store = try LMDBStore.open(at: scratch.path, Self.options(.existing))
    let model = try matching(states, store)
    let id = TopicID(rawValue: model.nextTopic.rawValue)
    try store.add(id, row: .named("next"), payloads: [[1], Array(repeating: 2, count: 10_000)])
    _ = try store.reclaim()
    for topic in model.topics.keys { try store.add(topic, payloads: [Array(repeating: 3, count: 5000)]) }
    #expect(try store.stored(id).count == 2)
    for (topic, expected) in model.topics {
      try same(store.stored(topic).dropLast(), expected.batches(from: 0)[...], "topic \(topic.rawValue)")
    }
  }

  /// The one of the states that matches the store.
  private func matching(_ states: [StoreModel], _ store: LMDBStore) throws -> StoreModel {
    var differences: [String] = []
    for model in states {
      do {
        try store.check(against: model)
        return model
      } catch let difference as TestFailure {
        differences.append(difference.description)
      }
    }
    throw TestFailure(differences.joined(separator: "; or else "))
  }
}
