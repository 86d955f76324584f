import EngineTestSupport
import Glibc
import SluiceIO
import SluiceNATS
import SluiceStore
import SluiceWire
import Synchronization
import TestSupport
import Testing

@testable import SluiceCluster

/// The throughput of a shard's store, compared with a bare client of the engine with messages of the same sizes, alternately on the same servers.
///
/// Built for release: `SLUICE_TESTS=SluiceClusterTests swift build -c release --build-tests -Xswiftc -enable-testing --scratch-path
/// .build/release-cluster`; then `SLUICE_NATS_MEASURE=3 swift test … --filter EngineStoreMeasureTests`, with the seconds for each row.
/// SLUICE_NATS_SHAPE=N starts with shape N, from 0.
@Suite(
  "Figures of a shard's store",
  .enabled(
    if: EngineProcess.program != nil && getenv("SLUICE_NATS_MEASURE") != nil,
    "these take minutes: SLUICE_NATS_MEASURE=SECONDS has them taken"), .serialized)
struct EngineStoreMeasureTests {
  private struct Shape: Sendable {
    var name: String
    var records: Int
    var recordSize: Int
    var states: Int
  }

  private static let shapes = [
    Shape(name: "3 x 128 B + 1 state", records: 3, recordSize: 128, states: 1),
    Shape(name: "3 x 128 B + 5 states", records: 3, recordSize: 128, states: 5),
    Shape(name: "500 x 128 B + 1 state", records: 500, recordSize: 128, states: 1),
    Shape(name: "4,000 x 128 B + 5 states", records: 4_000, recordSize: 128, states: 5),
  ]

  /// Makes one commit after another. Used on the loop.
  // @unchecked: used only on the loop.
  private final class Pump: @unchecked Sendable {
    var begin: (Pump) -> Void = { _ in }
    var underWay = 0
    var done: UInt64 = 0
    var depth = 1
    var isStopped = false
    let counted = Atomic<UInt64>(0)

    func fill() {
      while !isStopped, underWay < depth {
        underWay += 1
        begin(self)
      }
    }

    func settled() {
      underWay -= 1
      counted.add(1, ordering: .relaxed)
      fill()
    }
  }

  @Test func three() throws {
    let seconds = getenv("SLUICE_NATS_MEASURE").flatMap { Double(String(cString: $0)) } ?? 2
    let cluster = try EngineCluster()
    let client = try RealClient(cluster.servers) {
      $0.credentials = .fixed(.password(user: "app", password: "secret"))
    }.open()
    var shard: UInt32 = 100
    let only = getenv("SLUICE_NATS_SHAPE").flatMap { Int(String(cString: $0)) }
    for (number, shape) in Self.shapes.enumerated() where only ?? number <= number {
      for depth in [1, 8, 16] {
        var rates: [String: [Double]] = [:]
        for _ in 0..<3 {
          shard += 1
          rates["store", default: []].append(try store(client, shard, shape, depth, seconds))
          try delete("SLUICE_\(shard)", client)
          rates["bare", default: []].append(try bare(client, shard, shape, depth, seconds))
          try delete("BARE_\(shard)", client)
        }
        let (store, bare) = (rates["store"]!.sorted()[1], rates["bare"]!.sorted()[1])
        print(
          "\(shape.name), \(depth) under way: store \(Int(store))/s, bare client \(Int(bare))/s, "
            + "\(Int(100 * store / bare)) %, \(Int(store * Double(shape.records))) records/s")
      }
    }
  }

  /// The servers may store at most a gigabyte.
  private func delete(_ stream: String, _ client: RealClient) throws {
    _ = try client.retry { (api, done: @escaping (Result<Bool, NATSError>) -> Void) in
      try api.deleteStream(stream) { done($0.map { true }) }
    }
  }

  private func rate(_ pump: Pump, _ client: RealClient, _ seconds: Double) throws -> Double {
    client.loop.execute { pump.fill() }
    pause(0.3)
    let (first, start) = (pump.counted.load(ordering: .relaxed), client.loop.readClock())
    pause(seconds)
    let (last, end) = (pump.counted.load(ordering: .relaxed), client.loop.readClock())
    client.loop.execute { pump.isStopped = true }
    pause(0.2)
    return Double(last - first) / (Double(end.nanoseconds - start.nanoseconds) / 1e9)
  }

  private func store(
    _ client: RealClient, _ number: UInt32, _ shape: Shape, _ depth: Int, _ seconds: Double
  ) throws -> Double {
    var options = JetStreamEngineOptions()
    options.openTimeout = .seconds(60)
    let opened = SharedBox<Result<OpenedShard, StoreError>>()
    JetStreamEngine(client.client, options: options).open(
      ShardLease(shard: ShardID(rawValue: number), term: 1)
    ) { opened.value = $0 }
    try eventually("it is open") { opened.value != nil }
    let store = try opened.value!.get().store
    let pump = Pump()
    pump.depth = depth
    let id = TopicID(rawValue: 1)
    var (offset, bytes, sequence): (UInt64, UInt64, UInt64) = (0, 0, 0)
    let item =
      withUnsafeBytes(of: UInt32(shape.recordSize).littleEndian) { Array($0) }
      + [UInt8](repeating: 7, count: shape.recordSize)
    let items = Array(repeatElement(item, count: shape.records).joined())
    pump.begin = { _ in
      var change = TopicChange(id)
      if sequence == 0 { change.row = StoredTopic(name: "t", settings: TopicSettings(), epoch: 1) }
      sequence += 1
      items.withUnsafeBytes { rest in
        var rest = rest
        var left = shape.records
        while left > 0 {
          let block = BatchBlock(firstOffset: offset, bytesBefore: bytes)
          let taken = block.append(rest, count: left, time: Int64(sequence))
          block.seal(for: id)
          change.batches.append(block)
          (offset, bytes) = (block.endOffset, block.bytesThrough)
          left -= taken.records
          rest = UnsafeRawBufferPointer(rebasing: rest[taken.bytes...])
        }
      }
      for state in 0..<shape.states {
        change.states.append(.init(.cursor, key: [UInt8(state)], value: [UInt8](repeating: 1, count: 17)))
      }
      _ = store.commit([change], as: sequence)
    }
    client.loop.execute {
      store.begin { event in
        switch event {
        case .settled(_, nil): pump.settled()
        case .settled(_, let error?): print("a commit failed: \(error)")
        default: print("\(event)")
        }
      }
    }
    return try rate(pump, client, seconds)
  }

  /// One message per commit, as large as the store's, which expects the sequence of the one before.
  private func bare(
    _ client: RealClient, _ number: UInt32, _ shape: Shape, _ depth: Int, _ seconds: Double
  ) throws -> Double {
    var stream = StreamConfiguration("BARE_\(number)", subjects: ["bare.\(number)"])
    stream.replicas = 3
    stream.allowsDirectReads = true
    let configuration = stream
    _ = try client.retry { try $0.createStream(configuration, $1) }
    let size = shape.records * (4 + shape.recordSize) + shape.states * 24 + 120
    let pump = Pump()
    pump.depth = depth
    var sequence: UInt64 = 0
    let payload = [UInt8](repeating: 7, count: size)
    let nats = client.client
    pump.begin = { pump in
      var message = NATSMessage(subject: "bare.\(number)", payload: payload)
      message.headers.expectLastSequence(sequence)
      sequence += 1
      try! JetStream(nats).publish(message, to: "BARE_\(number)") { result in
        if case .failure(let error) = result { return print("a message failed: \(error)") }
        pump.settled()
      }
    }
    return try rate(pump, client, seconds)
  }
}
