import Glibc
import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport

@testable import SluiceClient

/// A client in a simulated world that subscribes, publishes and sends requests, and a broker that replies with arbitrary frames.
///
/// Subscribers must get records in order and no more than their demand. Once the client is closed, everything must have completed.
final class ClientScene {
  private let world = SimulatedWorld(seed: 1, loops: 0, conditions: .calm)
  private let broker: HostileBroker
  private let client: Client
  private var subscribers: [CountingSubscriber] = []
  private var subjects: [TopicSubject] = []
  private let answers = Answers()

  static func play(_ input: ProbeInput) throws {
    var frames = ProbeFrames(input)
    let scene = try ClientScene(&frames)
    while !frames.input.isEmpty { try scene.step(&frames) }
    try scene.end()
  }

  private init(_ frames: inout ProbeFrames) throws {
    let welcome = Welcome(
      maximumFrame: 1 << 20, maximumRecord: max(1, frames.input.shortNumber()),
      maximumStreams: max(1, frames.input.shortNumber()), keepalive: frames.input.shortNumber(), broker: 1,
      software: "")
    broker = try HostileBroker(world, welcome)
    var options = ClientOptions()
    options.seed = 1
    options.keepalive = .seconds(1)
    if frames.input.bool() { options.reconnect = nil }
    let box = Box<Result<Client, ClientError>?>(nil)
    Client.connect(
      to: broker.address, options: options, network: world.network, loop: world.makeLoop(name: "client")
    ) { box.value = $0 }
    guard world.run(limit: .seconds(60), until: { box.value != nil }), let result = box.value else {
      throw ProbeViolation("a client doesn't come to be")
    }
    client = try result.get()
  }

  private func step(_ frames: inout ProbeFrames) throws {
    switch frames.input.byte() {
    case 0xF0...0xFF: subscribe(frames.input.byte())
    case 0xE8...0xEF: publish(frames.input.byte())
    case 0xE4...0xE7: ask(frames.input.byte(), &frames)
    case 0xE0...0xE3: world.run(for: .milliseconds(Int64(frames.input.byte()) * 20))
    case 0xDC...0xDF: subscribers.last?.act(frames.input.byte())
    case 0xDB: broker.hangUp(abruptly: frames.input.bool())
    case 0xDA: broker.send(frames.input.bytes(Int(frames.input.byte())))
    default:
      broker.send(frames.fromBroker())
      world.run(for: .milliseconds(1))
    }
    if let violation = subscribers.lazy.compactMap(\.violation).first { throw violation }
  }

  // MARK: What the client's users do

  private func subscribe(_ kind: UInt8) {
    let subscriber = CountingSubscriber(kind >> 3)
    subscribers.append(subscriber)
    let prefetch: SubscriptionPlan.Prefetch = kind & 0x40 == 0 ? .byRequest : .keepFull(5)
    switch kind % 6 {
    case 0: client.topic("t", prefetch: prefetch).feed(subscriber)
    case 1: client.topic("t.a", from: .offset(.max), cursor: .init("c"), prefetch: prefetch).feed(subscriber)
    case 2: client.topics(matching: "*", from: .earliest, prefetch: prefetch).feed(subscriber)
    case 3:
      client.topic("g", from: .last(.max), prefetch: prefetch).events.map { _ in () }.subscribe(subscriber)
    case 4:
      client.group("g", of: "t", options: .init(acknowledgement: .explicit), prefetch: prefetch)
        .map { $0.acknowledge() }.subscribe(subscriber)
    default: client.group("g", of: "t", prefetch: prefetch).map { _ in () }.subscribe(subscriber)
    }
  }

  private func publish(_ kind: UInt8) {
    let isNew = subjects.isEmpty || kind & 0x80 != 0
    if isNew, subjects.count < 4 {
      subjects.append(
        client.subject(
          "t", acknowledgement: kind & 1 == 0 ? .received : .none, buffer: .init(records: 10, bytes: 500),
          whenFull: [.fail, .dropOldest, .fail][Int(kind % 3)],
          producer: kind & 2 == 0 ? nil : .init(id: 1, firstSequence: kind & 4 == 0 ? 0 : 1 << 62)))
    }
    guard let subject = subjects.last else { return }
    switch kind % 8 {
    case 0: subject.send(completion: .finished)
    case 1: subject.flush { [answers] _ in answers.came += 1 }
    case 2:
      answers.expected += 1
      subject.publish(Message("payload", key: "k")) { [answers] _ in answers.came += 1 }
      return
    default: subject.send(Message(String(repeating: "x", count: Int(kind >> 2))))
    }
    if kind % 8 == 1 { answers.expected += 1 }
  }

  private func ask(_ kind: UInt8, _ frames: inout ProbeFrames) {
    answers.expected += 1
    let came: @Sendable () -> Void = { [answers] in answers.came += 1 }
    switch kind % 6 {
    case 0: client.topics { _ in came() }
    case 1: client.topicInfo("t") { _ in came() }
    case 2: client.cursors(of: "t") { _ in came() }
    case 3: client.deleteTopic("t") { _ in came() }
    case 4: client.request("t", Message("?"), timeout: .seconds(1)) { _ in came() }
    default: client.ping { _ in came() }
    }
  }

  private func end() throws {
    world.run(for: .seconds(3))
    client.close()
    world.run(for: .seconds(60))
    for subscriber in subscribers {
      if let violation = subscriber.violation { throw violation }
      guard subscriber.isOver else { throw ProbeViolation("a subscriber has heard of no end") }
    }
    guard answers.came == answers.expected else {
      throw ProbeViolation("\(answers.came) of \(answers.expected) questions were answered")
    }
  }

  // @unchecked: used only on the world's single thread.
  private final class Answers: @unchecked Sendable {
    var expected = 0
    var came = 0
  }
}
