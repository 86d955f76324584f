import SluiceStore
import TestSupport

extension TopicStore {
  /// Throws if the store's contents differ from the model.
  func check(against model: StoreModel, isJustOpened: Bool = false) throws {
    let contents = try contents()
    try same(contents.topics.map(\.id), model.contents.topics.map(\.id), "the topics")
    for (found, expected) in zip(contents.topics, model.contents.topics) {
      try same(found.extent, expected.extent, "the extent of topic \(found.id.rawValue)")
      try same(found, expected, "topic \(found.id.rawValue)")
    }
    try same(contents.nextTopic, model.nextTopic, "the next topic")
    if isJustOpened { try same(contents.wasClosed, model.wasClosed, "whether it was closed") }
    for id in model.topics.keys { try check(id, against: model) }
  }

  func check(_ id: TopicID, against model: StoreModel, from offset: UInt64 = 0) throws {
    let topic = model.topics[id]
    let name = "topic \(id.rawValue)"
    try same(extent(of: id), topic?.extent, "\(name)'s extent")
    try same(
      stored(id, from: offset).map(\.offset), topic?.batches(from: offset).map(\.offset) ?? [],
      "the offsets of \(name)'s batches from \(offset)")
    try same(stored(id, from: offset), topic?.batches(from: offset) ?? [], "\(name)'s batches from \(offset)")
    for kind in StoredState.Kind.allCases {
      try same(states(of: id, kind), topic?.states(kind) ?? [], "\(name)'s states")
    }
  }
}

func same<Value: Equatable>(_ found: Value, _ expected: Value, _ what: String) throws {
  if found == expected { return }
  throw TestFailure(
    "\(what): found \(String(describing: found).prefix(2000)), expected \(String(describing: expected).prefix(2000))"
  )
}
