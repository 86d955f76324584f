import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire
import Testing

@testable import SluiceDoors

/// A name that can be written in several ways which look alike.
@Suite struct TopicSpellingTests {
  private static let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")

  @Test func namesThatAreNotComposedAreRefusedAtEveryDoor() throws {
    let door = try DoorWorld([.http, .webSocket, .mqtt])
    let client = MQTTClient.connected(door, "c", at: 3)
    _ = client.take()
    client.publish(Self.composed, "one", .atLeastOnce, 1)
    client.publish(Self.decomposed, "two", .atLeastOnce, 2)
    client.settle()
    #expect(client.take() == ["puback 2 \(MQTTReason.topicNameInvalid.rawValue)", "puback 1"])
    for filter in [
      Self.decomposed, "+/\(Self.decomposed)", "$share/g/\(Self.decomposed)", "$share/\(Self.decomposed)/t",
    ] {
      client.subscribe(filter, .atLeastOnce, 3)
      #expect(client.take() == ["suback 3 [\(MQTTReason.topicFilterInvalid.rawValue)]"], "\(filter)")
    }

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
    // The one topic has what came under its name.
    #expect(native.show(Self.composed).summary.nextOffset == 2)
  }
}
