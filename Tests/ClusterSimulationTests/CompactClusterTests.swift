import ReactiveCore
import SluiceClient
import SluiceIO
import SluiceSimulation
import SluiceTopics
import Testing

@testable import SluiceCluster

/// Durable topics that keep the newest record of each key, while their owners stop and crash.
@Suite("Compact topics of a cluster")
struct CompactClusterTests {
  private static let settings: TopicSettings = {
    var settings = TopicSettings()
    settings.storage = .durable
    settings.compact = true
    return settings
  }()

  /// Publishes consecutive records with keys, and tracks the newest of each key. Unchecked: a world is used by one thread.
  private final class Producer: @unchecked Sendable {
    private(set) var newest: [String: String] = [:]
    private(set) var problems: [String] = []
    private var open = 0
    private let subject: TopicSubject

    init(_ topic: String, _ client: Client) {
      subject = client.subject(topic, settings: CompactClusterTests.settings, producer: .init(id: 7))
    }

    /// - Parameter text: empty to delete the key.
    func publish(_ text: String, key: String) {
      newest[key] = text.isEmpty ? nil : text
      open += 1
      subject.publish(Message(text, key: key)) { [self] result in
        open -= 1
        if case .failure(let error) = result { problems.append("\(error)") }
      }
    }

    var isDone: Bool { open == 0 }
  }

  /// Keeps the newest record of each key. Unchecked: a world is used by one thread.
  private final class Reader: @unchecked Sendable {
    private(set) var newest: [String: String] = [:]
    private(set) var isLive = false
    private var subscription: AnyCancellable?

    init(_ topic: String, _ client: Client) {
      subscription = client.topic(topic, from: .earliest).events.sink { _ in
      } receiveValue: { [unowned self] event in
        switch event {
        case .record(let record):
          let key = String(decoding: record.key ?? [], as: UTF8.self)
          newest[key] = record.payload.isEmpty ? nil : record.string
        case .live: isLive = true
        case .restarted: newest = [:]
        default: break
        }
      }
    }
  }

  @Test(
    "late subscribers and those that stay have the newest of each key, whichever node owns the topic",
    arguments: 1...6 as ClosedRange<UInt64>)
  func owners(seed: UInt64) throws {
    let cluster = WholeCluster(seed: seed)
    // Small, so that checkpoints are written.
    cluster.engineOptions.checkpointBytes = 1 << 20
    for name in ["a", "b", "c"] { try cluster.start(name) }
    #expect(cluster.settle())
    let producer = Producer("devices", try cluster.client(of: "a"))
    let staying = Reader("devices", try cluster.client(of: "b"))
    var number = 0
    for round in 0..<6 {
      for _ in 0..<60 {
        number += 1
        let key = "\(cluster.world.random.next(in: 0...19))"
        let length = cluster.world.random.next(in: 1...40_000)
        producer.publish(
          cluster.world.random.oneIn(8) ? "" : "\(number) \(String(repeating: "x", count: length))", key: key)
        if number % 10 == 0 { cluster.world.run(for: .milliseconds(20)) }
      }
      if let owner = cluster.owner(of: "devices"), round < 5 {
        if cluster.world.random.oneIn(2) { owner.kill() } else { owner.stop() }
        cluster.world.run(for: .seconds(1))
        if !owner.isRunning { try cluster.start(owner.name) }
      }
      #expect(cluster.run(limit: .seconds(120)) { producer.isDone })
      #expect(producer.problems == [])
      #expect(cluster.settle())
      let late = Reader("devices", try cluster.client(of: cluster.running[0].name))
      #expect(cluster.run(limit: .seconds(20)) { late.isLive && late.newest == producer.newest })
      #expect(cluster.run(limit: .seconds(20)) { staying.newest == producer.newest })
    }
  }
}
