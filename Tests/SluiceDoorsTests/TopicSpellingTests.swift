import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceStore
import SluiceWire
import Testing

@testable import SluiceDoors

/// A name that can be written in several ways that look alike.
@Suite struct TopicSpellingTests {
  private static let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")

  /// MQTT allows any spelling. There, one that isn't composed is a topic of its own, whose name has escapes.
  @Test func namesThatAreNotComposedAreNoOtherNameAtAnyDoor() throws {
    let door = try DoorWorld([.http, .webSocket, .mqtt])
    let client = MQTTClient.connected(door, "c", at: 3)
    _ = client.take()
    client.publish(Self.composed, "one", .atLeastOnce, 1)
    client.publish(Self.decomposed, "two", .atLeastOnce, 2)
    client.settle()
    #expect(client.take().sorted() == ["puback 1", "puback 2"])
    for (packetID, filter) in [Self.decomposed, "+/\(Self.decomposed)", "$share/g/\(Self.decomposed)"]
      .enumerated()
    {
      client.subscribe(filter, .atLeastOnce, UInt16(3 + packetID))
      #expect(client.take() == ["suback \(3 + packetID) [1]"], "\(filter)")
    }
    client.subscribe("$share/\(Self.decomposed)/t", .atLeastOnce, 9)
    #expect(client.take() == ["suback 9 [\(MQTTReason.topicFilterInvalid.rawValue)]"])

    for (path, status) in [("caf%C3%A9", "200"), ("cafe%CC%81", "400")] {
      let publisher = door.connect(1)
      publisher.send("POST /topics/\(path) HTTP/1.1\r\nHost: b\r\nContent-Length: 5\r\n\r\nthree")
      let reader = door.connect(1)
      reader.send("GET /topics/\(path)?from=earliest&until=live HTTP/1.1\r\nHost: b\r\n\r\n")
      door.settle()
      for answer in [publisher, reader] { #expect(answer.text.hasPrefix("HTTP/1.1 \(status)"), "\(path)") }
    }

    let native = try NativeClient(door)
    native.send(Subscribe(topic: Self.decomposed, grantedThrough: .max), stream: 1)
    native.send(PublishOpen(topic: Self.decomposed, acknowledgement: .none), stream: 2)
    native.send(SubscribePattern(pattern: "*.\(Self.decomposed)", start: .new, grantedThrough: 0), stream: 3)
    native.settle()
    for stream in 1...3 as ClosedRange<UInt32> {
      let answer = try #require(native.frames.first { $0.header.stream == stream })
      let fault = try answer.body.withUnsafeBytes { try Fault(body: $0) }
      #expect(fault.code == .invalidTopic)
    }
    // The composed topic has the records that were published under its name.
    #expect(native.show(Self.composed).summary.nextOffset == 2)

    for (index, request) in requests(Self.decomposed).enumerated() {
      native.send(request, stream: UInt32(10 + index))
      native.settle()
      let answer = try #require(native.frames.first { $0.header.stream == UInt32(10 + index) }, "\(request)")
      let fault = try answer.body.withUnsafeBytes { try Fault(body: $0) }
      #expect(fault.code == .invalidTopic, "\(request): \(fault)")
    }
    #expect(native.show(Self.composed).summary.nextOffset == 2)
  }

  private func requests(_ name: String) -> [any Frame] {
    [
      TopicShow(topic: name), TopicSet(topic: name, settings: TopicSettings(replayRecords: 1)),
      TopicTrim(topic: name, .newest(1)), CursorDelete(topic: name, name: "c"),
      CursorMove(topic: name, name: "c", to: .earliest), TopicConnect(topic: name),
      TopicCreate(topic: name, settings: TopicSettings()), TopicDelete(topic: name),
      CursorDelete(topic: Self.composed, name: name),
      CursorMove(topic: Self.composed, name: name, to: .earliest),
    ]
  }

  /// If an earlier version stored a topic under another spelling, it is the topic of the composed name.
  @Test func aStoredTopicIsReachedUnderItsComposedName() throws {
    let store = MemoryStore()
    var change = TopicChange(TopicID(rawValue: 1))
    var settings = TopicSettings(replayRecords: 100)
    settings.storage = .durable
    change.row = StoredTopic(name: Self.decomposed, settings: settings, epoch: 7)
    try store.commit([change])
    let door = try DoorWorld([.http, .mqtt], store: store)
    let client = MQTTClient.connected(door, "c", at: 2)
    for filter in [Self.composed, "+", "#"] { client.subscribe(filter, .atMostOnce) }
    _ = client.take()
    let publisher = door.connect(1)
    publisher.send("POST /topics/caf%C3%A9 HTTP/1.1\r\nHost: b\r\nContent-Length: 3\r\n\r\none")
    door.settle()
    #expect(publisher.text.hasPrefix("HTTP/1.1 200"))
    client.settle()
    #expect(client.take().count == 3)
    let native = try NativeClient(door)
    #expect(native.show(Self.composed).summary.epoch == 7)
    #expect(native.show(Self.composed).summary.nextOffset == 1)
  }
}
