import SluiceWire

/// Removes what is damaged from a store, and nothing else, so that the rest can be used.
///
/// Records that were in a damaged batch are gone; their offsets aren't used again, and subscribers get a lag for them.
public struct StoreRepair: Hashable, Sendable {
  /// A change to a topic that was made, or would be.
  public struct Step: Hashable, Sendable {
    public enum Action: Hashable, Sendable {
      /// The batch at an offset was removed, with its records.
      case removedBatch(UInt64, missing: Range<UInt64>)
      case correctedExtent(from: StoredExtent?, to: StoredExtent)
      case removedState(key: [UInt8])
      /// The topic has got a name under which it can be found.
      case renamed(from: String?)
      /// The topic's row was lost. It has got another, which keeps all of its records; its clients see a new epoch.
      case restoredRow
      case removedStrays
      case raisedNextTopic
    }

    public var topic: TopicID
    /// Nil for what belongs to no topic.
    public var name: String?
    public var action: Action
  }

  public var steps: UInt64 = 0
  /// Records that were removed with their batches.
  public var missing: UInt64 = 0
  /// Findings that no step repairs.
  public var left: UInt64 = 0

  /// Repairs the whole store, topic by topic. Changes nothing when there is no damage.
  ///
  /// - Parameters:
  ///   - store: the store.
  ///   - isDryRun: whether to change nothing, and report what would be done.
  ///   - progress: as with ``StoreVerification``.
  ///   - found: called with each finding.
  ///   - done: called with each step, after it was made.
  /// - Throws: ``StoreError``; steps that were reported are done nevertheless.
  public static func run(
    _ store: any RepairableStore, isDryRun: Bool, progress: @escaping (UInt64) -> Bool = { _ in true },
    found: (StoreFinding) -> Void, done: (Step) -> Void
  ) throws(StoreError) -> StoreRepair {
    var summary = StoreRepair()
    var progress = OfflineProgress(progress)
    let inspection = try store.inspection()
    var names = Set(inspection.topics.compactMap(\.name))
    let general = Dictionary(grouping: inspection.findings, by: \.topic)

    for topic in inspection.topics {
      var plan = RepairPlan(topic)
      for finding in general[topic.id] ?? [] {
        found(finding)
        plan.take(finding, &names)
      }
      let scan = try store.scan(topic, &progress) { finding in
        found(finding)
        plan.take(finding, &names)
      }
      _ = try store.checkStates(of: topic) { finding in
        found(finding)
        plan.take(finding, &names)
      }
      plan.settle(scan)
      summary.left += plan.left
      guard !plan.steps.isEmpty else { continue }
      if !isDryRun { try store.mend(plan.repair) }
      for step in plan.steps { summary.count(step, done) }
    }
    for stray in inspection.strays {
      found(StoreFinding(.strays, topic: stray, name: nil))
      var repair = TopicRepair(stray)
      repair.isRemoval = true
      if !isDryRun { try store.mend(repair) }
      summary.count(Step(topic: stray, name: nil, action: .removedStrays), done)
    }
    return summary
  }

  private mutating func count(_ step: Step, _ done: (Step) -> Void) {
    steps += 1
    if case .removedBatch(_, let range) = step.action { missing += range.upperBound - range.lowerBound }
    done(step)
  }
}

extension StoreRepair.Step: CustomStringConvertible {
  public var description: String {
    let place = name.map { "topic \($0)" } ?? "topic number \(topic.rawValue)"
    return "\(place): \(what)"
  }

  private var what: String {
    switch action {
    case .removedBatch(let offset, let missing):
      missing.isEmpty
        ? "the batch at offset \(offset) is removed"
        : "the batch at offset \(offset) is removed, and with it records \(missing.lowerBound) to \(missing.upperBound - 1)"
    case .correctedExtent(_, let extent):
      extent.firstOffset == extent.head
        ? "it has no records now, and continues at offset \(extent.head)"
        : "its records are \(extent.firstOffset) to \(extent.head - 1) now, with \(extent.bytesThrough &- extent.bytesBefore) bytes"
    case .removedState(let key): "a state that can't be read is removed, with a key of \(key.count) bytes"
    case .renamed: "this is its name now"
    case .restoredRow:
      "it was topic number \(topic.rawValue), whose name and settings are lost; its records are kept for ever"
    case .removedStrays: "batches and states without a topic are removed"
    case .raisedNextTopic: "its number isn't given again"
    }
  }
}
