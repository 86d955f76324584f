import SluiceWire

/// Derives a topic's repair from its findings.
struct RepairPlan {
  private(set) var repair: TopicRepair
  private(set) var steps: [StoreRepair.Step] = []
  /// Findings that can't be repaired, or need no repair.
  private(set) var left: UInt64 = 0

  private let topic: StoreInspection.Topic
  private var name: String?

  init(_ topic: StoreInspection.Topic) {
    self.topic = topic
    repair = TopicRepair(topic.id)
    name = topic.name
  }

  /// - Parameter names: of the store's topics; a new one is added.
  mutating func take(_ finding: StoreFinding, _ names: inout Set<String>) {
    switch finding.problem {
    case .row: restore(&names)
    case .name: rename(&names)
    case .nextTopic: add(.raisedNextTopic)
    case .state(let key, _):
      repair.states.append(key)
      add(.removedState(key: key))
    case .extentUnreadable, .extent, .extentTime, .gap, .superseded, .spelling, .strays:
      // The extent is compared in the end, strays have no topic, and the others need no repair.
      break
    case .rowIsNewer, .bytesBefore, .timeGoesBack: left += 1
    case .batchTooShort, .batchChecksum, .batchMisplaced, .batchItems, .batchRecords, .batchBytes,
      .batchTimes, .batchOverlap:
      guard let offset = finding.batch else { return }
      repair.batches.append(offset)
      add(.removedBatch(offset, missing: finding.missing ?? offset..<offset))
    }
  }

  /// All batches were scanned.
  mutating func settle(_ scan: TopicScan) {
    let extent = scan.mended
    guard extent != topic.extent else { return }
    repair.extent = extent
    add(.correctedExtent(from: topic.extent, to: extent))
  }

  private mutating func rename(_ names: inout Set<String>) {
    guard var row = try? topic.row.get() else { return }
    let old = row.name
    row.name = freeName(&names)
    name = row.name
    repair.row = row
    add(.renamed(from: old))
  }

  private mutating func restore(_ names: inout Set<String>) {
    // Nothing may drop the records before an operator has looked at them.
    var settings = TopicSettings(
      replayRecords: TopicSettings.unlimited, replayBytes: TopicSettings.unlimited,
      replayAge: TopicSettings.unlimited)
    settings.storage = .durable
    let row = StoredTopic(name: freeName(&names), settings: settings, epoch: .random(in: 1 ... .max))
    name = row.name
    repair.row = row
    add(.restoredRow)
  }

  private func freeName(_ names: inout Set<String>) -> String {
    let base = "recovered.\(topic.id.rawValue)"
    var name = base
    var attempt = 1
    while !names.insert(name).inserted {
      attempt += 1
      name = "\(base).\(attempt)"
    }
    return name
  }

  private mutating func add(_ action: StoreRepair.Step.Action) {
    steps.append(StoreRepair.Step(topic: topic.id, name: name, action: action))
  }
}
