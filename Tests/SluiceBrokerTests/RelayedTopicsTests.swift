import SluiceWire
import Testing

@testable import SluiceBroker

/// Which stream continues a topic, and at which offset.
@Suite struct RelayedTopicsTests {
  private var topics = RelayedTopics()
  private var lastNumber: UInt32 = 0

  private func place(_ epoch: UInt64, _ next: UInt64, continues: Bool = false) -> Subscribed {
    Subscribed(epoch: epoch, nextOffset: next, liveOffset: next, continues: continues)
  }

  private mutating func match(
    _ number: UInt32, _ name: String, _ place: Subscribed, from source: UInt64
  ) throws -> RelayedTopics.Match {
    var next = lastNumber
    defer { lastNumber = next }
    return try topics.matched(Matched(number: number, topic: name, place: place), from: source) {
      next += 1
      return next
    }
  }

  private mutating func deliver(_ number: UInt32, _ offset: UInt64, _ count: UInt32, from source: UInt64)
    throws
    -> UInt32?
  {
    topics.select(number, from: source)
    return try topics.deliver(DeliverHeader(firstOffset: offset, count: count), from: source)
  }

  /// Matches topic t, with number 1, from stream 1, and delivers records up to 5.
  private mutating func begin() throws {
    #expect(topics.begin(1) { _ in true } == [])
    #expect(
      try match(8, "t", place(1, 0), from: 1) == .announce(Matched(number: 1, topic: "t", place: place(1, 0)))
    )
    #expect(try deliver(8, 0, 5, from: 1) == 1)
  }

  @Test func positionsAreToldAPartAtATime() {
    var topics = RelayedTopics()
    for number in 0..<10 {
      topics.add(TopicPosition(topic: "t\(number)", epoch: 1, nextOffset: UInt64(number)), number: 0)
    }
    topics.begin(1)
    var walk = RelayedTopics.Walk()
    var parts: [[UInt64]] = []
    while !topics.isDone(walk) {
      parts.append(topics.positions(&walk, atMost: 4, of: 1) { $0 != "t5" }.map(\.nextOffset))
    }
    #expect(parts == [[0, 1, 2, 3], [4, 6, 7], [8, 9]])
  }

  @Test mutating func aTopicGoesOnAtAnotherNodeThatKnowsThePosition() throws {
    try begin()
    let positions = topics.begin(2) { $0 == "t" }
    #expect(positions == [TopicPosition(topic: "t", epoch: 1, nextOffset: 5)])
    #expect(
      try match(3, "t", place(1, 5), from: 2) == .announce(Matched(number: 2, topic: "t", place: place(1, 5)))
    )
    #expect(try deliver(3, 5, 1, from: 2) == 2)
    // The subscriber already has the former node's records.
    #expect(try deliver(8, 5, 1, from: 1) == nil)
    #expect(topics.count == 1)
  }

  @Test mutating func aNodeThatBeginsElsewhereIsAskedAgain() throws {
    try begin()
    #expect(topics.begin(2) { _ in false } == [])
    #expect(try match(3, "t", place(1, 0), from: 2) == .reopen)
    #expect(try match(3, "t", place(2, 0), from: 2) == .reopen)
    topics.end(2)
    // The position sent to this node is outdated by the time it matches.
    #expect(topics.begin(3) { _ in true }.map(\.nextOffset) == [5])
    #expect(try deliver(8, 5, 1, from: 1) == 1)
    #expect(try match(3, "t", place(1, 5), from: 3) == .reopen)
    #expect(topics.begin(4) { _ in true }.map(\.nextOffset) == [6])
    let next = place(2, 6, continues: true)
    #expect(try match(3, "t", next, from: 4) == .announce(Matched(number: 2, topic: "t", place: next)))
  }

  @Test mutating func aNodeThatHappensToBeginThereIsTaken() throws {
    try begin()
    #expect(topics.begin(2) { _ in false } == [])
    #expect(
      try match(1, "t", place(1, 5), from: 2) == .announce(Matched(number: 2, topic: "t", place: place(1, 5)))
    )
  }

  private func reopened(_ source: UInt64) -> RelayedTopics.Neglect { .init(reopened: [source]) }

  private static let lookAgain = RelayedTopics.Neglect(looksAgain: true)

  @Test mutating func aFormerNodeThatIsHeardLateIsNotBelievedForLong() throws {
    try begin()
    #expect(topics.begin(2) { _ in false } == [])
    #expect(topics.neglect { _ in 1 } == .init())
    // Stream 2's node serves the topic now, and its match arrived before stream 1's repeated one.
    _ = try match(3, "t", place(1, 5), from: 2)
    _ = try match(9, "t", place(1, 5), from: 1)
    #expect(try deliver(3, 5, 1, from: 2) == nil)
    #expect(topics.neglect { _ in nil } == .init())
    #expect(topics.neglect { _ in 2 } == Self.lookAgain)
    #expect(topics.neglect { _ in 2 } == reopened(2))
    topics.end(2)
    #expect(topics.begin(3) { _ in true }.map(\.nextOffset) == [5])
    // It has the subscriber's position, but hasn't continued yet.
    #expect(topics.neglect { _ in 3 } == .init())
    _ = try match(1, "t", place(1, 5), from: 3)
    #expect(try deliver(1, 5, 1, from: 3) != nil)
    #expect(topics.neglect { _ in 3 } == .init())
  }

  @Test mutating func aNodeThatGoesOnInTimeIsNotAskedAgain() throws {
    try begin()
    #expect(topics.begin(2) { _ in false } == [])
    #expect(topics.neglect { _ in 2 } == Self.lookAgain)
    _ = try match(3, "t", place(1, 5), from: 2)
    #expect(topics.neglect { _ in 2 } == .init())
    // If no stream continues a topic, there is nothing to wait for.
    topics.end(2)
    #expect(topics.begin(3) { _ in false } == [])
    #expect(topics.neglect { _ in 3 } == reopened(3))
  }

  @Test mutating func aTopicThatStartsOverIsAnotherOne() throws {
    try begin()
    #expect(
      try match(9, "t", place(2, 0), from: 1) == .announce(Matched(number: 2, topic: "t", place: place(2, 0)))
    )
    #expect(try deliver(9, 0, 1, from: 1) == 2)
    // The same node may continue a topic that was elsewhere meanwhile only at the subscriber's offset.
    #expect(try match(10, "t", place(3, 0, continues: true), from: 1) == .reopen)
  }

  @Test mutating func topicsThatAreGone() throws {
    try begin()
    #expect(try match(2, "u", place(1, 0), from: 1) != .ignore)
    #expect(topics.unmatched(2, from: 1) == 2)
    #expect(topics.unmatched(2, from: 1) == nil)
    _ = topics.begin(2) { _ in true }
    // Another node still has the topic.
    #expect(try match(1, "t", place(0, 0), from: 2) == .ignore)
    topics.end(1)
    #expect(try match(2, "t", place(0, 0), from: 2) == .gone(number: 1))
    #expect(topics.count == 0)
  }

  @Test mutating func aTopicOfThisNodeMovesAwayAndBack() throws {
    topics.add(TopicPosition(topic: "t", epoch: 4, nextOffset: 7), number: 9)
    #expect(topics.begin(1) { _ in true } == [TopicPosition(topic: "t", epoch: 4, nextOffset: 7)])
    _ = try match(1, "t", place(4, 7), from: 1)
    #expect(try deliver(1, 7, 3, from: 1) == 1)
    #expect(topics.take("t") == TopicPosition(topic: "t", epoch: 4, nextOffset: 10))
    #expect(try deliver(1, 10, 3, from: 1) == nil)
    #expect(topics.take("t") == nil)
  }

  @Test mutating func positionsThatNoNodeKnowsAreForgotten() throws {
    topics.add(TopicPosition(topic: "t", epoch: 4, nextOffset: 7), number: 0)
    topics.add(TopicPosition(topic: "u", epoch: 4, nextOffset: 7), number: 0)
    _ = topics.begin(1) { _ in true }
    _ = try match(1, "u", place(5, 2), from: 1)
    topics.dropUnknown()
    #expect(topics.count == 1)
  }

  @Test mutating func whatTheNodeMustNotSayIsRefused() throws {
    try begin()
    #expect(throws: WireError.self) { try match(8, "u", place(1, 0), from: 1) }
    #expect(throws: WireError.self) { try match(0, "u", place(1, 0), from: 1) }
    #expect(throws: WireError.self) { try deliver(8, 4, 1, from: 1) }
    #expect(throws: WireError.self) { try topics.lagged(Lag(missed: 1, nextOffset: 4), from: 1) }
  }
}

extension RelayedTopics {
  /// Opens a stream, with all positions at once.
  fileprivate mutating func begin(_ source: UInt64, where isThere: (String) -> Bool) -> [TopicPosition] {
    begin(source)
    var walk = Walk()
    let found = positions(&walk, atMost: .max / 2, of: source, where: isThere)
    #expect(isDone(walk))
    return found
  }

  /// Checks all topics, one in each part.
  fileprivate mutating func neglect(serving: (String) -> UInt64?) -> Neglect {
    var (walk, neglect) = (Walk(), Neglect())
    repeat { look(&walk, atMost: 1, for: &neglect, serving: serving) } while !isDone(walk)
    return neglect
  }
}
