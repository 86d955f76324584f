import SluiceIO
import SluiceSimulation
import SluiceStore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceDoors

/// Clients of one topic within the broker's program.
@Suite struct TopicPortTests {
  @Test func recordsThatAreNotAcknowledgedAreSentAgain() {
    var outbox = TopicPortOutbox()
    for number in 0..<5 as Range<UInt8> { outbox.append([number]) }
    #expect(outbox.next(atMost: 2, bytes: 100)?.batch == [0, 1])
    outbox.sent(2, from: 7)
    #expect(outbox.next(atMost: 9, bytes: 100)?.batch == [2, 3, 4])
    outbox.sent(3, from: 9)
    #expect(outbox.next(atMost: 9, bytes: 100) == nil)
    #expect(outbox.acknowledged(through: 7) == 0)
    #expect(outbox.acknowledged(through: 10) == 3)
    #expect(outbox.count == 2)
    outbox.lost()
    // Another connection has other sequences.
    #expect(outbox.next(atMost: 1, bytes: 0)?.batch == [3])
    outbox.sent(1, from: 0)
    #expect(outbox.acknowledged(through: 1) == 1)
    // A topic that knows the producer has four records already.
    outbox.lost()
    outbox.append([5])
    #expect(outbox.known(before: 4) == 0)
    #expect(outbox.known(before: 5) == 1)
    #expect(outbox.next(atMost: 9, bytes: 100)?.batch == [5])
  }

  @Test func batchesAreAsLongAsTheyMayBe() {
    var outbox = TopicPortOutbox()
    for _ in 0..<3 { outbox.append([UInt8](repeating: 1, count: 100_000)) }
    #expect(outbox.next(atMost: 9, bytes: .max)?.count == 2)
    #expect(outbox.next(atMost: 9, bytes: 150_000)?.count == 1)
    #expect(outbox.next(atMost: 9, bytes: 1)?.count == 1)
    #expect(outbox.next(atMost: 0, bytes: .max) == nil)
  }

  /// Records the calls of a port.
  private final class User: TopicPortUser {
    var texts: [String] = []
    var stored = 0
    var began: [UInt64] = []
    var currentCount = 0
    var ended: ErrorCode?

    func portBegan(first: UInt64) { began.append(first) }
    func portHas(_ record: BatchIterator.Record, at offset: UInt64) {
      texts.append("\(offset) \(String(decoding: record.body, as: UTF8.self))")
    }
    func portIsCurrent() { currentCount += 1 }
    func portStored(_ count: Int) { stored += count }
    func portEnded(_ error: ErrorCode) { ended = error }
  }

  private static func item(_ text: String) -> [UInt8] {
    var batch = BatchBuilder()
    Array(text.utf8).withUnsafeBytes { batch.append($0) }
    return batch.bytes
  }

  /// The operator closes the port's connections while it publishes: every record gets into the topic, and the port reads each offset once.
  @Test(arguments: 1...6 as ClosedRange<UInt64>) func aPortGoesOnAfterItsConnection(seed: UInt64) throws {
    var random = TestSupport.SeededRandom(seed: seed)
    let hasProducer = seed % 2 == 0
    let door = try DoorWorld(seed: seed, [.mqtt], store: MemoryStore())
    let user = User()
    var terms = TopicPort.Terms(
      topic: "log", identity: "port", name: "port", settings: .untilTrimmed)
    if hasProducer { terms.producer = 7 }
    let port = try #require(door.port(terms, user: user))
    for number in 0..<200 {
      door.onBroker { port.append(Self.item("r\(number)")) }
      if random.next() % 4 == 0 { door.settle(.microseconds(.random(in: 0..<2000, using: &random))) }
      guard random.next() % 16 == 0 else { continue }
      let operations = try NativeClient(door)
      for connection in 1...60 as ClosedRange<UInt64> {
        operations.send(ConnectionClose(connection: connection), stream: UInt32(connection))
      }
      operations.settle(.milliseconds(1))
    }
    door.settle(.seconds(10))
    #expect(user.stored == 200)
    #expect(user.began == [0])
    let read = user.texts.map { String($0.split(separator: " ")[1]) }
    #expect(Set(read) == Set((0..<200).map { "r\($0)" }))
    #expect(user.texts.count == Set(user.texts).count)
    if hasProducer { #expect(read == (0..<200).map { "r\($0)" }) }
    door.onBroker { port.close() }
    #expect(user.ended == nil)
  }

  @Test func aPortThatOnlyReadsEndsWithoutATopic() throws {
    let door = try DoorWorld([.mqtt], store: MemoryStore())
    let user = User()
    var terms = TopicPort.Terms(topic: "none", identity: "port", name: "port")
    terms.isFinal = { $0 == .unknownTopic }
    _ = try #require(door.port(terms, user: user))
    door.settle(.seconds(1))
    #expect(user.ended == .unknownTopic)
    #expect(user.began.isEmpty && user.currentCount == 0)
  }
}
