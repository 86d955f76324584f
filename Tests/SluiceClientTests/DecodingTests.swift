import ReactiveCore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceClient

/// Topics with records that are decoded before delivery.
@Suite struct DecodingTests {
  private let broker: ScriptedBroker
  private let client: Client

  init() throws {
    broker = try ScriptedBroker()
    client = try broker.client()
  }

  private func numbers(_ onFailure: DecodeFailure = .fail) -> RemoteTopic<Int> {
    client.topic("numbers", as: Int.self, decoder: NumberDecoder(), decodeFailure: onFailure)
  }

  /// Opens a subscription. Returns its first grant.
  @discardableResult
  private func subscribe<Value>(_ recorder: Recorder<Value>, to topic: RemoteTopic<Value>) throws -> UInt64 {
    topic.subscribe(recorder)
    let frame: Subscribe = try broker.takeOnly()
    broker.send(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0), 1)
    broker.settle()
    return frame.grantedThrough
  }

  @Test func valuesAreWhatTheDecoderMakesOfThem() throws {
    let recorder = Recorder<Int>()
    try subscribe(recorder, to: numbers())
    broker.send(deliver(stream: 1, firstOffset: 0, ["1", "20", "-3"]))
    broker.send(Complete(.finished), 1)
    broker.settle()
    #expect(recorder.history == [.subscription, .value("1"), .value("20"), .value("-3"), .finished])
  }

  @Test func aPlanIsKeptThroughDecoding() throws {
    let topic = client.topic("t", as: Int.self, decoder: NumberDecoder(), from: .last(3), lag: .fail)
    #expect(topic.plan == SubscriptionPlan("t", from: .last(3), lag: .fail))
    #expect(client.topic(topic.plan).name == "t")
  }

  @Test func aClosureDecodesToo() throws {
    var values: [(offset: UInt64, text: String)] = []
    let cancellable = client.topic("t").decoded { ($0.offset, $0.string) }
      .eraseToAnyPublisher()
      .sink { _ in
      } receiveValue: {
        values.append($0)
      }
    _ = broker.takeReceived()
    broker.send(Subscribed(epoch: 1, nextOffset: 4, liveOffset: 4), 1)
    broker.send(deliver(stream: 1, firstOffset: 4, ["a", "b"]))
    broker.settle()
    #expect(values.map(\.offset) == [4, 5])
    #expect(values.map(\.text) == ["a", "b"])
    _ = cancellable
  }

  @Test func eventsAreDecodedBetweenTheirMarks() throws {
    let recorder = Recorder<TopicEvent<Int>>()
    numbers(.skip).events.subscribe(recorder)
    _ = broker.takeReceived()
    broker.send(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 2), 1)
    broker.send(deliver(stream: 1, firstOffset: 0, ["7", "seven"]))
    broker.send(Live(nextOffset: 2), 1)
    broker.send(deliver(stream: 1, firstOffset: 2, ["8"]))
    broker.settle()
    #expect(
      recorder.history == [
        .subscription, .value("record(7)"), .value("live(nextOffset: 2)"), .value("record(8)"),
      ])
  }

  // MARK: Records that can't be decoded

  @Test func theFirstRecordThatIsNoneEndsTheSubscription() throws {
    var failure: ClientError?
    var values: [Int] = []
    let cancellable = numbers().eraseToAnyPublisher().sink {
      if case .failure(let error) = $0 { failure = error }
    } receiveValue: {
      values.append($0)
    }
    _ = broker.takeReceived()
    broker.send(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0), 1)
    broker.send(deliver(stream: 1, firstOffset: 0, ["1", "two", "3"]))
    _ = try broker.takeOnly(Cancel.self)
    #expect(values == [1])
    #expect(failure?.code == .decodeFailed)
    #expect(failure?.topic == "numbers")
    #expect(failure?.offset == 1)
    #expect(
      failure?.message
        == "record 1 of topic numbers can't be decoded as Int: 'two' isn't a number; skip such records with "
        + "decodeFailure: .skip, or correct their producer")
    // Frames in transit are dropped, and the connection continues.
    broker.send(deliver(stream: 1, firstOffset: 3, ["4"]))
    broker.send(Cancelled(), 1)
    broker.settle()
    #expect(values == [1])
    #expect(client.failure == nil)
    _ = cancellable
  }

  @Test func aFailureIsSaidOnceThoughTheTopicEndsToo() throws {
    let recorder = Recorder<Int>(initial: .max(9)) { _, _ in .max(1) }
    try subscribe(recorder, to: numbers())
    broker.send(deliver(stream: 1, firstOffset: 0, ["x", "y"]) + Complete(.finished).encoded(stream: 1))
    broker.settle()
    #expect(recorder.history == [.subscription, .failure(.decodeFailed)])
  }

  @Test func aRecordThatIsNotAskedForIsNotDecoded() throws {
    let topic = client.topic("t", prefetch: .keepFull(8))
      .decoded(as: Int.self, decoder: NumberDecoder())
    let recorder = Recorder<Int>(initial: .max(1))
    try subscribe(recorder, to: topic)
    broker.send(deliver(stream: 1, firstOffset: 0, ["1", "two"]))
    broker.settle()
    #expect(recorder.history == [.subscription, .value("1")])
    recorder.subscription?.request(.max(1))
    broker.settle()
    #expect(recorder.history == [.subscription, .value("1"), .failure(.decodeFailed)])
  }

  @Test func aSkippedRecordIsReplacedByAnother() throws {
    let recorder = Recorder<Int>(initial: .max(1))
    #expect(try subscribe(recorder, to: numbers(.skip)) == 1)
    broker.send(deliver(stream: 1, firstOffset: 0, ["one"]))
    #expect(try broker.takeOnly(Demand.self).grantedThrough == 2)
    broker.send(deliver(stream: 1, firstOffset: 1, ["two"]))
    #expect(try broker.takeOnly(Demand.self).grantedThrough == 3)
    broker.send(deliver(stream: 1, firstOffset: 2, ["3"]))
    // The demand is satisfied.
    #expect(broker.takeReceived().isEmpty)
    #expect(recorder.values == ["3"])
    recorder.subscription?.request(.max(2))
    #expect(try broker.takeOnly(Demand.self).grantedThrough == 5)
  }

  @Test func manySkippedRecordsOfABatchCostOneFrame() throws {
    let recorder = Recorder<Int>(initial: .max(5))
    try subscribe(recorder, to: numbers(.skip))
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "1", "b", "2", "c"]))
    #expect(try broker.takeOnly(Demand.self).grantedThrough == 8)
    #expect(recorder.values == ["1", "2"])
  }

  @Test(arguments: [SubscriptionPlan.Prefetch.byRequest, .keepFull(1), .keepFull(10)])
  func maxOnePerValueStaysExactAmongSkips(prefetch: SubscriptionPlan.Prefetch) throws {
    let topic = client.topic("t", prefetch: prefetch)
      .decoded(as: Int.self, decoder: NumberDecoder(), decodeFailure: .skip)
    let recorder = Recorder<Int>(initial: .max(1))
    var granted = try subscribe(recorder, to: topic)
    // The broker sends every granted record; only every third one can be decoded.
    var next: UInt64 = 0
    func sendGranted() throws {
      while next < granted {
        let texts = (next..<granted).map { $0 % 3 == 2 ? "\($0)" : "no number" }
        broker.send(deliver(stream: 1, firstOffset: next, texts))
        next = granted
        for frame in broker.takeReceived() { granted = try frame.decode(Demand.self).grantedThrough }
      }
    }
    for count in 1...20 {
      try sendGranted()
      #expect(recorder.values == (0..<count).map { "\($0 * 3 + 2)" })
      recorder.subscription?.request(.max(1))
      for frame in broker.takeReceived() { granted = try frame.decode(Demand.self).grantedThrough }
    }
    if prefetch == .byRequest { #expect(next == 60) }
  }

  @Test func unlimitedDemandStaysUnlimitedAmongSkips() throws {
    let recorder = Recorder<Int>()
    #expect(try subscribe(recorder, to: numbers(.skip)) == Credit.unlimited)
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "1", "b"]))
    broker.send(Complete(.finished), 1)
    #expect(broker.takeReceived().isEmpty)
    #expect(recorder.history == [.subscription, .value("1"), .finished])
  }

  @Test func skippedRecordsAreNotAskedForAgainAfterALostConnection() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client { $0.reconnect = ReconnectPolicy() }
    let recorder = Recorder<Int>(initial: .max(3))
    client.topic("t", as: Int.self, decoder: NumberDecoder(), decodeFailure: .skip).subscribe(recorder)
    _ = broker.takeReceived()
    broker.send(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0), 1)
    broker.send(deliver(stream: 1, firstOffset: 0, ["1", "x"]))
    broker.settle()
    broker.breakOff()
    let again = try #require(broker.takeReceived().last { $0.type == .subscribe }).decode(Subscribe.self)
    #expect(again.start == .offset(2))
    #expect(again.grantedThrough == 2)
  }

  @Test func cancellingWithinTheDecoderDeliversNothingMore() throws {
    let box = Box<(any Subscription)?>(nil)
    let recorder = Recorder<Int>()
    let topic = client.topic("t").decoded { record in
      if record.string == "stop" { box.value?.cancel() }
      return record.count
    }
    topic.subscribe(recorder)
    box.value = recorder.subscription
    _ = broker.takeReceived()
    broker.send(Subscribed(epoch: 1, nextOffset: 0, liveOffset: 0), 1)
    broker.send(deliver(stream: 1, firstOffset: 0, ["go", "stop", "more"]))
    broker.settle()
    #expect(recorder.history == [.subscription, .value("2")])
  }

  // MARK: Encoding

  @Test func messagesAreWhatTheEncoderMakesOfValues() throws {
    let message = try Message(encoding: 7, encoder: NumberEncoder(), key: "k")
    #expect(message == Message("7", key: "k"))
  }

  @Test func aValueThatCannotBeEncodedSaysWhy() {
    #expect(
      throws: ClientError(
        .encodeFailed, "a value of type String can't be encoded to be published: only numbers can be")
    ) {
      try Message(encoding: "seven", encoder: NumberEncoder())
    }
  }
}

/// Decodes numbers from text.
private struct NumberDecoder: TopLevelDecoder {
  func decode<T: Decodable>(_ type: T.Type, from input: [UInt8]) throws -> T {
    let text = String(decoding: input, as: UTF8.self)
    guard let number = Int(text) as? T else {
      throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "'\(text)' isn't a number"))
    }
    return number
  }
}

private struct NumberEncoder: TopLevelEncoder {
  func encode<T: Encodable>(_ value: T) throws -> [UInt8] {
    guard let number = value as? Int else {
      throw EncodingError.invalidValue(value, .init(codingPath: [], debugDescription: "only numbers can be"))
    }
    return [UInt8]("\(number)".utf8)
  }
}
