import SluiceIO
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Single rules of the protocol page, checked against a broker.
@Suite struct ProtocolRuleTests {
  /// A PUBLISH whose count is one higher than its number of records.
  private func malformedBatch(from sequence: UInt64, stream: UInt32) -> [UInt8] {
    var frame = [UInt8](repeating: 0, count: FrameHeader.size + PublishHeader.size)
    frame.withUnsafeMutableBytes {
      PublishHeader(firstSequence: sequence, count: 2).write(
        at: $0.baseAddress!, stream: stream, batchLength: 4)
    }
    return frame + [0, 0, 0, 0]
  }

  private func raw(_ type: UInt8, stream: UInt32, _ body: [UInt8]) -> [UInt8] {
    var frame = [UInt8](repeating: 0, count: FrameHeader.size)
    frame.withUnsafeMutableBytes {
      FrameHeader(length: UInt32(body.count), type: FrameType(rawValue: type), stream: stream)
        .write(at: $0.baseAddress!)
    }
    return frame + body
  }

  private func publishing(_ small: SmallWorld) -> ScriptedClient {
    let client = small.connect()
    client.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    small.settle()
    client.forget()
    return client
  }

  // MARK: PUBLISH without hurry

  @Test func anAcknowledgementThatIsNotAwaitedComesWithALaterOne() throws {
    let small = try SmallWorld()
    let client = publishing(small)
    client.publish([[1], [2]], from: 0, stream: 1, flags: StreamFlag.unhurried)
    small.settle()
    #expect(client.types == [])
    client.publish([[3]], from: 2, stream: 1)
    small.settle()
    #expect(client.types == [.ack])
    #expect(try client.frames.first?.decoded(Ack.self) == Ack(through: 3, lastOffset: 2))
  }

  @Test func anAcknowledgementThatIsNotAwaitedComesWithDemand() throws {
    let small = try SmallWorld()
    let client = small.connect()
    client.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
    small.settle()
    let granted = try #require(try client.frames.last?.decoded(PublishOpened.self)).grantedThrough
    client.forget()
    var sent: UInt64 = 0
    while client.types == [], sent < granted {
      client.publish([[1]], from: sent, stream: 1, flags: StreamFlag.unhurried)
      sent += 1
      small.settle()
    }
    #expect(client.types == [.ack, .demand])
    // Half of the window is left.
    #expect(sent == granted / 2)
    #expect(try client.frames.first?.decoded(Ack.self) == Ack(through: sent, lastOffset: sent - 1))
    #expect(try client.frames.last?.decoded(Demand.self).grantedThrough == sent + granted)
  }

  @Test func anAcknowledgementThatIsNotAwaitedComesBeforeTheEnd() throws {
    let small = try SmallWorld()
    let client = publishing(small)
    client.publish([[1], [2]], from: 0, stream: 1, flags: StreamFlag.unhurried)
    client.send(Cancel(), stream: 1)
    small.settle()
    #expect(client.types == [.ack, .cancelled])
    #expect(try client.frames.first?.decoded(Ack.self) == Ack(through: 2, lastOffset: 1))
  }

  // MARK: ACK before ERROR

  @Test func whatIsKeptIsAcknowledgedBeforeTheErrorOfItsStream() throws {
    let small = try SmallWorld()
    let client = publishing(small)
    // In one write, so that the broker reads both at once.
    client.publish([[UInt8]](repeating: [1], count: 10), from: 0, stream: 1)
    client.send(malformedBatch(from: 10, stream: 1))
    small.settle()
    #expect(client.types == [.ack, .error])
    #expect(try client.frames.first?.decoded(Ack.self) == Ack(through: 10, lastOffset: 9))
    #expect(try client.frames.last?.decoded(Fault.self).code == .malformedBatch)
  }

  @Test func whatIsKeptIsAcknowledgedBeforeTheErrorOfItsConnection() throws {
    let small = try SmallWorld()
    let client = publishing(small)
    client.publish([[1], [2]], from: 0, stream: 1)
    client.send(raw(0x7F, stream: 0, []))
    small.settle()
    #expect(client.types == [.ack, .error])
    #expect(try client.frames.first?.decoded(Ack.self).through == 2)
    #expect(try client.frames.last?.decoded(Fault.self).code == .unsupportedFrame)
    #expect(client.hasEnded)
  }

  @Test func whatIsKeptIsAcknowledgedBeforeTheTopicsEnd() throws {
    let small = try SmallWorld()
    let client = publishing(small)
    client.publish([[1], [2], [3]], from: 0, stream: 1)
    client.send(TopicDelete(topic: "t"), stream: 2)
    small.settle()
    #expect(client.frames(on: 1).map(\.header.type) == [.ack, .error])
    #expect(try client.frames(on: 1).last?.decoded(Fault.self).code == .topicDeleted)
  }

  // MARK: Demand

  @Test func bytesOfAPublicationCountFromZeroWhateverItsSequence() throws {
    let small = try SmallWorld { $0.limits.producerWindowBytes = 65_536 }
    let client = small.connect()
    client.send(
      PublishOpen(topic: "t", acknowledgement: .none, producer: 7, firstSequence: 1_000), stream: 1)
    small.settle()
    let opened = try #require(client.frames(on: 1).first).decoded(PublishOpened.self)
    #expect(opened.nextSequence == 1_000)
    #expect(opened.grantedThrough == 1_000 + small.broker.core.configuration.limits.producerWindow)
    #expect(opened.bytesThrough == 65_536)
  }

  @Test func theBytesOfASubscribersDemandMeanNothing() throws {
    let small = try SmallWorld()
    let client = publishing(small)
    client.publish([[1], [2], [3]], from: 0, stream: 1)
    client.send(Subscribe(topic: "t", grantedThrough: 0), stream: 2)
    client.send(Demand(grantedThrough: 2, bytesThrough: 0), stream: 2)
    small.settle()
    let counts = try client.frames(on: 2).filter { $0.header.type == .deliver }.map {
      try $0.body.withUnsafeBytes { try DeliverHeader.decode($0).header.count }
    }
    #expect(counts.reduce(0, +) == 2)
  }

  // MARK: Streams

  @Test func eachCancelIsAnswered() throws {
    let small = try SmallWorld()
    let client = small.connect()
    client.forget()
    client.send(Subscribe(topic: "t", grantedThrough: 0), stream: 1)
    small.settle()
    client.send(Cancel(), stream: 1)
    client.send(Cancel(), stream: 1)
    small.settle()
    #expect(client.frames(on: 1).map(\.header.type) == [.subscribed, .live, .cancelled, .cancelled])
  }

  @Test(arguments: [
    (FrameType.demand, [UInt8](repeating: 1, count: 16)), (.publish, [UInt8](repeating: 0, count: 12)),
    (.complete, [UInt8](repeating: 0, count: 10)), (.settle, [UInt8](repeating: 0, count: 20)),
    (.commit, [UInt8](repeating: 0, count: 8)), (.positions, [UInt8](repeating: 0, count: 5)),
    (.cancel, []),
  ])
  func aFrameOnANumberThatWasNeverUsedEndsTheConnection(_ type: FrameType, _ body: [UInt8]) throws {
    let small = try SmallWorld()
    let client = small.connect()
    client.forget()
    client.send(raw(type.rawValue, stream: 3, body))
    small.settle()
    #expect(client.types == [.error])
    #expect(try client.frames.first?.decoded(Fault.self).code == .invalidStream)
    #expect(client.frames.first?.header.stream == 0)
  }

  @Test func requestsTakeEffectInTheOrderInWhichTheyAreSent() throws {
    let small = try SmallWorld()
    let client = small.connect()
    client.forget()
    var settings = TopicSettings(replayRecords: 5)
    settings.flow = .lossless
    client.send(TopicCreate(topic: "t", settings: settings), stream: 1)
    client.send(PublishOpen(topic: "t", acknowledgement: .none), stream: 2)
    client.send(CursorMove(topic: "t", name: "c", to: .earliest), stream: 3)
    client.send(CursorDelete(topic: "t", name: "c"), stream: 4)
    client.send(CursorDelete(topic: "t", name: "c"), stream: 5)
    client.send(TopicDelete(topic: "t"), stream: 6)
    client.send(TopicShow(topic: "t"), stream: 7)
    client.send(TopicDelete(topic: "t"), stream: 8)
    small.settle()
    #expect(try client.frames(on: 1).first?.decoded(TopicInfo.self).settings.flow == .lossless)
    #expect(client.frames(on: 2).map(\.header.type) == [.publishOpened, .error])
    for done in [3, 4, 6] as [UInt32] { #expect(client.frames(on: done).map(\.header.type) == [.done]) }
    for (refused, code) in [(5, ErrorCode.unknownCursor), (7, .unknownTopic), (8, .unknownTopic)] {
      #expect(try client.frames(on: UInt32(refused)).first?.decoded(Fault.self).code == code)
    }
  }

  // MARK: What is cut short, or comes at the wrong moment

  @Test(arguments: [(UInt8(0x04), 7), (0x06, 5), (0x03, 0), (0x06, 0), (0x04, 0)])
  func aFrameThatIsCutShortEndsTheConnectionWhateverItSays(_ type: UInt8, _ length: Int) throws {
    let small = try SmallWorld()
    let client = small.connect()
    client.forget()
    client.send(raw(type, stream: 0, [UInt8](repeating: 0, count: length)))
    small.settle()
    #expect(client.types == [.error])
    #expect(try client.frames.first?.decoded(Fault.self).code == .malformedFrame)
  }

  @Test func anErrorFromAClientBelongsOnStreamZero() throws {
    let small = try SmallWorld()
    let client = publishing(small)
    client.send(Fault(code: .producerFailure, message: "x"), stream: 0)
    small.settle()
    #expect(client.types == [] && !client.hasEnded)
    client.send(Fault(code: .producerFailure, message: "x"), stream: 1)
    small.settle()
    #expect(client.types == [.error])
    #expect(try client.frames.first?.decoded(Fault.self).code == .unexpectedFrame)
  }

  @Test func theFirstFrameIsHelloWhateverItsType() throws {
    for type: UInt8 in [0x7F, 0x80, 0xFF, 0x03, 0x06] {
      let small = try SmallWorld()
      let client = small.connect(raw: true)
      client.send(raw(type, stream: 0, [UInt8](repeating: 0, count: 8)))
      small.settle()
      #expect(client.types == [.error])
      #expect(try client.frames.first?.decoded(Fault.self).code == .notSluice, "type \(type)")
    }
    let small = try SmallWorld()
    let client = small.connect()
    client.forget()
    client.send(raw(0x80, stream: 77, [1, 2, 3]))
    client.send(Ping(token: 1), stream: 0)
    small.settle()
    #expect(client.types == [.pong])
  }

  // MARK: Names

  @Test func ofEquivalentNamesTheComposedOneIsAName() throws {
    let small = try SmallWorld()
    let client = small.connect()
    client.forget()
    client.send(TopicCreate(topic: "caf\u{E9}", settings: TopicSettings()), stream: 1)
    client.send(TopicShow(topic: "cafe\u{301}"), stream: 2)
    client.send(TopicCreate(topic: "cafe\u{301}", settings: TopicSettings()), stream: 3)
    client.send(Subscribe(topic: "cafe\u{301}", grantedThrough: .max), stream: 4)
    client.send(TopicList(limit: 10), stream: 5)
    client.send(TopicShow(topic: "caf\u{E9}"), stream: 6)
    small.settle()
    #expect(client.frames(on: 1).map(\.header.type) == [.topicInfo])
    for stream in 2...4 as ClosedRange<UInt32> {
      #expect(try client.frames(on: stream).first?.decoded(Fault.self).code == .invalidTopic)
    }
    #expect(try client.frames(on: 5).first?.decoded(Topics.self).topics.count == 1)
    let shown = try #require(client.frames(on: 6).first).decoded(TopicInfo.self).summary.topic
    #expect(Array(shown.utf8) == Array("caf\u{E9}".utf8))
  }

  // MARK: A byte a second

  @Test func aFrameAtOneByteASecondIsTakenAndHelloIsNot() throws {
    let small = try SmallWorld()
    let slow = small.connect(raw: true)
    let hello = Hello(maximumFrame: 1 << 20, keepalive: 0, name: "slow").encoded(stream: 0)
    for byte in hello.prefix(15) {
      slow.send([byte])
      small.settle(.seconds(1))
    }
    #expect(slow.types == [.error])
    #expect(try slow.frames.first?.decoded(Fault.self).code == .handshakeTimeout)
    #expect(slow.hasEnded)

    // Every byte counts as activity for the keepalive.
    let client = small.connect(keepalive: 3_000)
    client.forget()
    for byte in TopicCreate(topic: "a.long.name.of.a.topic", settings: TopicSettings()).encoded(stream: 1) {
      client.send([byte])
      small.settle(.seconds(1))
    }
    #expect(client.types == [.topicInfo])
  }
}
