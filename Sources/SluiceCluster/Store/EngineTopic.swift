import SluiceStore

/// The state of a shard's topic, as its owner keeps it.
struct EngineTopic: Sendable {
  var row: StoredTopic
  /// The stored extent.
  var extent = StoredExtent()
  /// The extent when all commits in progress are stored.
  var projected = StoredExtent()
  /// The beginning when all commits sent are stored.
  var sentBeginning = EngineChange.Beginning(firstOffset: 0, bytesBefore: 0)
  var states: [StoredState.Kind: [[UInt8]: [UInt8]]] = [:]
  /// All kept batches are at this sequence or later.
  var floor: UInt64 = 0
  /// The sequence of the last message with batches; 0 if there was none.
  var last: UInt64 = 0
  var index = BatchIndex()
  /// Whether it is stored. Otherwise its first change is in progress.
  var isStored = false
  /// Whether its deletion is in progress.
  var isDeleting = false

  init(row: StoredTopic) {
    self.row = row
  }

  mutating func set(_ state: TopicChange.State) { states[state.kind, default: [:]][state.key] = state.value }

  /// The lowest sequence of a message with a kept batch; nil if unknown.
  var firstNeeded: UInt64? {
    if extent.firstOffset == extent.head { return last + 1 }
    guard let entry = index.entries(from: extent.firstOffset).first,
      entry.header.firstOffset == extent.firstOffset, entry.sequence > 0
    else { return nil }
    return entry.sequence
  }

  /// The states of one kind, in the order of their keys.
  func states(_ kind: StoredState.Kind) -> [StoredState] {
    (states[kind] ?? [:]).map { StoredState(kind, key: $0, value: $1) }
      .sorted { $0.key.lexicographicallyPrecedes($1.key) }
  }

  /// Applies a stored change.
  mutating func take(_ change: TopicChange, _ after: StoredExtent, at sequence: UInt64) {
    if let row = change.row { self.row = row }
    for state in change.states { set(state) }
    extent = after
    // The dropped batches may be needed while the change is in progress, but not afterwards.
    index.drop(before: after.firstOffset)
    isStored = true
    if !change.batches.isEmpty {
      if last == 0 { floor = sequence }
      last = max(last, sequence)
    }
  }

  /// Discards the state of commits sent that aren't stored.
  mutating func forgetSent() {
    sentBeginning = .init(firstOffset: extent.firstOffset, bytesBefore: extent.bytesBefore)
  }

  /// Discards the state of all commits in progress, which aren't stored.
  mutating func forgetProjection() {
    projected = extent
    forgetSent()
    isDeleting = false
    index.remove(from: extent.head)
  }
}
