import SluiceClient
import SluiceIO
import SluiceSimulation
import SluiceWire
import Synchronization

@testable import SluiceBroker
@testable import SluiceStore

/// A broker whose store is repeatedly replaced by backups and copies while clients continue: made from a seed, all on the calling thread.
///
/// In the end, each subscriber must have exactly the topic's records from its start on, after applying the reported cuts. Each producer with missing
/// acknowledged records must have received a notice.
final class HistorySimulation {
  /// A fault that a test plants for the oracle to find.
  enum Flaw: CaseIterable {
    /// Subscribers are not notified of cuts.
    case cutsAreNotTold
    /// An import claims that its epoch continues every offset that clients have of the exported one.
    case importForgetsItsEnd
  }

  struct Outcome {
    var failures: [String]
    var lines: [String]
    var delivered: Int
    var cuts: Int
  }

  private struct Backup {
    var bytes: [UInt8]
  }

  private let world: SimulatedWorld
  private let disk: DurableDisk
  private let host: DurableHost
  private let flaw: Flaw?
  private var random: SeededRandom
  private var lines: [String] = []
  private var failures: [String] = []
  private var subscribers: [HistorySubscriber] = []
  private var producers: [HistoryProducer] = []
  private var backups: [Backup] = []
  private var copies: [DurableDisk.Copy] = []
  private let counter = Shared<UInt64>(0)
  /// How often the store was replaced, or its broker killed.
  private var stores = 0

  private static let topics = ["h.always", "h.interval"]

  init(seed: UInt64, flaw: Flaw? = nil) {
    world = SimulatedWorld(seed: seed, loops: 0)
    disk = DurableDisk(seed: seed)
    random = SeededRandom(seed: seed &* 0x85eb_ca6b)
    host = DurableHost(world, disk, brokerLoops: random.next(in: 1...3))
    self.flaw = flaw
  }

  private func note(_ line: @autoclosure () -> String) {
    lines.append("\(Chronicle.seconds(world.now)) \(line())")
  }

  private func check(_ holds: Bool, _ what: @autoclosure () -> String) {
    if !holds { failures.append(what()) }
  }

  // MARK: The scenario

  func run() throws -> Outcome {
    try host.start()
    cast()
    world.run(for: random.next(in: .milliseconds(50) ... .milliseconds(800)))
    for _ in 0..<random.next(in: 3...8) where failures.isEmpty {
      try step()
      world.run(for: random.next(in: .milliseconds(5) ... .milliseconds(800)))
    }
    try settle()
    for client in subscribers as [HistoryClient] + producers { client.leave() }
    host.broker.stop()
    world.run(for: .seconds(2))
    return Outcome(
      failures: failures, lines: lines,
      delivered: subscribers.reduce(0) { $0 + $1.journals.values.reduce(0) { $0 + $1.records.count } },
      cuts: subscribers.reduce(0) { $0 + $1.journals.values.reduce(0) { $0 + $1.cuts } })
  }

  private func cast() {
    for (index, topic) in Self.topics.enumerated() {
      var settings = TopicSettings()
      settings.storage = .durable
      settings.sync = index == 0 ? .always : .interval(40)
      for number in 0..<random.next(in: 1...2) {
        producers.append(
          HistoryProducer(
            "producer \(topic) \(number)", topic, settings, world, seed: random.next(),
            next: { [counter] in
              counter.set(counter.value + 1)
              return counter.value
            }))
      }
    }
    // Both topics exist, so that every backup contains them.
    let areThere = world.run(limit: .seconds(10)) { [disk] in
      (try? disk.store.contents().topics.count) == Self.topics.count
    }
    check(areThere, "the topics aren't made")
    for topic in Self.topics {
      subscribe("reader of \(topic)", SubscriptionPlan(topic, from: .earliest, lag: .skip))
      subscribe("late reader of \(topic)", SubscriptionPlan(topic, from: .new, lag: .skip))
      subscribe(
        "cursor of \(topic)", SubscriptionPlan(topic, from: .earliest, cursor: .init("c"), lag: .skip))
    }
    var pattern = SubscriptionPlan("h.*", from: .earliest, lag: .skip)
    pattern.isPattern = true
    subscribe("pattern", pattern)
  }

  private func subscribe(_ name: String, _ plan: SubscriptionPlan) {
    subscribers.append(
      HistorySubscriber(
        name, plan, world, seed: random.next(), isDeaf: flaw == .cutsAreNotTold))
  }

  private func step() throws {
    switch random.next(in: 0...7) {
    case 0, 1: try back()
    case 2:
      note("the disk is copied")
      copies.append(disk.copy())
    case 3:
      end()
      try begin()
    case 4, 5: try bringBack()
    default: try putBack()
    }
  }

  /// Stops the broker, by a kill or in order.
  private func end() {
    if random.oneIn(2) {
      note("the broker is killed")
      host.kill()
    } else {
      note("the broker is stopped")
      check(host.stop(), "the broker doesn't stop")
    }
    world.run(for: random.next(in: .milliseconds(50) ... .milliseconds(300)))
  }

  private func begin() throws {
    stores += 1
    for producer in producers { producer.store = stores }
    try host.start()
    let ends = try Self.topics.map { "\($0) ends at \(try truth($0).end)" }
    note("another broker takes its place: \(ends)")
  }

  // MARK: Backups and copies

  private func back() throws {
    var bytes: [UInt8] = []
    _ = try StoreExport.run(disk.memory, report: { _ in }) {
      unsafe bytes += unsafe $0
      return nil
    }
    note("a backup")
    backups.append(Backup(bytes: bytes))
  }

  /// Imports a backup, into an empty store or over the existing topics.
  private func bringBack() throws {
    guard !backups.isEmpty else { return }
    let backup = backups[random.next(in: 0...(backups.count - 1))]
    end()
    let isReplacing = random.oneIn(2)
    if !isReplacing { disk.clear() }
    note("a backup is imported\(isReplacing ? ", replacing what is there" : "")")
    var rest = backup.bytes[...]
    let reader = unsafe ExportReader { target in
      let part = rest.prefix(target.count)
      unsafe target.copyBytes(from: part)
      rest = rest.dropFirst(part.count)
      return .success(part.count)
    }
    _ = try StoreImport.run(into: disk.memory, replacing: true, from: reader)
    if let flaw { spoil(flaw) }
    try begin()
  }

  private func spoil(_ flaw: Flaw) {
    disk.memory.state.withLock { state in
      for (id, topic) in state.topics {
        guard let last = topic.row.lineage.last else { continue }
        switch flaw {
        case .importForgetsItsEnd:
          state.topics[id]?.row.lineage[topic.row.lineage.count - 1] = .init(epoch: last.epoch, end: .max)
        case .cutsAreNotTold: break
        }
      }
    }
  }

  /// Replaces the store with a copy while the broker is down. New records must not reach the offsets that clients know before the clients have
  /// reconnected; otherwise nothing would show that these are other records.
  private func putBack() throws {
    guard !copies.isEmpty else { return }
    let copy = copies[random.next(in: 0...(copies.count - 1))]
    for producer in producers { producer.isPaused = true }
    _ = world.run(limit: .seconds(30)) { [self] in producers.allSatisfy(\.isIdle) }
    end()
    note("a copy is put back")
    disk.put(back: copy)
    try begin()
    let isBack = world.run(limit: .seconds(30)) { [self] in
      subscribers.allSatisfy(\.isUp) && producers.allSatisfy(\.isUp)
    }
    check(isBack, "clients don't come back")
    world.run(for: .seconds(1))
    for producer in producers { producer.isPaused = false }
  }

  // MARK: The end

  private func settle() throws {
    note("all is well from here on")
    for producer in producers { producer.isPaused = true }
    var missing: String? = ""
    _ = world.run(limit: .seconds(60)) { [self] in
      missing = try? difference()
      return missing == nil
    }
    if let missing { failures.append("never came to an end: \(missing)") }
    for client in subscribers { failures += client.failures.map { "\(client.name): \($0)" } }
    for producer in producers {
      failures += producer.failures.map { "\(producer.name): \($0)" }
      let truth = try truth(producer.topic).records
      let numbers = Set(truth)
      check(numbers.count == truth.count, "\(producer.topic) has a record twice")
      let lost = producer.acknowledged.filter { !numbers.contains($0.number) }
      check(lost.allSatisfy { $0.store < stores }, "\(producer.name): records of this store are lost")
      check(lost.isEmpty || producer.notices > 0, "\(producer.name) isn't told of \(lost.count) lost records")
    }
  }

  /// Returns a difference between the records of a subscriber and those of the topic; nil if there is none.
  private func difference() throws -> String? {
    for producer in producers where !producer.isIdle { return "\(producer.name) has unacknowledged records" }
    for topic in Self.topics {
      let truth = try truth(topic)
      for subscriber in subscribers {
        guard let journal = subscriber.journals[topic], let start = journal.start else { continue }
        guard journal.end == truth.end else {
          return
            "\(subscriber.name) has \(topic) up to \(journal.end ?? 0), which ends at \(truth.end)"
        }
        guard start >= truth.first,
          journal.records[...] == truth.records[Int(start - truth.first)...]
        else { return "\(subscriber.name) has other records than \(topic)" }
      }
    }
    return nil
  }

  private func truth(_ topic: String) throws -> (first: UInt64, end: UInt64, records: [UInt64]) {
    guard let stored = try disk.store.contents().topics.first(where: { $0.row.name == topic }) else {
      return (0, 0, [])
    }
    var numbers: [UInt64] = []
    try disk.store.batches(of: stored.id, from: stored.extent.firstOffset) { _, bytes in
      var records = unsafe BatchIterator(
        UnsafeRawBufferPointer(rebasing: bytes[BatchHeader.size...]), time: 0)
      while let record = try? records.next() {
        numbers.append(unsafe record.body.loadUnaligned(as: UInt64.self))
      }
      return true
    }
    return (stored.extent.firstOffset, stored.extent.head, numbers)
  }
}
