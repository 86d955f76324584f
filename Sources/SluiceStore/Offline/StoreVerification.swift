import SluiceWire

/// Verifies everything in a store: whether it can be read, and whether it is consistent. Changes nothing.
///
/// Needs memory for one batch and the topics' rows, however large the store is.
public struct StoreVerification: Hashable, Sendable {
  public var topics: UInt64 = 0
  public var batches: UInt64 = 0
  /// In sound batches.
  public var records: UInt64 = 0
  /// The number of records in sound batches.
  public var bytes: UInt64 = 0
  public var states: UInt64 = 0
  /// Findings that are damage.
  public var damaged: UInt64 = 0
  /// Records that are lost, including those that a repair removed.
  public var missing: UInt64 = 0

  /// Verifies the whole store.
  ///
  /// - Parameters:
  ///   - store: the store.
  ///   - progress: called now and then with the bytes of batches that were read; returns whether to continue.
  ///   - report: called with each finding at once.
  /// - Throws: ``StoreError`` when the store can't be read, or `progress` returned false.
  public static func run(
    _ store: any RepairableStore, progress: @escaping (UInt64) -> Bool = { _ in true },
    _ report: (StoreFinding) -> Void
  ) throws(StoreError) -> StoreVerification {
    var summary = StoreVerification()
    var progress = OfflineProgress(progress)
    let inspection = try store.inspection()
    for finding in inspection.findings { summary.note(finding, report) }
    for topic in inspection.topics {
      let scan = try store.scan(topic, &progress) { summary.note($0, report) }
      summary.topics += 1
      summary.batches += scan.batches
      summary.records += scan.records
      summary.bytes += scan.bytes
      let states = try store.checkStates(of: topic) { summary.note($0, report) }
      summary.states += states
    }
    return summary
  }

  private mutating func note(_ finding: StoreFinding, _ report: (StoreFinding) -> Void) {
    if finding.isDamage { damaged += 1 }
    missing &+= finding.missing.map { $0.upperBound - $0.lowerBound } ?? 0
    report(finding)
  }
}

extension StoreInspection {
  /// Findings in the rows, apart from their batches.
  var findings: [StoreFinding] {
    var findings: [StoreFinding] = []
    let owners = owners
    for topic in topics {
      switch topic.row {
      case .failure(let error):
        let problem: StoreFinding.Problem =
          error.kind == .newer ? .rowIsNewer(error.message) : .row(error.message)
        findings.append(StoreFinding(problem, topic: topic.id, name: nil))
      case .success(let row):
        if let why = StoredTopic.fault(inName: row.name) {
          findings.append(StoreFinding(.name(why), topic: topic.id, name: nil))
        } else if let owner = owners[row.name], owner != topic.id {
          findings.append(StoreFinding(.superseded(by: owner), topic: topic.id, name: row.name))
        } else if !TopicName.isComposed(row.name) {
          findings.append(StoreFinding(.spelling, topic: topic.id, name: row.name))
        }
      }
    }
    findings += strays.map { StoreFinding(.strays, topic: $0, name: nil) }
    if let last = topics.last, last.id >= nextTopic {
      findings.append(StoreFinding(.nextTopic(says: nextTopic), topic: last.id, name: last.name))
    }
    return findings
  }

  /// The topic that owns each name: the latest.
  var owners: [String: TopicID] {
    topics.reduce(into: [:]) { owners, topic in
      if let name = topic.name { owners[name] = topic.id }
    }
  }
}

extension StoredTopic {
  /// Why no topic can have that name, in whatever spelling; nil when one can.
  static func fault(inName name: String) -> String? {
    do throws(WireError) {
      // Names of the broker's own topics begin so.
      try TopicName.validate(anySpelling: name.hasPrefix("$") ? String(name.dropFirst()) : name)
      return nil
    } catch {
      return error.message
    }
  }
}

extension RepairableStore {
  /// Scans a topic's batches.
  func scan(
    _ topic: StoreInspection.Topic, _ progress: inout OfflineProgress, _ report: (StoreFinding) -> Void
  ) throws(StoreError) -> TopicScan {
    var scan = TopicScan(topic.id, name: topic.name, extent: topic.extent)
    try unsafe forEachBatch(of: topic.id, &progress) { offset, bytes in
      _ = unsafe scan.take(bytes, at: offset, report)
    }
    scan.finish(report)
    return scan
  }

  /// Calls `body` with all batches of a topic, as ``rawBatches(of:_:)`` hands them out.
  ///
  /// - Throws: what `body` throws; that the caller stopped the operation.
  func forEachBatch(
    of topic: TopicID, _ progress: inout OfflineProgress,
    _ body: (UInt64, UnsafeRawBufferPointer) throws(StoreError) -> Void
  ) throws(StoreError) {
    var fault: StoreError?
    try unsafe rawBatches(of: topic) { offset, bytes in
      do throws(StoreError) {
        try unsafe body(offset, bytes)
        if !progress.add(bytes.count) { throw .stopped }
      } catch {
        fault = error
      }
      return fault == nil
    }
    if let fault { throw fault }
  }

  /// Checks a topic's states, and counts them.
  func checkStates(
    of topic: StoreInspection.Topic, _ report: (StoreFinding) -> Void
  ) throws(StoreError) -> UInt64 {
    var count: UInt64 = 0
    try rawStates(of: topic.id) { raw in
      count += 1
      if let why = raw.fault {
        report(StoreFinding(.state(key: raw.key, why), topic: topic.id, name: topic.name))
      }
      return true
    }
    return count
  }
}

extension RawState {
  /// Why the state can't be used; nil when it can.
  var fault: String? {
    guard let first = key.first else { return "its key is empty" }
    guard let kind = StoredState.Kind(rawValue: first) else { return "a state of kind \(first) isn't known" }
    guard (2...256).contains(key.count) else {
      return "its key has \(key.count - 1) bytes, where 1 to 255 are possible"
    }
    switch kind {
    case .producer:
      return key.count == 9 ? nil : "its key has \(key.count - 1) bytes, where a producer's number has 8"
    case .cursor, .group:
      return String(validating: key.dropFirst(), as: UTF8.self) == nil ? "its name isn't valid UTF-8" : nil
    case .newest: return StoredNewest.fault(key: key.dropFirst(), value: value)
    }
  }
}

/// Reports the progress of a long operation.
struct OfflineProgress {
  private let report: (UInt64) -> Bool
  private var bytes: UInt64 = 0

  /// - Parameter report: called with the bytes of batches that were read so far; returns whether to continue.
  init(_ report: @escaping (UInt64) -> Bool) {
    self.report = report
  }

  /// Counts bytes that were read. Returns whether to continue.
  mutating func add(_ count: Int) -> Bool {
    bytes += UInt64(count)
    return report(bytes)
  }
}

extension StoreError {
  /// The caller stopped the operation.
  static var stopped: StoreError { StoreError(.failed, "it was stopped before it was through") }
}
