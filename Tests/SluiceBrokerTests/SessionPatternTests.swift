import SluiceSession
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// SUBSCRIBE_PATTERN with positions in several frames.
struct SessionPatternTests {
  typealias Outcome = SessionProbe.Outcome

  private var probe = SessionProbe.open()

  private func positions(_ count: Int) -> [TopicPosition] {
    (0..<count).map { TopicPosition(topic: "t\($0)", epoch: 1, nextOffset: 2) }
  }

  private func opening(_ count: Int, granted: UInt64 = 3) -> SubscribePattern {
    SubscribePattern(pattern: "a.*", grantedThrough: granted, positions: positions(count), more: true)
  }

  private func subscribed(_ count: Int, granted: UInt64 = 3, stream: UInt32 = 1) -> Outcome {
    .subscribePattern(stream: stream, pattern: "a.*", positions: count, grantedThrough: granted)
  }

  @Test mutating func oneFrameIsEnough() {
    let frame = SubscribePattern(pattern: "a.*", grantedThrough: 3, positions: positions(2))
    #expect(probe.receive(frame, stream: 1) == subscribed(2))
    #expect(probe.receive(Demand(grantedThrough: 9), stream: 1) == .demand(stream: 1, grantedThrough: 9))
    #expect(probe.session.openStreams == [1])
    #expect(probe.receive(Positions([], more: false), stream: 1) == .connectionError(.invalidStream))
  }

  @Test mutating func itBeginsWithTheLastPositions() {
    #expect(probe.receive(opening(1), stream: 1) == .nothing)
    #expect(probe.session.openStreams == [])
    #expect(probe.receive(Positions(positions(2), more: true), stream: 1) == .nothing)
    // Demand granted meanwhile counts.
    #expect(probe.receive(Demand(grantedThrough: 9), stream: 1) == .nothing)
    #expect(probe.receive(Demand(grantedThrough: 5), stream: 1) == .nothing)
    #expect(probe.receive(Positions(positions(1), more: false), stream: 1) == subscribed(4, granted: 9))
    #expect(probe.receive(Demand(grantedThrough: 9), stream: 1) == .nothing)
    #expect(probe.receive(Demand(grantedThrough: 10), stream: 1) == .demand(stream: 1, grantedThrough: 10))
  }

  @Test mutating func theStreamIsInUseMeanwhile() {
    _ = probe.receive(opening(0), stream: 1)
    #expect(probe.receive(opening(0), stream: 1) == .connectionError(.invalidStream))
    #expect(probe.receive(Demand(grantedThrough: 0), stream: 1) == .fault(stream: 1, .invalidDemand))
  }

  @Test mutating func itCanBeGivenUpBeforeItBegins() {
    _ = probe.receive(opening(5), stream: 1)
    #expect(probe.receive(Cancel(), stream: 1) == .confirmCancel(stream: 1))
    // Positions received for the cancelled stream no longer count.
    _ = probe.receive(opening(5), stream: 1)
    #expect(probe.receive(Positions([], more: false), stream: 1) == subscribed(5))
  }

  @Test mutating func noMorePositionsAreTakenThanTheLimit() {
    _ = probe.receive(opening(3), stream: 1)
    #expect(probe.receive(opening(3), stream: 2) == .fault(stream: 2, .limitReached))
    #expect(probe.receive(Positions(positions(3), more: true), stream: 1) == .fault(stream: 1, .limitReached))
    // The client had sent more of it.
    #expect(probe.receive(Positions(positions(3), more: false), stream: 1) == .nothing)
    _ = probe.receive(opening(5), stream: 3)
    #expect(probe.receive(Positions([], more: false), stream: 3) == subscribed(5, stream: 3))
  }

  @Test mutating func positionsNeedAStreamThatWaitsForThem() {
    #expect(probe.receive(Positions([], more: false), stream: 1) == .connectionError(.invalidStream))
  }
}
