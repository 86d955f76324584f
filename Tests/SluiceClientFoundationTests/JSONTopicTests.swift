import Foundation
import ReactiveCore
import SluiceBroker
import SluiceClientFoundation
import SluiceIO
import SluiceSimulation
import Testing

private struct Order: Codable, Equatable, Sendable {
  struct Line: Codable, Equatable, Sendable {
    var article: String
    var count: Int
  }

  var id: Int
  var lines: [Line] = []
}

/// Sends values through a broker, with the default encoding.
@Suite struct JSONTopicTests {
  private let world: SimulatedWorld
  private let broker: Broker
  private let client: Client

  init() throws {
    world = SimulatedWorld(seed: 1, loops: 0, conditions: .calm)
    let address = SocketAddress.host("broker", port: 7420)
    var configuration = BrokerConfiguration()
    configuration.listen = [address]
    broker = try Broker(
      configuration, network: world.network, group: LoopGroup([world.makeLoop(name: "broker")]))
    try broker.start()
    let box = Box<Result<Client, ClientError>>()
    Client.connect(to: address, network: world.network, loop: world.makeLoop(name: "client")) {
      box.value = $0
    }
    _ = world.run { box.value != nil }
    client = try #require(box.value).get()
  }

  /// All values of a finished topic.
  private func collect<P: Publisher>(_ topic: P) throws -> ([P.Output], Subscribers.Completion<P.Failure>) {
    var values: [P.Output] = []
    var completion: Subscribers.Completion<P.Failure>?
    let cancellable = topic.sink {
      completion = $0
    } receiveValue: {
      values.append($0)
    }
    _ = world.run { completion != nil }
    _ = cancellable
    return (values, try #require(completion))
  }

  private let orders = [
    Order(id: 1), Order(id: 2, lines: [.init(article: "tea", count: 3), .init(article: "milk", count: 1)]),
  ]

  @Test func valuesComeOutAsTheyWentIn() throws {
    let subject = client.subject("orders")
    for order in orders { try subject.send(encoding: order, key: "\(order.id)") }
    subject.send(completion: .finished)
    let (values, completion) = try collect(client.topic("orders", as: Order.self))
    #expect(values == orders)
    #expect(completion == .finished)
    let (records, _) = try collect(client.topic("orders"))
    #expect(records.map(\.keyString) == ["1", "2"])
    // In no particular order.
    #expect([#"{"id":1,"lines":[]}"#, #"{"lines":[],"id":1}"#].contains(records.first?.string))
  }

  @Test func otherCodersAreUsedWhenGiven() throws {
    let subject = client.subject("orders")
    let encoder = PropertyListEncoder()
    encoder.outputFormat = .binary
    for order in orders { subject.send(try Message(encoding: order, encoder: encoder)) }
    subject.send(completion: .finished)
    let topic = client.topic("orders").decoded(as: Order.self, decoder: PropertyListDecoder())
    #expect(try collect(topic).0 == orders)
  }

  @Test func aRecordThatDoesNotFitSaysWhereAndWhy() throws {
    let subject = client.subject("orders")
    subject.send("{\"id\": 1, \"lines\": [{\"article\": \"tea\", \"count\": \"three\"}]}")
    subject.send("{\"lines\": []}")
    subject.send("no JSON at all")
    subject.send(completion: .finished)
    var messages: [String] = []
    for offset in 0..<3 as Range<UInt64> {
      let (_, completion) = try collect(client.topic("orders", as: Order.self, from: .offset(offset)))
      guard case .failure(let error) = completion else { throw ClientError.topicFailure("it didn't fail") }
      #expect(error.code == .decodeFailed)
      #expect(error.offset == offset)
      messages.append(error.message)
    }
    #expect(messages[0].hasPrefix("record 0 of topic orders can't be decoded as Order: "))
    #expect(messages[0].contains(" in lines[0].count; skip such records"))
    #expect(messages[1].contains(": there is no 'id'; skip such records"))
    #expect(messages[2].hasPrefix("record 2 of topic orders can't be decoded as Order: "))
    #expect(messages.allSatisfy { !$0.contains("\n") })
    #expect(try collect(client.topic("orders", as: Order.self, decodeFailure: .skip)).0 == [])
  }

  @Test func whatCannotBeEncodedIsNotSent() throws {
    let subject = client.subject("numbers")
    do {
      try subject.send(encoding: Double.nan)
      Issue.record("JSON has no NaN")
    } catch {
      #expect(error.code == .encodeFailed)
    }
    #expect(subject.acceptedCount == 0)
  }

  // MARK: Failures

  /// The message with which the topic of a failed publisher ends for subscribers.
  private func crossing(
    _ error: any Error, failure: ((any Error) -> TopicFailure)? = nil
  ) throws -> (message: String, code: UInt32?) {
    let publication = Fail<Order, any Error>(error: error)
      .publish(to: client.subject("failing"), when: .always, failure: failure)
    let (_, completion) = try collect(client.topic("failing"))
    _ = publication
    guard case .failure(let error) = completion else { throw ClientError.topicFailure("it didn't fail") }
    return (error.message, error.brokerCode)
  }

  private struct Leak: Error, CustomStringConvertible {
    var description: String { "Set-Cookie: session=secret\nand more" }
  }

  private struct Closed: LocalizedError {
    var errorDescription: String? { "the warehouse\nis closed" + String(repeating: "!", count: 1_000) }
    var cookie = "secret"
  }

  @Test func ofAnErrorOnlyItsTypeCrosses() throws {
    let (message, code) = try crossing(Leak())
    #expect(message == "Leak" && code == TopicFailure.standardCode)
  }

  @Test func aLocalizedErrorCrossesInOneBoundedLine() throws {
    let message = try crossing(Closed()).message
    #expect(message.hasPrefix("Closed: the warehouse\\nis closed!!!") && message.hasSuffix("…"))
    #expect(message.count < 350 && !message.contains("secret"))
  }

  @Test func aProgramChoosesWhatCrosses() throws {
    let chosen = TopicFailure(code: 4711, message: "out of tea")
    var (message, code) = try crossing(chosen)
    #expect(message == "out of tea" && code == 4711)
    try deleteTopic()
    (message, code) = try crossing(Leak()) { error in
      TopicFailure(code: 300, message: error is Leak ? "a leak" : "another")
    }
    #expect(message == "a leak" && code == 300)
  }

  private func deleteTopic() throws {
    let box = Box<Result<Void, ClientError>>()
    client.deleteTopic("failing") { box.value = $0 }
    _ = world.run { box.value != nil }
    try #require(box.value).get()
  }

  @Test func whatACoderSaysStaysHere() throws {
    struct Unencodable: Encodable {
      func encode(to encoder: any Encoder) throws { throw Leak() }
    }
    let publication = Just(Unencodable()).publish(to: client.subject("failing"), when: .always)
    let (_, completion) = try collect(client.topic("failing"))
    _ = publication
    guard case .failure(let error) = completion else { throw ClientError.topicFailure("it didn't fail") }
    #expect(error.message == "a value can't be encoded to be published")
  }
}

/// A variable that one thread uses.
private final class Box<Value>: @unchecked Sendable {
  var value: Value?
}
