import SluiceIO
import SluiceLog
import SluiceStore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Records of 64 KiB or more, longer than the portion in which each reader works: every reader gets past them.
@Suite(.timeLimit(.minutes(2)))
struct LongRecordTests {
  enum Kind: CaseIterable { case memory, compact, durable }

  private static let sizes = [64 << 10, 5, 300_000, 64 << 10 - 1, 1, 900_000, 70_000, 9]

  /// A topic `t` at the first of two nodes, or at a single broker if it is durable, and a publication to it on stream 1.
  private struct Scene {
    let nodes: Range<Int>
    let connect: (Int) -> ScriptedClient
    let settle: (Duration) -> Void
    let broker: Broker
    let store = MemoryStore()
    let producer: ScriptedClient

    init(_ kind: Kind) throws {
      if kind == .durable {
        let small = try SmallWorld(storage: StoreConfiguration(store))
        nodes = 0..<1
        connect = { _ in small.connect() }
        settle = { small.settle($0) }
        broker = small.broker
      } else {
        let relay = try RelayWorld()
        nodes = 0..<2
        connect = { relay.connect(to: $0) }
        settle = { relay.settle($0) }
        broker = relay.nodes[0].broker
      }
      producer = connect(0)
      var settings = TopicSettings()
      settings.compact = kind == .compact
      settings.storage = kind == .durable ? .durable : .memory
      producer.send(TopicCreate(topic: "t", settings: settings), stream: 3)
      producer.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 1)
      settle(.milliseconds(200))
    }

    /// Publishes a record of each size; every second one matches the filters of ``LongRecordTests/wanted``.
    func publish(from first: Int = 0) throws {
      for (index, size) in LongRecordTests.sizes.enumerated() {
        var batch = BatchBuilder()
        let key = Array("\(index % 2 == 0 ? "other" : "wanted") \(first + index)".utf8)
        let payload = [UInt8](repeating: UInt8(index), count: size)
        try key.withUnsafeBytes { key in
          try payload.withUnsafeBytes { try batch.append(key: key, headers: [], payload: $0) }
        }
        producer.publish(batch, from: UInt64(first + index), stream: 1)
        settle(.milliseconds(20))
      }
      settle(.milliseconds(200))
    }

    /// Removes a durable topic's records from memory, so that late readers read from storage.
    func dropFromMemory() { broker.core.registry.find("t")?.epoch.log.removeAll() }
  }

  private static let wanted = RecordFilter([.init(.key, .hasPrefix(Array("wanted".utf8)))])
  private static let unwanted = RecordFilter([.init(.key, .hasPrefix(Array("other".utf8)))])

  @Test(arguments: Kind.allCases)
  func subscriptionsOfBothNodesGetAllThatTheirFiltersLetThrough(kind: Kind) throws {
    let scene = try Scene(kind)
    try scene.publish()
    if kind == .durable { scene.dropFromMemory() }
    var clients: [(client: ScriptedClient, offsets: [UInt64])] = []
    for node in scene.nodes {
      for (filter, offsets) in [
        (RecordFilter(), Array(0..<16)), (Self.wanted, Array(stride(from: 1, to: 16, by: 2))),
        (Self.unwanted, Array(stride(from: 0, to: 16, by: 2))),
      ] as [(RecordFilter, [UInt64])] {
        // The second of two clients that have reached the head reads from the node's mirror.
        for _ in 0..<2 {
          let client = scene.connect(node)
          client.send(
            Subscribe(topic: "t", start: .earliest, grantedThrough: Credit.unlimited, filter: filter),
            stream: 1)
          clients.append((client, offsets))
        }
      }
    }
    scene.settle(.seconds(1))
    for (client, offsets) in clients {
      #expect(client.records(on: 1).map(\.offset) == offsets.filter { $0 < 8 })
    }
    try scene.publish(from: 8)
    scene.settle(.seconds(1))
    for (client, offsets) in clients { #expect(client.records(on: 1).map(\.offset) == offsets) }
  }

  @Test(arguments: [Kind.memory, .durable])
  func groupsAndTheirDeadLettersGetPastThem(kind: Kind) throws {
    let scene = try Scene(kind)
    try scene.publish()
    if kind == .durable { scene.dropFromMemory() }
    var settings = JoinGroup.Settings(acknowledgement: .explicit, filter: Self.unwanted)
    settings.deadLetters = "letters"
    let member = scene.connect(0)
    member.send(
      JoinGroup(
        topic: "t", group: "g", start: .earliest, settings: settings, grantedThrough: Credit.unlimited),
      stream: 1)
    scene.settle(.seconds(1))
    let offsets = member.records(on: 1).map(\.offset)
    #expect(offsets == [0, 2, 4, 6])
    for offset in offsets {
      member.send(Settle(.reject, delivery: 1, firstOffset: offset, count: 1), stream: 1)
    }
    scene.settle(.seconds(5))
    #expect(scene.broker.core.registry.find("letters")?.summary.nextOffset == 4)
  }

  @Test func anExportHasThemAndAnImportTakesThem() throws {
    let scene = try Scene(.durable)
    try scene.publish()
    var bytes: [UInt8] = []
    let exported = try StoreExport.run(scene.store, report: { _ in }) {
      bytes += $0
      return nil
    }
    let other = MemoryStore()
    var position = 0
    let reader = ExportReader { buffer in
      let count = min(1_000, buffer.count, bytes.count - position)
      buffer.copyBytes(from: bytes[position..<position + count])
      position += count
      return .success(count)
    }
    let imported = try StoreImport.run(into: other, replacing: false, from: reader)
    #expect(exported.records == 8 && imported.records == 8)
    #expect(try other.contents().topics.map(\.extent.head) == [8])
  }
}
