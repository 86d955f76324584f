import SluiceBroker
import SluiceIO
import SluiceMQTT
import SluiceSimulation
import SluiceStore
import SluiceWire
import Testing

@testable import SluiceDoors
@testable import SluiceMQTT

/// Stores of earlier versions: one record per session, and retained messages in a separate topic.
@Suite struct MQTTFormerStoreTests {
  /// Writes records of an earlier version, byte by byte.
  private struct Writer {
    let native: NativeClient
    let process: UInt64 = 0x0203_0405_0607_0802
    private(set) var sessions = BatchBuilder()
    private(set) var retained = BatchBuilder()
    private var version: UInt64 = 0

    init(_ native: NativeClient) {
      self.native = native
    }

    private func append(_ key: [UInt8], _ value: [UInt8], to batch: inout BatchBuilder) {
      key.withUnsafeBytes { key in
        value.withUnsafeBytes { value in try? batch.append(key: key, headers: [], payload: value) }
      }
    }

    private func value() -> ByteWriter {
      var writer = ByteWriter()
      writer.integer(process)
      return writer
    }

    mutating func session(_ clientID: String, _ session: MQTTKeptSession?) {
      let key = MQTTHub.Key(identity: "", clientID: clientID)
      append(key.encoded, value().bytes + (session?.encoded ?? []), to: &sessions)
    }

    mutating func message(_ topic: String, _ text: String?, at time: Int64, expiry: UInt32? = nil) {
      version += 1
      var writer = value()
      writer.integer(version)
      if let text {
        var properties = MQTTProperties()
        if let expiry { properties.append(.messageExpiry, expiry) }
        var item: [UInt8] = []
        var message = MQTTConnect.Will(
          topic: topic, payload: Array(text.utf8), qos: .atLeastOnce, isRetained: true)
        message.properties = properties
        message.withMessage { message in
          Array(topic.utf8).withUnsafeBytes { _ = MQTTRecordWriter.append(message, key: $0, to: &item) }
        }
        writer.integer(time)
        append(Array(topic.utf8), writer.bytes + item[4...], to: &retained)
      } else {
        append(Array(topic.utf8), writer.bytes, to: &retained)
      }
    }

    func write() {
      var settings = TopicSettings(
        replayRecords: TopicSettings.unlimited, replayBytes: TopicSettings.unlimited,
        replayAge: TopicSettings.unlimited)
      (settings.storage, settings.sync) = (.durable, .always)
      let topics = [("mqtt.sessions", sessions), ("mqtt.retained-log", retained)]
      for (index, (topic, batch)) in topics.enumerated() where batch.count > 0 {
        native.send(TopicCreate(topic: topic, settings: settings), stream: UInt32(201 + 2 * index))
        native.settle()
        native.publish(topic, batch, stream: UInt32(101 + 2 * index))
      }
      native.settle()
    }
  }

  private static func session(
    _ filter: String, topic: MQTTKnownTopic, at offset: UInt64, leftAt: Int64?, expiry: UInt32 = 3600,
    will: MQTTConnect.Will? = nil
  ) throws -> MQTTKeptSession {
    var state = MQTTSessionState()
    state.set(
      0,
      MQTTSessionState.Subscription(
        filter: try MQTTTopicFilter(filter), options: MQTTSubscriptionOptions(.atLeastOnce), identifier: 0,
        start: .new))
    return MQTTKeptSession(
      state: state.encoded(), producer: 7, topics: [1: topic],
      positions: [0: MQTTPositions(offsets: [1: offset])], exact: [:], expiry: expiry, leftAt: leftAt,
      will: will)
  }

  @Test func sessionsAreTakenOver() throws {
    let store = MemoryStore()
    let former = try DoorWorld([], store: store)
    let native = try NativeClient(former)
    native.publish("t.a", ["1", "2"], stream: 1)
    let known = MQTTKnownTopic(name: "t.a", epoch: native.show("t.a").summary.epoch)
    let now = former.loop.wallClock
    let will = MQTTConnect.Will(topic: "gone/held", payload: Array("dead".utf8), qos: .atLeastOnce)
    var writer = Writer(native)
    writer.session("away", try Self.session("x", topic: known, at: 0, leftAt: nil))
    writer.session("away", try Self.session("t/+", topic: known, at: 1, leftAt: now))
    writer.session("held", try Self.session("t/+", topic: known, at: 0, leftAt: nil, will: will))
    writer.session("ended", try Self.session("t/+", topic: known, at: 0, leftAt: now))
    writer.session("ended", nil)
    writer.session("expired", try Self.session("t/+", topic: known, at: 0, leftAt: now, expiry: 1))
    writer.session("watcher", try Self.session("gone/+", topic: known, at: 0, leftAt: nil))
    writer.write()
    former.broker.shutdown()
    former.settle(.seconds(5))

    let door = try DoorWorld([.mqtt], store: store)
    for round in 0..<2 {
      func come(_ id: String) -> [String] {
        let client = MQTTClient.connected(door, id, clean: false, expiry: 3600)
        client.settle(.seconds(1))
        return client.take()
      }
      #expect(come("away") == ["connack 0 present"] + (round == 0 ? ["publish t/a \"2\" 1"] : []))
      let held = ["publish t/a \"1\" 1", "publish t/a \"2\" 1"]
      #expect(come("held") == ["connack 0 present"] + (round == 0 ? held : []))
      #expect(come("watcher") == ["connack 0 present"] + (round == 0 ? ["publish gone/held \"dead\" 1"] : []))
      if round == 0 {
        #expect(come("ended") == ["connack 0"])
        #expect(come("expired") == ["connack 0"])
      }
      door.settle(.seconds(1))
      try door.restart(orderly: round == 0)
    }
  }

  @Test func retainedMessagesAreTakenOver() throws {
    let store = MemoryStore()
    let former = try DoorWorld([], store: store)
    let now = former.loop.wallClock
    var writer = Writer(try NativeClient(former))
    writer.message("state.a", "old", at: now)
    writer.message("state.b", "b", at: now)
    writer.message("state.a", "new", at: now)
    writer.message("state.gone", "x", at: now)
    writer.message("state.gone", nil, at: now)
    writer.message("state.expired", "x", at: now - 10_000, expiry: 5)
    writer.message("state.later", "l", at: now, expiry: 1000)
    writer.write()
    former.broker.shutdown()
    former.settle(.seconds(5))

    let door = try DoorWorld([.mqtt], store: store)
    for round in 0..<3 {
      let client = MQTTClient.connected(door, "")
      client.subscribe("state/#", .atLeastOnce)
      client.settle()
      let messages = client.take().filter { $0.hasPrefix("publish") }.sorted()
      let a = round < 2 ? "new" : "newer"
      #expect(
        messages
          == [("a", a), ("b", "b"), ("later", "l")].map { "publish state/\($0) \"\($1)\" 1 retained" })
      let topics = try NativeClient(door)
      topics.send(TopicShow(topic: "mqtt.retained-log"), stream: 7)
      topics.settle()
      #expect(topics.frames.last?.header.type == .error)
      if round == 1 { client.publish("state/a", "newer", .atLeastOnce, 1, retained: true) }
      client.settle()
      try door.restart(orderly: round == 0)
    }
  }

  /// A broker that ends while it takes messages over: what clients have published since is newer.
  @Test func aMessageThatIsThereStays() throws {
    let store = MemoryStore()
    let first = try DoorWorld([.mqtt], store: store)
    let client = MQTTClient.connected(first, "c")
    client.publish("state/a", "newer", .atLeastOnce, 1, retained: true)
    client.settle()
    var writer = Writer(try NativeClient(first))
    writer.message("state.a", "old", at: first.loop.wallClock)
    writer.message("state.b", "b", at: first.loop.wallClock)
    writer.write()
    try first.restart()
    let reader = MQTTClient.connected(first, "r")
    reader.subscribe("state/#", .atLeastOnce)
    reader.settle()
    #expect(
      reader.take().filter { $0.hasPrefix("publish") }.sorted()
        == ["publish state/a \"newer\" 1 retained", "publish state/b \"b\" 1 retained"])
  }
}
