import SluiceClient
import SluiceEngineModel
import SluiceSimulation
import SluiceWire
import Testing

/// The longest record of a cluster: the engine's limit, if that is lower than the operator's.
@Suite("The record limit of a cluster")
struct RecordLimitTests {
  @Test("clients learn what the engine can store, and refuse longer records themselves")
  func engineTakesLess() throws {
    let cluster = WholeCluster(seed: 3)
    // Messages of 1 KiB; an atomic batch has a limited number of them.
    cluster.engine.maximumPayload = 2_048
    for name in ["a", "b"] { try cluster.start(name) }
    #expect(cluster.settle())
    for name in ["a", "b"] {
      let client = try cluster.client(of: name)
      let limit = client.broker.maximumRecord
      #expect((600_000...744 << 10).contains(limit))
      let subject = client.subject("orders", settings: WholeClusterTests.durable, acknowledgement: .durable)
      let refused = #expect(throws: ClientError.self) {
        try cluster.wait { subject.publish(Message([UInt8](repeating: 1, count: limit + 1)), completion: $0) }
      }
      #expect(refused?.code == .recordTooLarge)
      _ = try cluster.wait { subject.publish(Message([UInt8](repeating: 2, count: limit)), completion: $0) }
    }
  }

  @Test("the broker refuses longer records of clients that connected before it knew its engine")
  func clientsThatCameBefore() throws {
    let cluster = WholeCluster(seed: 4)
    cluster.engine.maximumPayload = 2_048
    try cluster.start("a")
    cluster.cutEngine(from: "a")
    let client = try cluster.client(of: "a")
    #expect(client.broker.maximumRecord == 1 << 20)
    cluster.healEngine(for: "a")
    #expect(cluster.settle())
    let subject = client.subject("orders", settings: WholeClusterTests.durable, acknowledgement: .durable)
    let refused = #expect(throws: ClientError.self) {
      try cluster.wait { subject.publish(Message([UInt8](repeating: 1, count: 1 << 20)), completion: $0) }
    }
    #expect(refused?.code == .recordTooLarge)
  }

  @Test("a generous engine leaves the operator's limit")
  func engineTakesMore() throws {
    let cluster = WholeCluster(seed: 5)
    try cluster.start("a")
    #expect(cluster.settle())
    #expect(try cluster.client(of: "a").broker.maximumRecord == 1 << 20)
  }
}
