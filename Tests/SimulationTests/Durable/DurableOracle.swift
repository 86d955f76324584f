import SluiceIO
import SluiceLog
import SluiceStore
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// Records what was published and what is on disk, as reported by the disk itself, not by the broker.
final class DurableOracle {
  struct Record: Hashable {
    var isAttributed: Bool
    var body: [UInt8]
  }

  let keepsLines: Bool
  private(set) var lines: [String] = []
  private(set) var failures: [String] = []
  var clock: () -> MonotonicTime = { MonotonicTime(nanoseconds: 0) }
  var wallClock: () -> Int64 = { 0 }
  /// By name.
  private(set) var topics: [String: StoredTruth] = [:]
  private var topicsByID: [TopicID: StoredTruth] = [:]
  /// The records of each producer, by sequence.
  private(set) var made: [[Record]] = []
  private var ending: Set<String> = []
  private(set) var commits = 0
  /// Records that readers received.
  var delivered = 0

  init(keepsLines: Bool) {
    self.keepsLines = keepsLines
  }

  func note(_ what: @autoclosure () -> String) {
    if keepsLines { lines.append("\(Chronicle.seconds(clock())) \(what())") }
  }

  func fail(_ what: String) {
    note("WRONG: \(what)")
    if failures.count < 20 { failures.append(what) }
  }

  func check(_ holds: Bool, _ what: @autoclosure () -> String) {
    if !holds { fail(what()) }
  }

  func truth(_ name: String) -> StoredTruth? { topics[name] }

  /// Marks a topic that a client completes or has completed.
  func ends(_ topic: String) { ending.insert(topic) }
  func isEnding(_ topic: String) -> Bool { ending.contains(topic) }

  // MARK: Records

  /// The number of a new producer.
  func addProducer() -> Int {
    made.append([])
    return made.count - 1
  }

  func make(_ record: Record, by producer: Int) {
    made[producer].append(record)
  }

  /// The producer of a record, as the record names it. If it names none, returns nil and reports a failure.
  func origin(of record: Record, in topic: String) -> (producer: Int, sequence: Int)? {
    let found = record.body.withUnsafeBytes { body -> (Int, Int)? in
      let payload = record.isAttributed ? (try? RecordAttributes(body))?.payload : body
      guard let payload, payload.count >= 8, let base = payload.baseAddress else { return nil }
      return (
        Int(UInt32(littleEndian: base.loadUnaligned(as: UInt32.self))),
        Int(UInt32(littleEndian: (base + 4).loadUnaligned(as: UInt32.self)))
      )
    }
    guard let (producer, sequence) = found, made.indices.contains(producer),
      made[producer].indices.contains(sequence), made[producer][sequence] == record
    else {
      fail("\(topic) has a record that no producer has published")
      return nil
    }
    return (producer, sequence)
  }

  /// Passes each record of a batch, with its timestamp, to `body`.
  func records(in batch: UnsafeRawBufferPointer, _ body: (Record, Int64) -> Void) {
    var iterator = BatchIterator(batch, time: 0)
    do {
      while let record = try iterator.next() {
        body(Record(isAttributed: record.isAttributed, body: Array(record.body)), record.time)
      }
    } catch {
      fail("a batch can't be read: \(error)")
    }
  }

  func records(in batch: UnsafeRawBufferPointer) -> [Record] {
    var records: [Record] = []
    self.records(in: batch) { record, _ in records.append(record) }
    return records
  }

  // MARK: The disk

  /// Records changes that are on disk.
  func committed(_ changes: [TopicChange]) {
    commits += 1
    note("commit \(commits): \(changes.map(Self.describe).joined(separator: "; "))")
    for change in changes {
      if change.isDeletion {
        if let truth = topicsByID.removeValue(forKey: change.topic), topics[truth.name] === truth {
          topics[truth.name] = nil
        }
        continue
      }
      let truth: StoredTruth
      if let known = topicsByID[change.topic] {
        truth = known
      } else {
        guard let row = change.row else { return fail("a topic is stored without a row") }
        truth = StoredTruth(change.topic, row, oracle: self)
        topicsByID[change.topic] = truth
        topics[row.name] = truth
      }
      truth.committed(change)
    }
  }

  private static func describe(_ change: TopicChange) -> String {
    let records = change.batches.first.map { "\($0.firstOffset)..<\(change.batches.last!.endOffset)" }
    let states = change.states.map { "\($0.kind)\($0.value == nil ? " gone" : "")" }
    let parts: [String?] = [
      "topic \(change.topic.rawValue)", change.isDeletion ? "deleted" : nil,
      change.row.map { "row of epoch \($0.epoch)\($0.ending == nil ? "" : ", ended")" },
      records.map { "records \($0)" },
      change.truncateBefore.map { "dropped before \($0)" },
      states.isEmpty ? nil : states.joined(separator: " "),
    ]
    return parts.compactMap { $0 }.joined(separator: ", ")
  }

  /// Checks the broker that has restored the topics from disk.
  ///
  /// - Parameters:
  ///   - inOrder: whether the previous broker closed the store.
  ///   - isHealthy: whether the disk works.
  func restarted(_ broker: Broker, inOrder: Bool, isHealthy: Bool) {
    for truth in topics.values.sorted(by: { $0.name < $1.name }) {
      guard let topic = broker.core.registry.find(truth.name) else {
        fail("\(truth.name) is on disk, and the broker doesn't know it")
        continue
      }
      truth.restarted(
        epoch: topic.epoch.number, head: topic.epoch.log.head, ending: topic.epoch.ending, inOrder: inOrder,
        isHealthy: isHealthy)
      check(topic.settings.sync == truth.row.settings.sync, "\(truth.name) has other settings than before")
      check(
        topic.settings.replayAge == truth.row.settings.replayAge,
        "\(truth.name) has another limit of age than before")
    }
    for topic in broker.core.registry.all where topic.storage != nil {
      check(topics[topic.name] != nil, "\(topic.name) is back, though it was deleted")
    }
  }
}
