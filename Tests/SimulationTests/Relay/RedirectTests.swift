import ReactiveCore
import SluiceClient
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker

/// Which clients are redirected to the node that serves a topic, and how the client library connects there and returns.
struct RedirectTests {
  private let shared: RelayWorld
  private let received = Shared<[String]>([])

  init() throws {
    shared = try RelayWorld(nodes: 3)
  }

  private func client(of node: Int, _ routing: ClientRouting = .direct) throws -> Client {
    var options = ClientOptions()
    options.seed = 1
    options.routing = routing
    let made = Shared<Client?>(nil)
    Client.connect(
      to: shared.nodes[node].address, options: options, network: shared.world.network, loop: shared.loop
    ) { made.set(try? $0.get()) }
    _ = shared.world.run { made.value != nil }
    return try #require(made.value)
  }

  /// The number of open connections, of clients and between nodes.
  private var connections: Int { shared.world.network.connections.count { !$0.isOver } }

  private func watch(_ topic: String, _ client: Client) -> AnyCancellable {
    client.topic(topic, lag: .skip).sink { _ in
    } receiveValue: { [received] record in
      received.set(received.value + [record.string])
    }
  }

  private func publish(_ text: String, to subject: TopicSubject) {
    _ = shared.loop.perform { subject.send(Message(text)) }
    shared.settle(.seconds(1))
  }

  @Test func theLibraryGoesToTheNodeAndFollowsTheTopic() throws {
    let client = try client(of: 1)
    let subscription = watch("t", client)
    let subject = client.subject("t")
    publish("a", to: subject)
    #expect(received.value == ["a"])
    // To node 1 and to node 0, for both streams; there is none between the nodes.
    #expect(connections == 2)
    #expect(shared.nodes[0].broker.core.registry.all.map(\.name) == ["t"])

    shared.move("t", to: 2)
    for connection in shared.world.network.connections where connection.number == 2 { connection.reset() }
    shared.settle(.seconds(2))
    publish("b", to: subject)
    #expect(received.value == ["a", "b"])
    #expect(shared.nodes[2].broker.core.registry.all.map(\.name) == ["t"])
    #expect(client.failure == nil)
    withExtendedLifetime(subscription) {}
  }

  @Test func aClientThatIsToBeRelayedIs() throws {
    let client = try client(of: 1, .relay)
    let subscription = watch("t", client)
    let subject = client.subject("t")
    publish("a", to: subject)
    #expect(received.value == ["a"])
    // To node 1, and from there to node 0.
    #expect(connections >= 2)
    let peers = shared.nodes[0].broker.contexts.flatMap { $0.connections.map(\.client.isNode) }
    #expect(!peers.isEmpty && peers.allSatisfy { $0 })
    withExtendedLifetime(subscription) {}
  }

  /// A client that doesn't support redirects, and a stream that requests to be relayed.
  @Test func onlyStreamsThatMayBeAreRedirected() {
    let plain = shared.connect(to: 1)
    plain.send(Subscribe(topic: "t", grantedThrough: 1), stream: 1)
    shared.settle()
    #expect(plain.types(on: 1).first == .subscribed, "\(plain.frames)")

    let able = shared.connect(to: 1, features: Feature.redirects)
    able.send(Subscribe(topic: "t", grantedThrough: 1), stream: 1)
    able.send(Subscribe(topic: "t", grantedThrough: 1).encoded(flags: StreamFlag.relay, stream: 2))
    able.send(TopicShow(topic: "t"), stream: 3)
    shared.settle()
    #expect(able.types(on: 1) == [.redirect])
    #expect(able.types(on: 2).first == .subscribed)
    #expect(able.types(on: 3) == [.topicInfo])
  }

  /// A stream that had to wait for its topic's node is redirected, too.
  @Test func aStreamThatWaitedIsRedirected() throws {
    shared.move("t", to: nil)
    let able = shared.connect(to: 1, features: Feature.redirects)
    able.send(Subscribe(topic: "t", grantedThrough: 1), stream: 1)
    able.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 2)
    shared.settle()
    #expect(able.types(on: 1) == [] && able.types(on: 2) == [])
    shared.move("t", to: 2)
    shared.settle()
    for stream: UInt32 in [1, 2] {
      #expect(able.types(on: stream) == [.redirect])
      let frame = try #require(able.frames(on: stream).last).decoded(Redirect.self)
      #expect(frame == Redirect(node: "n2", address: "node2:7420"))
    }
  }
}
