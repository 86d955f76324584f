import SluiceStore
import SluiceWire
import TestSupport

/// Random commits, and the expected contents of the store after each.
struct StoreWorkload {
  var random: SeededRandom
  private(set) var model = StoreModel()
  /// The timestamp of the next records; it never decreases.
  private var time: Int64 = 1000

  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
  }

  mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  /// Random changes of a few topics, and the expected contents afterwards. Call ``adopt(_:)`` once they are committed.
  mutating func commit() -> (changes: [TopicChange], after: StoreModel) {
    var after = model
    after.wasClosed = false
    var changes: [TopicChange] = []
    var ids = model.topics.keys.sorted().shuffled(using: &random).prefix(
      Int.random(in: 0...3, using: &random))
    if ids.isEmpty || chance(15) {
      ids.append(TopicID(rawValue: after.nextTopic.rawValue + (chance(20) ? 3 : 0)))
    }
    for id in ids {
      after.nextTopic = max(after.nextTopic, TopicID(rawValue: id.rawValue + 1))
      let (change, topic) = change(of: id, model.topics[id])
      changes.append(change)
      after.topics[id] = topic
    }
    return (changes, after)
  }

  mutating func adopt(_ after: StoreModel) { model = after }

  /// The store was closed and reopened.
  mutating func reopened(cleanly isClean: Bool) {
    if isClean { model.wasClosed = true }
  }

  private mutating func change(
    of id: TopicID, _ topic: StoreModel.Topic?
  ) -> (TopicChange, StoreModel.Topic?) {
    var change = TopicChange(id)
    if topic != nil, chance(5) {
      change.isDeletion = true
      return (change, nil)
    }
    var next = topic ?? StoreModel.Topic(row: .named("t\(id.rawValue)"))
    if topic == nil {
      if chance(30) { next.first = (random.next() % 1000 + 1, random.next() % 100_000) }
    } else if chance(15) {
      next.row = row(next.row)
    }
    if topic == nil || next.row != topic?.row { change.row = next.row }
    if chance(75) {
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let (block, batch) = batch(for: id, next.extent)
        change.batches.append(block)
        next.batches.append(batch)
      }
    } else if topic == nil {
      next.first = (0, 0)
    }
    for _ in 0..<(chance(40) ? Int.random(in: 1...3, using: &random) : 0) {
      let state = state()
      change.states.append(state)
      next.states[state.kind, default: [:]][state.key] = state.value
    }
    if chance(20) {
      let extent = next.extent
      let offset = UInt64.random(in: 0...extent.head + 1, using: &random)
      change.truncateBefore = chance(50) ? max(offset, extent.firstOffset) : offset
      next.truncate(before: change.truncateBefore!)
    }
    return (change, next)
  }

  private mutating func row(_ old: StoredTopic) -> StoredTopic {
    var row = old
    switch Int.random(in: 0..<4, using: &random) {
    case 0: row.ending = .finished
    case 1: row.ending = .failure(code: .producerFailure, message: "no more")
    case 2:
      row.lineage.append(.init(epoch: row.epoch, end: random.next() % 1000))
      row.epoch = random.next()
      // A row that exceeds a page.
      if chance(20) { row.lineage += (0..<400).map { .init(epoch: $0, end: $0) } }
    default: row.settings.replayBytes = random.next()
    }
    return row
  }

  private mutating func state() -> TopicChange.State {
    let kind = StoredState.Kind.allCases.randomElement(using: &random)!
    let key = Array(repeating: UInt8.random(in: 0...3, using: &random), count: chance(10) ? 255 : 2)
    let size = chance(10) ? 6000 : Int.random(in: 0...40, using: &random)
    return .init(kind, key: key, value: chance(25) ? nil : random.bytes(size))
  }

  private mutating func batch(for id: TopicID, _ extent: StoredExtent) -> (BatchBlock, StoreModel.Batch) {
    let block = BatchBlock(firstOffset: extent.head, bytesBefore: extent.bytesThrough)
    var records: [StoreModel.Record] = []
    let isLarge = chance(5)
    for _ in 0..<(isLarge ? 1 : Int.random(in: 1...8, using: &random)) {
      if chance(60) { time += Int64.random(in: 0...3, using: &random) }
      let size =
        isLarge ? Int.random(in: 1000...150_000, using: &random) : Int.random(in: 0...300, using: &random)
      let payload = Array(repeating: UInt8(truncatingIfNeeded: random.next()), count: size)
      _ = item(payload).withUnsafeBytes { block.append($0, count: 1, time: time) }
      records.append(.init(payload: payload, time: time))
    }
    block.seal(for: id)
    return (block, .init(offset: extent.head, records: records, bytes: Array(block.value)))
  }
}
