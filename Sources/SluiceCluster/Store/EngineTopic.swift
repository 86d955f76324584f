import SluiceStore

/// What the owner of a shard knows of one of its topics.
struct EngineTopic: Sendable {
  var row: StoredTopic
  /// What is stored.
  var extent = StoredExtent()
  /// What is stored when everything that is under way is.
  var projected = StoredExtent()
  /// Where it begins when everything that was sent is stored.
  var sentBeginning = EngineChange.Beginning(firstOffset: 0, bytesBefore: 0)
  var states: [StoredState.Kind: [[UInt8]: [UInt8]]] = [:]
  /// No batch that is kept is before that sequence.
  var floor: UInt64 = 0
  /// The sequence of the last message with batches; 0 when there was none.
  var last: UInt64 = 0
  var index = BatchIndex()
  /// Whether it is stored: otherwise its first change is under way.
  var isStored = false
  /// Whether its deletion is under way.
  var isDeleting = false

  init(row: StoredTopic) {
    self.row = row
  }

  mutating func set(_ state: TopicChange.State) { states[state.kind, default: [:]][state.key] = state.value }

  /// No message before that sequence has a batch that is kept; nil where that isn't known.
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

  /// Takes a change that is stored.
  mutating func take(_ change: TopicChange, _ after: StoredExtent, at sequence: UInt64) {
    if let row = change.row { self.row = row }
    for state in change.states { set(state) }
    extent = after
    // What was dropped may be needed while the change is under way, and not after it.
    index.drop(before: after.firstOffset)
    isStored = true
    if !change.batches.isEmpty {
      if last == 0 { floor = sequence }
      last = max(last, sequence)
    }
  }

  /// What was sent isn't stored.
  mutating func forgetSent() {
    sentBeginning = .init(firstOffset: extent.firstOffset, bytesBefore: extent.bytesBefore)
  }

  /// What was under way isn't stored.
  mutating func forgetProjection() {
    projected = extent
    forgetSent()
    isDeleting = false
    index.remove(from: extent.head)
  }
}
