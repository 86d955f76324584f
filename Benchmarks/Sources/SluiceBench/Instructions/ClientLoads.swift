import ReactiveCore
import SluiceBroker
import SluiceClient
import SluiceIO
import SluiceSimulation
import SluiceWire

/// The client library at both ends of a broker, in a simulated world.
enum ClientLoads {
  private static let records = 20_000

  static var all: [FixedLoad] {
    [
      FixedLoad(name: "client: subject to sink, through a broker", unit: "record", units: records) {
        let scene = try ClientScene()
        let payload = [UInt8](repeating: 0x61, count: 128)
        let cancellable = scene.subscriber.topic("t").sink(
          receiveCompletion: { _ in }, receiveValue: { [scene] record in scene.count(record.count) })
        let subject = scene.publisher.subject("t")
        try scene.publish(payload, records / 4, to: subject)
        return {
          try scene.publish(payload, records, to: subject)
          cancellable.cancel()
        }
      },
      FixedLoad(
        name: "client: publisher to sink, demand 1 each, through a broker", unit: "record", units: records
      ) {
        let scene = try ClientScene()
        let message = Message([UInt8](repeating: 0x61, count: 128))
        let subscriber = OneByOne(scene)
        scene.subscriber.topic("t").subscribe(subscriber)
        try scene.play(message, records / 4)
        return { try scene.play(message, records) }
      },
    ]
  }
}

/// Requests a record after each one that it gets.
private final class OneByOne: Subscriber {
  private let scene: ClientScene

  init(_ scene: ClientScene) {
    self.scene = scene
  }

  func receive(subscription: any Subscription) { subscription.request(.max(1_024)) }

  func receive(_ input: TopicRecord) -> Subscribers.Demand {
    scene.count(input.count)
    return .max(1)
  }

  func receive(completion: Subscribers.Completion<ClientError>) {}
}

// @unchecked: used only by the measuring thread; the simulated world has no other.
private final class ClientScene: @unchecked Sendable {
  private let world = SimulatedWorld.fixed()
  private let broker: Broker
  private var publisherClient: Client?
  private var subscriberClient: Client?
  private var received = 0
  private var expected = 0

  var publisher: Client { publisherClient! }
  var subscriber: Client { subscriberClient! }

  init() throws {
    var settings = TopicSettings(replayRecords: 0)
    settings.flow = .lossless
    settings.withoutSubscribers = .hold
    broker = try Broker.fixed(in: world, rules: settings)
    connect { $0.publisherClient = $1 }
    connect { $0.subscriberClient = $1 }
    try wait { publisherClient != nil && subscriberClient != nil }
  }

  private func connect(_ completion: @escaping @Sendable (ClientScene, Client?) -> Void) {
    let loop = world.makeLoop()
    loop.perform {
      Client.connect(to: Broker.fixedAddress, network: world.network, loop: loop) { [self] result in
        completion(self, try? result.get())
      }
    }
  }

  func count(_ bytes: Int) {
    received += bytes / 128
  }

  func publish(_ payload: [UInt8], _ records: Int, to subject: TopicSubject) throws {
    expected += records
    for _ in 0..<records {
      try payload.withUnsafeBytes { payload in
        while try !subject.enqueue(copying: payload) { world.run(for: .milliseconds(1)) }
      }
    }
    try wait { received == expected }
  }

  private lazy var subject = publisher.subject("t")

  /// Sends the message that many times with a new publisher.
  func play(_ message: Message, _ records: Int) throws {
    expected += records
    // The publisher never completes, so that the topic doesn't end with it.
    let cancellable = repeatElement(message, count: records).publisher.append(
      Empty(completeImmediately: false)
    )
    .publish(to: subject, when: .connected)
    try wait { received == expected }
    cancellable.cancel()
  }

  private func wait(_ condition: () -> Bool) throws {
    var patience = 1_000_000
    while !condition() {
      guard patience > 0 else { throw BenchError("\(received) of \(expected) records came") }
      patience -= 1
      world.run(for: .milliseconds(1))
    }
  }
}
