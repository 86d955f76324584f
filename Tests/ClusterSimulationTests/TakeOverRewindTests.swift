import ReactiveCore
import SluiceClient
import SluiceIO
import SluiceSimulation
import Testing

@testable import SluiceCluster

/// A topic without immediate sync whose owner has delivered records before storing them: the next owner doesn't have them.
@Suite("Records that are lost with their owner")
struct TakeOverRewindTests {
  /// Receives the events of a topic, and its records' texts with offsets. Unchecked: a world is used by one thread.
  private final class Reader: @unchecked Sendable {
    private(set) var events: [String] = []
    private var subscription: AnyCancellable?

    init(topic: RemoteTopic<TopicRecord>) {
      subscription = topic.events.sink { [unowned self] completion in
        events.append("\(completion)")
      } receiveValue: { [unowned self] event in
        switch event {
        case .record(let record): events.append("\(record.string)@\(record.offset)")
        case .rewound(let next), .topic(_, .rewound(let next)): events.append("rewound to \(next)")
        case .lagged, .restarted, .topic(_, .lagged), .topic(_, .restarted): events.append("\(event)")
        default: break
        }
      }
    }
  }

  /// Stored a second later.
  private static let late: TopicSettings = {
    var settings = TopicSettings()
    settings.storage = .durable
    settings.sync = .interval(1_000)
    return settings
  }()

  enum Kind: CaseIterable {
    case topic, cursor, pattern
  }

  private func topic(_ kind: Kind, _ client: Client, number: Int) -> RemoteTopic<TopicRecord> {
    switch kind {
    case .topic: client.topic("orders.new", from: .earliest)
    case .cursor: client.topic("orders.new", from: .earliest, cursor: .init("place\(number)"))
    case .pattern: client.topics(matching: "orders.*", from: .earliest)
    }
  }

  @Test(
    "subscribers at other nodes are told, and go on with what the next owner has", arguments: Kind.allCases,
    [ClientRouting.direct, .relay])
  func rewound(kind: Kind, routing: ClientRouting) throws {
    let cluster = WholeCluster(seed: 11)
    for name in ["a", "b", "c"] { try cluster.start(name) }
    #expect(cluster.settle())
    let owner = try #require(cluster.owner(of: "orders.new"))
    let others = cluster.running.filter { $0 !== owner }.map(\.name)
    let producer = NumberedProducer(
      "orders.new", try cluster.client(of: others[0]) { $0.routing = routing }, Self.late)
    producer.publish(10)
    #expect(cluster.run(limit: .seconds(10)) { producer.isDone })
    // Two subscribers of a node share a subscription at the owner; one node will be the next owner.
    let readers = try [others[0], others[0], others[1], others[1]].enumerated().map { number, name in
      Reader(
        topic: topic(kind, try cluster.client(of: name) { $0.routing = routing }, number: number))
    }
    #expect(cluster.run(limit: .seconds(10)) { readers.allSatisfy { $0.events.count == 10 } })
    cluster.world.run(for: .seconds(3))

    // Ten records are stored. The owner delivers ten more, which no node and no server of the engine has when it dies.
    cluster.cutEngine(from: owner.name)
    producer.publish(10)
    #expect(
      cluster.run(limit: .seconds(1)) { producer.isDone && readers.allSatisfy { $0.events.count == 20 } })
    owner.kill()
    producer.publish(5)
    let expected =
      (0..<20).map { "\($0)@\($0)" } + ["rewound to 10"] + (20..<25).map { "\($0)@\($0 - 10)" }
    _ = cluster.run(limit: .seconds(30)) { producer.isDone && readers.allSatisfy { $0.events == expected } }
    for reader in readers { #expect(reader.events == expected) }
    #expect(producer.isDone && producer.problems == [])
  }
}
