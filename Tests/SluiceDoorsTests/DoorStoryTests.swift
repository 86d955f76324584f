import Glibc
import SluiceBroker
import SluiceIO
import SluiceStore
import SluiceTopics
import SluiceWire
import TestSupport
import Testing

/// Clients of all gateways publish to the same topics and read them, over connections that are lost.
///
/// Each reader must get each record once, in the topic's order, as its producer published it.
@Suite struct DoorStoryTests {
  /// Random seeds and one that loses a PUBCOMP, or the seed in `SLUICE_SEED`. A failure prints its seed.
  private static let seeds: [UInt64] =
    getenv("SLUICE_SEED").flatMap { UInt64(String(cString: $0)) }.map { [$0] }
    ?? [3_310_936_101] + (0..<30).map { _ in .random(in: 1...0xFFFF_FFFF) }

  private static let topics = ["kept.all", "memory.all"]
  private static let recordsPerWriter = 8

  private final class Story {
    let door: DoorWorld
    var random: TestSupport.SeededRandom
    var writers: [(topic: String, name: String, writer: any StoryWriter)] = []
    var readers: [(topic: String, name: String, reader: any StoryReader)] = []
    var published: [String: [DoorRecord]] = [:]

    init(seed: UInt64) throws {
      random = TestSupport.SeededRandom(seed: seed)
      let pattern = try TopicPattern("memory.>")
      door = try DoorWorld(seed: seed, [.http, .webSocket, .mqtt], store: MemoryStore()) { configuration in
        var memory = TopicSettings()
        memory.storage = .memory
        configuration.topicRules = [TopicRule(pattern: pattern, settings: memory)]
      }
      for (number, topic) in DoorStoryTests.topics.enumerated() {
        let producer = UInt64(number * 2 + 1)
        writers += [
          (topic, "native", NativeStoryWriter(door, at: 0, wraps: false, topic: topic, producer: producer)),
          (topic, "http", HTTPStoryWriter(door, at: 1, topic: topic, name: topic)),
          (topic, "ws", NativeStoryWriter(door, at: 2, wraps: true, topic: topic, producer: producer + 1)),
          (topic, "mqtt", MQTTStoryWriter(door, at: 3, topic: topic, id: "w-\(topic)")),
        ]
        readers += [
          (topic, "native", NativeStoryReader(door, at: 0, wraps: false, topic: topic)),
          (topic, "http", HTTPStoryReader(door, at: 1, topic: topic)),
          (topic, "ws", NativeStoryReader(door, at: 2, wraps: true, topic: topic)),
          (topic, "mqtt", MQTTStoryReader(door, at: 3, topic: topic, id: "r-\(topic)")),
        ]
      }
    }

    private func record(_ name: String, _ number: Int) -> DoorRecord {
      var record = DoorRecord(
        headers: ["number": "\(number)", "by": name], payload: Array("\(name) \(number) ".utf8))
      if Bool.random(using: &random) { record.key = "key-\(Int.random(in: 0..<4, using: &random))" }
      if Bool.random(using: &random) {
        record.contentType = ["text/plain", "application/json"].randomElement(using: &random)
      }
      for _ in 0..<Int.random(in: 0...60, using: &random) {
        record.payload.append(.random(in: 0...255, using: &random))
      }
      return record
    }

    private func look() {
      for (_, _, writer) in writers { writer.look() }
      for (_, _, reader) in readers { reader.look() }
    }

    private func step() {
      let (topic, name, writer) = writers[.random(in: writers.indices, using: &random)]
      let id = "\(name) \(topic)"
      if writer.isIdle, published[id, default: []].count < DoorStoryTests.recordsPerWriter {
        let next = record(id, published[id, default: []].count)
        published[id, default: []].append(next)
        writer.publish(next)
      }
      switch Int.random(in: 0..<20, using: &random) {
      case 0: writers[.random(in: writers.indices, using: &random)].writer.lose()
      case 1: readers[.random(in: readers.indices, using: &random)].reader.lose()
      default: break
      }
      door.settle(.microseconds(Int64.random(in: 1...8000, using: &random)))
      look()
    }

    /// Runs until each writer has published all its records, then until all of them have arrived.
    func run() {
      let all = writers.count * DoorStoryTests.recordsPerWriter
      for _ in 0..<4000 {
        if published.values.reduce(0, { $0 + $1.count }) == all, writers.allSatisfy({ $0.writer.isIdle }) {
          break
        }
        step()
      }
      for _ in 0..<20 {
        door.settle()
        look()
      }
    }
  }

  @Test(arguments: seeds) func eachReaderHasEachRecordOnceInItsOrder(seed: UInt64) throws {
    let story = try Story(seed: seed)
    story.run()
    for (topic, name, writer) in story.writers {
      #expect(writer.isIdle, "SLUICE_SEED=\(seed): \(name)'s last record to \(topic) isn't acknowledged")
    }
    for topic in Self.topics {
      let log = NativeStoryReader(story.door, at: 0, wraps: false, topic: topic)
      for _ in 0..<5 {
        story.door.settle()
        log.look()
      }
      for (name, records) in story.published where name.hasSuffix(topic) {
        #expect(
          log.records.filter { $0.headers["by"] == name } == records,
          "SLUICE_SEED=\(seed): what \(name) has published isn't in the log once and in its order")
      }
      #expect(log.records.count == 4 * Self.recordsPerWriter)
      for (_, name, reader) in story.readers.filter({ $0.topic == topic }) {
        #expect(
          reader.records == log.records, "SLUICE_SEED=\(seed): \(name) hasn't what the log of \(topic) has")
      }
    }
  }
}
