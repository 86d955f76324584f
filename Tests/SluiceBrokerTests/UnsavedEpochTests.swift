import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceStore

/// A broker was cut off, and starts again while its disk takes nothing: the topic's next epoch has a number that isn't on disk.
@Suite struct UnsavedEpochTests {
  private let setting: DurableSetting
  private let client: RawClient
  /// The epoch of the topic before the crash. Four of its records are on disk.
  private let former: UInt64

  init() throws {
    setting = try DurableSetting()
    let before = try setting.client()
    try before.create("t", DurableSetting.durable(.interval(1)))
    try before.publishAll((0..<4).map { "record \($0)" }, to: "t")
    former = try before.show("t").summary.epoch
    try before.openPublication("t", stream: 1, acknowledgement: .durable, producer: 7)
    try before.publish(["on disk"], stream: 1)
    try before.receiveAcknowledgements(stream: 1)
    try before.send(JoinGroup(topic: "t", group: "g", grantedThrough: 0), stream: 2)
    try before.sendSubscribe("t", stream: 3, from: .earliest, epoch: 0, cursor: "c")
    for stream in 2...3 as ClosedRange<UInt32> {
      _ = try before.receive("SUBSCRIBED") { $0.stream == stream && $0.type == Subscribed.type }
    }
    try setting.restart(cutOff: true, failure: .full)
    client = try setting.client()
  }

  /// The first frame of a reader that returns. Producers and new cursors are refused as long as the disk takes nothing.
  private enum Opening: CaseIterable {
    case subscription, cursor, group, pattern, knownPattern
  }

  private func send(_ opening: Opening) throws {
    switch opening {
    case .subscription: try client.sendSubscribe("t", stream: 1, from: .offset(3), epoch: former)
    case .cursor: try client.sendSubscribe("t", stream: 1, from: .earliest, epoch: 0, cursor: "c")
    case .group: try client.send(JoinGroup(topic: "t", group: "g", grantedThrough: 0), stream: 1)
    case .pattern, .knownPattern:
      var frame = SubscribePattern(pattern: "*", start: .earliest, grantedThrough: Credit.unlimited)
      if opening == .knownPattern {
        frame.positions = [TopicPosition(topic: "t", epoch: former, nextOffset: 3)]
      }
      try client.send(frame, stream: 1)
    }
  }

  private func epoch(in frame: ReceivedFrame) throws -> UInt64? {
    switch frame.type {
    // That of a pattern has none.
    case Subscribed.type:
      try frame.decode(Subscribed.self).epoch == 0 ? nil : frame.decode(Subscribed.self).epoch
    case Matched.type: try frame.decode(Matched.self).place.epoch
    default: nil
    }
  }

  @Test(arguments: Opening.allCases)
  private func noClientIsGivenANumberThatIsNotOnDisk(_ opening: Opening) throws {
    try send(opening)
    for token in 1...3 as ClosedRange<UInt64> {
      try client.send(Ping(token: token), stream: 0)
      _ = try client.receive("PONG") { frame in
        let early = try epoch(in: frame)
        #expect(early == nil)
        return frame.type == .pong
      }
    }
    setting.store.fail(nil)
    var told: UInt64?
    _ = try client.receive("the epoch's number") { frame in
      told = try epoch(in: frame)
      return told != nil
    }
    let stored = try setting.store.contents().topics.map(\.row.epoch)
    #expect(stored == [told] && told != former)
  }

  @Test func aSecondCrashBeforeTheDiskWorksLosesNobody() throws {
    try client.sendSubscribe("t", stream: 1, from: .offset(3), epoch: former)
    try client.roundTrip()
    try setting.restart(cutOff: true)
    let again = try setting.client()
    try again.sendSubscribe("t", stream: 1, from: .offset(3), epoch: former)
    let place = try again.receive("SUBSCRIBED") { $0.type == Subscribed.type }.decode(Subscribed.self)
    #expect(place.continues && place.nextOffset == 3)
  }
}
