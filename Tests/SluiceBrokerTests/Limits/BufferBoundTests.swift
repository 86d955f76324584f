import SluiceIO
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// If all connections together buffer too much, the one with the most is closed, on whichever loop it is.
@Suite struct BufferBoundTests {
  /// The start of a frame: `bytes` bytes, which wait for the rest.
  private func beginning(_ bytes: Int) -> [UInt8] {
    var frame = SessionProbe.publishFrame(SessionProbe.batch([bytes + 1_000]), from: 0, stream: 1)
    frame.removeLast(frame.count - bytes)
    return frame
  }

  @Test func theLargestOfAllLoopsIsClosed() throws {
    let setting = try SnapshotSetting(loops: 2) { $0.limits.buffered = 1 << 20 }
    let peers = try (0..<8).map { try setting.peer("peer \($0)") }
    let contexts = setting.broker.contexts
    #expect(contexts.allSatisfy { !$0.connections.isEmpty })
    // Connection numbers follow the order of connecting.
    func peer(of connection: Connection) -> ScenePeer { peers[Int(connection.id) - 1] }
    let hog = try #require(contexts[0].connections.first)
    let innocents = contexts[1].connections
    let innocent = try #require(innocents.first)
    peer(of: hog).send(beginning(900_000))
    setting.run(for: .milliseconds(10))
    #expect(hog.buffered >= 900_000)
    // The loop that exceeds the limit has only small connections.
    peer(of: innocent).send(beginning(200_000))
    setting.run(for: .milliseconds(100))
    let left = contexts.flatMap(\.connections).map(\.id)
    #expect(!left.contains(hog.id))
    #expect(left.count == 7)
    #expect(setting.broker.metrics[.closedForBuffering] == 1)
    #expect(setting.broker.metrics[.bufferedBytes] <= 1 << 20)
  }

  @Test func noMoreAreClosedThanMustBe() throws {
    let setting = try SnapshotSetting(loops: 2) { $0.limits.buffered = 1 << 20 }
    let peers = try (0..<6).map { try setting.peer("peer \($0)") }
    for (index, peer) in peers.enumerated() { peer.send(beginning(300_000 + index * 1_000)) }
    setting.run(for: .milliseconds(100))
    // A connection that closes while its frame still arrives frees less memory.
    let left = setting.broker.contexts.flatMap(\.connections)
    #expect((2...3).contains(left.count))
    #expect(setting.broker.metrics[.closedForBuffering] == 6 - left.count)
    #expect(setting.broker.metrics[.bufferedBytes] == left.reduce(0) { $0 + $1.buffered })
  }
}
