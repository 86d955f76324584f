import SluiceWire
import Testing

@testable import SluiceClient

/// The positions of a subscription to a pattern, as reported by the broker.
@Suite struct PatternPlacesTests {
  private var places: PatternPlaces

  init() {
    places = Self.make()
  }

  private static func make(from start: SubscriptionPlan.Start = .new) -> PatternPlaces {
    var plan = SubscriptionPlan("a.*", from: start, lag: .skip)
    plan.isPattern = true
    var places = PatternPlaces(plan)
    _ = places.open(granted: 5, frameSize: 1000)
    return places
  }

  private func matched(_ number: UInt32, _ topic: String, epoch: UInt64 = 1, at offset: UInt64 = 0) -> Matched
  {
    Matched(
      number: number, topic: topic, place: Subscribed(epoch: epoch, nextOffset: offset, liveOffset: offset))
  }

  /// The request for the next stream, in one frame.
  private mutating func reopen() -> SubscribePattern {
    let (frame, others) = places.open(granted: 5, frameSize: 1 << 20)
    #expect(others.isEmpty && !frame.more)
    return frame
  }

  @Test mutating func theFirstStreamBeginsWhereThePlanSays() {
    var places = Self.make(from: .last(3))
    let (frame, others) = places.open(granted: 7, frameSize: 1000)
    #expect(frame == SubscribePattern(pattern: "a.*", start: .last(3), lag: .skip, grantedThrough: 7))
    #expect(others.isEmpty)
  }

  @Test mutating func recordsAreOfTheTopicThatFromNamed() throws {
    #expect(try places.matched(matched(1, "a.x", at: 4)) == .change(.matched(nextOffset: 4)))
    #expect(try places.matched(matched(2, "a.y")) == .change(.matched(nextOffset: 0)))
    _ = try places.select(1)
    #expect(try places.deliver(DeliverHeader(firstOffset: 4, count: 2), lastMark: 9) == ("a.x", 0))
    _ = try places.select(2)
    #expect(try places.deliver(DeliverHeader(firstOffset: 0, count: 1), lastMark: nil) == ("a.y", 0))
    _ = try places.select(1)
    // Time marks belong to the topic.
    #expect(try places.deliver(DeliverHeader(firstOffset: 6, count: 1), lastMark: nil) == ("a.x", 9))
    #expect(
      Set(reopen().positions) == [
        TopicPosition(topic: "a.x", epoch: 1, nextOffset: 7),
        TopicPosition(topic: "a.y", epoch: 1, nextOffset: 1),
      ])
  }

  @Test mutating func aLifeThatContinuesAnotherGoesOnThere() throws {
    _ = try places.matched(matched(1, "a.x", at: 4))
    _ = try places.select(1)
    _ = try places.deliver(DeliverHeader(firstOffset: 4, count: 2), lastMark: nil)
    _ = reopen()
    let place = Subscribed(epoch: 2, nextOffset: 5, liveOffset: 5, continues: true)
    #expect(try places.matched(Matched(number: 1, topic: "a.x", place: place)) == .rewound(nextOffset: 5))
    #expect(reopen().positions == [TopicPosition(topic: "a.x", epoch: 2, nextOffset: 5)])
    // No received record was lost.
    let next = Subscribed(epoch: 3, nextOffset: 5, liveOffset: 5, continues: true)
    #expect(try places.matched(Matched(number: 1, topic: "a.x", place: next)) == .known)
    #expect(reopen().positions == [TopicPosition(topic: "a.x", epoch: 3, nextOffset: 5)])
  }

  @Test mutating func aTopicGoesOnAtAnotherNode() throws {
    _ = try places.matched(matched(1, "a.x", at: 4))
    _ = try places.select(1)
    _ = try places.deliver(DeliverHeader(firstOffset: 4, count: 2), lastMark: 9)
    // The same epoch, then one that continues it, then another one.
    #expect(try places.matched(matched(2, "a.x", at: 6)) == .known)
    #expect(throws: WireError.self) {
      try places.deliver(DeliverHeader(firstOffset: 6, count: 1), lastMark: nil)
    }
    _ = try places.select(2)
    #expect(try places.deliver(DeliverHeader(firstOffset: 6, count: 1), lastMark: nil) == ("a.x", 9))
    let next = Subscribed(epoch: 2, nextOffset: 7, liveOffset: 7, continues: true)
    #expect(try places.matched(Matched(number: 3, topic: "a.x", place: next)) == .known)
    let other = Subscribed(epoch: 3, nextOffset: 0, liveOffset: 0)
    let change = try places.matched(Matched(number: 4, topic: "a.x", place: other))
    #expect(change == .change(.matched(nextOffset: 0)))
  }

  @Test mutating func whatTheBrokerMustNotSayIsRefused() throws {
    _ = try places.matched(matched(1, "a.x"))
    var attempts: [(inout PatternPlaces) throws -> Void] = []
    attempts.append { _ = try $0.matched(Self.named(0)) }
    attempts.append { _ = try $0.matched(Self.named(1)) }
    attempts.append { _ = try $0.select(2) }
    attempts.append { _ = try $0.unmatched(2) }
    attempts.append { _ = try $0.deliver(DeliverHeader(firstOffset: 0, count: 1), lastMark: nil) }
    attempts.append { _ = try $0.lagged(Lag(missed: 1, nextOffset: 1)) }
    attempts.append { _ = try $0.completed() }
    attempts.append {
      _ = try $0.select(1)
      _ = try $0.deliver(DeliverHeader(firstOffset: 1, count: 1), lastMark: nil)
    }
    for (index, attempt) in attempts.enumerated() {
      var copy = places
      #expect(throws: WireError.self, "\(index)") { try attempt(&copy) }
    }
  }

  private static func named(_ number: UInt32) -> Matched {
    Matched(number: number, topic: "a.z", place: Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0))
  }

  @Test mutating func liveIsToldOnceForEachAndForAll() throws {
    _ = try places.matched(matched(1, "a.x"))
    _ = try places.select(1)
    #expect(places.live(Live(nextOffset: 0)) == .topic("a.x", .live(nextOffset: 0)))
    _ = try places.select(0)
    #expect(places.live(Live(nextOffset: 0)) == .live(nextOffset: 0))
    _ = reopen()
    _ = try places.matched(matched(4, "a.x"))
    _ = try places.select(4)
    #expect(places.live(Live(nextOffset: 0)) == nil)
    _ = try places.select(0)
    #expect(places.live(Live(nextOffset: 0)) == nil)
  }

  @Test mutating func topicsThatWereMadeWhileThereWasNoConnectionAreReadFromTheirFirstRecord() throws {
    _ = try places.matched(matched(1, "a.x"))
    // The list wasn't complete yet, so the next topic may be one that already existed.
    #expect(reopen().start == .new)
    _ = try places.matched(matched(1, "a.x"))
    #expect(try places.select(0) == [])
    #expect(reopen().start == .offset(0))
  }

  @Test mutating func topicsThatWereDeletedMeanwhileAreTold() throws {
    _ = try places.matched(matched(1, "a.x"))
    _ = try places.matched(matched(2, "a.y"))
    _ = try places.select(0)
    _ = reopen()
    #expect(try places.matched(matched(1, "a.y")) == .known)
    #expect(try places.select(0) == ["a.x"])
    #expect(try places.select(0) == [])
    #expect(reopen().positions.map(\.topic) == ["a.y"])
    // Its slot is reused.
    #expect(try places.matched(matched(5, "a.z")) == .change(.matched(nextOffset: 0)))
    #expect(places.count == 2)
  }

  @Test mutating func anotherLifeIsANewBeginning() throws {
    _ = try places.matched(matched(1, "a.x"))
    _ = try places.select(1)
    _ = try places.deliver(DeliverHeader(firstOffset: 0, count: 3), lastMark: 5)
    // On the same stream the topic has ended before.
    #expect(try places.completed() == "a.x")
    #expect(try places.matched(matched(2, "a.x", epoch: 2)) == .change(.matched(nextOffset: 0)))
    #expect(throws: WireError.self) { _ = try places.select(1) }
    _ = try places.select(2)
    #expect(try places.deliver(DeliverHeader(firstOffset: 0, count: 1), lastMark: nil) == ("a.x", 0))
    // On another stream it is unknown how many records were missed.
    _ = reopen()
    #expect(try places.matched(matched(1, "a.x", epoch: 3, at: 7)) == .restarted(nextOffset: 7))
    _ = try places.select(1)
    _ = try places.completed()
    _ = reopen()
    // Unless the topic had ended.
    #expect(try places.matched(matched(1, "a.x", epoch: 4)) == .change(.matched(nextOffset: 0)))
  }

  @Test mutating func anEndIsToldOnce() throws {
    _ = try places.matched(matched(1, "a.x"))
    _ = try places.select(1)
    #expect(try places.completed() == "a.x")
    #expect(reopen().positions.count == 1)
    #expect(try places.matched(matched(1, "a.x")) == .known)
    _ = try places.select(1)
    #expect(try places.completed() == nil)
    #expect(try places.unmatched(1) == "a.x")
    #expect(places.count == 0)
  }

  @Test mutating func aGapIsToldEvenIfTheConnectionIsLostBeforeItIs() throws {
    _ = try places.matched(matched(1, "a.x", at: 2))
    _ = reopen()
    #expect(try places.matched(matched(1, "a.x", at: 6)) == .known)
    #expect(reopen().positions[0].nextOffset == 2)
    #expect(try places.matched(matched(1, "a.x", at: 6)) == .known)
    _ = try places.select(1)
    #expect(
      try places.lagged(Lag(missed: 4, nextOffset: 6)) == .topic("a.x", .lagged(missed: 4, nextOffset: 6)))
    #expect(try places.deliver(DeliverHeader(firstOffset: 6, count: 1), lastMark: nil) == ("a.x", 0))
    _ = reopen()
    #expect(throws: WireError.self) { _ = try places.matched(matched(1, "a.x", at: 5)) }
  }

  @Test mutating func positionsThatDoNotFitComeInSeveralFrames() throws {
    for number in 1...100 as ClosedRange<UInt32> { _ = try places.matched(matched(number, "a.\(number)")) }
    let (first, others) = places.open(granted: 1, frameSize: 300)
    #expect(first.more)
    #expect(others.count > 5)
    #expect(!others.dropLast().contains { !$0.more })
    #expect(others.last?.more == false)
    let all = first.positions + others.flatMap(\.positions)
    #expect(Set(all.map(\.topic)).count == 100)
    for frame in others { #expect(frame.encoded(stream: 1).count < 350) }
  }
}
