import SluiceAccess
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Nodes that send requests on behalf of their clients, and clients that claim to be nodes.
@Suite struct RelayAccessTests {
  private let rules = [
    "ada": "all t.> all _inbox.>", "bob": "subscribe t.public", "eve": "subscribe t.public",
  ]

  private func connect(_ relay: RelayWorld, as name: String, to node: Int = 1) -> ScriptedClient {
    relay.connect(to: node, credentials: PlainAccess.password(of: name))
  }

  @Test func permissionsHoldAtWhateverNode() throws {
    let relay = try RelayWorld(access: .init(rules: [rules, rules]))
    let (ada, bob) = (connect(relay, as: "ada"), connect(relay, as: "bob"))
    for (stream, topic) in ["t.public", "t.secret"].enumerated() {
      ada.send(PublishOpen(topic: topic, acknowledgement: .received), stream: UInt32(stream + 1))
    }
    relay.settle()
    for (stream, topic) in ["t.public", "t.secret"].enumerated() {
      bob.send(Subscribe(topic: topic, grantedThrough: 9), stream: UInt32(stream + 1))
    }
    bob.send(PublishOpen(topic: "t.public", acknowledgement: .none), stream: 3)
    bob.send(TopicDelete(topic: "t.public"), stream: 4)
    relay.settle()
    ada.publish(2, from: 0, stream: 1)
    relay.settle()
    #expect(bob.records(on: 1).count == 2)
    #expect((2...4).map { bob.refusal(on: $0) } == [.permissionDenied, .permissionDenied, .permissionDenied])
    // The owner knows the identity of each client.
    let identities = relay.nodes[0].broker.contexts.flatMap(\.connections).map(\.client.identity.name)
    #expect(Set(identities) == ["ada", "bob"])
  }

  @Test func theOwnerChecksAgain() throws {
    var narrow = rules
    narrow["bob"] = "subscribe other"
    let relay = try RelayWorld(access: .init(rules: [narrow, rules]))
    let (ada, bob) = (connect(relay, as: "ada"), connect(relay, as: "bob"))
    ada.send(TopicCreate(topic: "t.public", settings: TopicSettings()), stream: 1)
    relay.settle()
    bob.send(Subscribe(topic: "t.public", grantedThrough: 9), stream: 1)
    relay.settle()
    #expect(bob.refusal(on: 1) == .permissionDenied)
  }

  @Test func anInboxIsItsOwners() throws {
    let relay = try RelayWorld(access: .init(rules: [rules, rules]))
    let (ada, bob) = (connect(relay, as: "ada"), connect(relay, as: "bob", to: 0))
    let inbox = "\(TopicName.inboxPrefix)abc"
    relay.move(inbox, to: 0)
    ada.send(Subscribe(topic: inbox, grantedThrough: 9), stream: 1)
    relay.settle()
    #expect(ada.types(on: 1).first == .subscribed)
    bob.send(Subscribe(topic: inbox, grantedThrough: 9), stream: 1)
    relay.settle()
    #expect(bob.refusal(on: 1) == .permissionDenied)
  }

  @Test func permissionsThatATokenCarriesReachTheOwner() throws {
    let carried = try PlainAccess.permissions("subscribe t.mine create t.mine")
    let relay = try RelayWorld(
      access: .init(rules: [rules, rules]) { policy, credentials, clientID, security, now in
        guard credentials.method == .token else {
          return PlainAccess.verify(policy, credentials, clientID, security, now)
        }
        return .success(
          Identity(name: "ada", proof: .token(key: "k"), permissions: carried, carriesPermissions: true))
      })
    let client = relay.connect(to: 1, credentials: .token("x"))
    client.send(Subscribe(topic: "t.mine", grantedThrough: 1), stream: 1)
    client.send(Subscribe(topic: "t.other", grantedThrough: 1), stream: 2)
    relay.settle()
    #expect(client.types(on: 1).first == .subscribed && client.refusal(on: 2) == .permissionDenied)
    let there = relay.nodes[0].broker.contexts.flatMap(\.connections).map(\.client.identity)
    #expect(there.map(\.permissions) == [carried] && there.map(\.carriesPermissions) == [true])
  }

  @Test func permissionsThatDependOnTheClientReachTheOwner() throws {
    let own = ["mallory": "subscribe t.%c create t.%c"]
    let relay = try RelayWorld(access: .init(rules: [own, own], verify: Authenticator.verify))
    let client = relay.connect(to: 1, certificate: "mallory")
    for (stream, topic) in ["t.test", "t.other", "t.%c"].enumerated() {
      client.send(Subscribe(topic: topic, grantedThrough: 1), stream: UInt32(stream + 1))
    }
    relay.settle()
    #expect(client.types(on: 1).first == .subscribed)
    #expect(client.refusal(on: 2) == .permissionDenied && client.refusal(on: 3) == .permissionDenied)
    let there = relay.nodes[0].broker.contexts.flatMap(\.connections).map(\.client.identity)
    #expect(there.map(\.clientID) == ["test"])
  }

  // MARK: Clients that claim to be nodes

  @Test(arguments: [nil, "mallory", "n0 as a client"])
  func onlyANodeMayAskOnBehalfOfAnother(certificate: String?) throws {
    let relay = try RelayWorld(access: .init(rules: [rules, rules]))
    for permissions in ["", "=\n15 >"] {
      let client = relay.connect(
        to: 0, certificate: certificate, credentials: .node(onBehalfOf: "ada", carrying: permissions),
        forgets: false)
      #expect(client.types == [.error] && client.hasEnded)
      #expect(client.refusal(on: 0) == .authenticationFailed)
    }
  }

  @Test func credentialsThatAreRenewedDoNotMakeANode() throws {
    let relay = try RelayWorld(access: .init(rules: [rules, rules]))
    for certificate in [nil, "mallory", "n0 as a client"] {
      let client = relay.connect(
        to: 0, certificate: certificate, credentials: PlainAccess.password(of: "eve"))
      for (stream, name) in ["ada", "eve"].enumerated() {
        client.send(Authenticate(.node(onBehalfOf: name, carrying: "=\n15 >")), stream: UInt32(stream + 1))
        relay.settle()
        #expect(client.refusal(on: UInt32(stream + 1)) == .authenticationFailed)
      }
      client.send(TopicCreate(topic: "t.public", settings: TopicSettings()), stream: 3)
      relay.settle()
      #expect(client.refusal(on: 3) == .permissionDenied)
    }
  }

  @Test(arguments: ["=\n16 >", "=\n-1 >", "=\n15", "=\n15 a..b", "15 >", "=\n\n", "= 15 >", "=\n15 > "])
  func aNodeThatTellsNonsenseIsRefused(permissions: String) throws {
    let relay = try RelayWorld(access: .init(rules: [rules, rules]))
    let client = relay.connect(
      to: 0, certificate: "n1", credentials: .node(onBehalfOf: "ada", carrying: permissions), forgets: false)
    #expect(client.refusal(on: 0) == .authenticationFailed)
  }

  @Test func nodesWithoutCertificatesCannotHaveAPolicy() throws {
    let relay = try RelayWorld(nodes: 1)
    #expect(throws: ConfigurationError.self) {
      try Broker(
        BrokerConfiguration(), network: relay.world.network,
        loops: BrokerLoops(serving: LoopGroup([relay.world.makeLoop()])), routes: ShardRoutes(),
        access: try PlainAccess.policy(rules))
    }
  }
}
