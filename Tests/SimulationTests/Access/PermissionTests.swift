import SluiceAccess
import SluiceIO
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Permissions of clients, and what other clients can learn about topics.
@Suite struct PermissionTests {
  /// A frame that opens a stream or makes a request, and what it needs.
  private struct Wish {
    var needs: Rights
    /// Whether the frame creates a missing topic.
    var makes = false
    var encode: @Sendable (_ topic: String, _ stream: UInt32) -> [UInt8]

    init(_ needs: Rights, makes: Bool = false, _ frame: @escaping @Sendable (String) -> some Frame) {
      self.needs = needs
      self.makes = makes
      encode = { frame($0).encoded(stream: $1) }
    }
  }

  private static let wishes: [Wish] = [
    Wish(.subscribe, makes: true) { Subscribe(topic: $0, grantedThrough: 1) },
    Wish(.subscribe, makes: true) {
      Subscribe(topic: $0, start: .time(0), grantedThrough: 1, cursor: "c")
    },
    Wish(.publish, makes: true) { PublishOpen(topic: $0, acknowledgement: .received) },
    Wish(.publish, makes: true) { PublishOpen(topic: $0, acknowledgement: .received, role: .source) },
    Wish(.subscribe, makes: true) { JoinGroup(topic: $0, group: "g", grantedThrough: 1) },
    Wish(.create) { TopicCreate(topic: $0, settings: TopicSettings()) },
    Wish(.admin) { TopicDelete(topic: $0) },
    Wish(.admin, makes: true) { TopicConnect(topic: $0) },
    Wish(.admin, makes: true) { TopicDisconnect(topic: $0) },
    Wish(.subscribe) { CursorList(topic: $0, limit: 9) },
    Wish(.admin) { CursorMove(topic: $0, name: "c", to: .replay) },
    Wish(.admin) { CursorDelete(topic: $0, name: "c") },
    Wish(.admin) { TopicSet(topic: $0, settings: TopicSettings(replayRecords: 5)) },
    Wish(.admin) { TopicTrim(topic: $0, .newest(1)) },
    Wish(.admin) { StateList(topic: $0, kind: .producer) },
    Wish(.admin) { StateRestore(topic: $0, kind: .producer, origin: 0, states: []) },
  ]

  private func outcome(_ wish: Wish, _ topic: String, _ client: ScriptedClient, _ small: SmallWorld) throws
    -> Fault?
  {
    client.forget()
    client.send(wish.encode(topic, 1))
    small.settle()
    let fault = try client.fault(on: 1)
    client.send(Cancel(), stream: 1)
    small.settle()
    return fault
  }

  // MARK: What is needed

  @Test(arguments: [Rights.publish, .subscribe, .create, .admin, []])
  func whatIsntAllowedIsTheSameWhetherThereIsATopicOrNot(right: Rights) throws {
    let names: [Rights: String] = [
      .publish: "publish", .subscribe: "subscribe", .create: "create", .admin: "admin",
    ]
    let small = try SmallWorld(rules: ["root": "all >", "some": names[right].map { "\($0) t.*" } ?? ""])
    let (root, some) = (small.connect(as: "root"), small.connect(as: "some"))
    _ = root.ask(TopicCreate(topic: "t.1", settings: TopicSettings()), stream: 1, in: small)
    for (index, wish) in Self.wishes.enumerated() {
      let (there, missing) = try (outcome(wish, "t.1", some, small), outcome(wish, "t.2", some, small))
      let isAllowed = right.isSuperset(of: wish.needs)
      #expect((there?.code == .permissionDenied) == !isAllowed, "wish \(index) for a topic that is there")
      #expect((missing?.code == .permissionDenied) == !isAllowed, "wish \(index) for one that isn't")
      if !isAllowed {
        #expect(there?.message.replacing("t.1", with: "t.2") == missing?.message)
      } else if wish.makes {
        // The client may use existing topics but not create missing ones.
        #expect(missing?.code == .unknownTopic, "wish \(index)")
      }
      // An invalid name is reported as such.
      #expect(try outcome(wish, "t..1", some, small)?.code == .invalidTopic, "wish \(index)")
      if small.broker.core.registry.find("t.1") == nil {
        _ = root.ask(TopicCreate(topic: "t.1", settings: TopicSettings()), stream: 1, in: small)
      }
      if small.broker.core.registry.find("t.2") != nil {
        _ = root.ask(TopicDelete(topic: "t.2"), stream: 1, in: small)
      }
    }
  }

  @Test func whoMayCreateMakesTopicsByUsingThem() throws {
    let small = try SmallWorld(rules: ["some": "publish p.> subscribe s.> create >"])
    let some = small.connect(as: "some")
    let opened = some.ask(PublishOpen(topic: "p.1", acknowledgement: .received), stream: 1, in: small)
    #expect(opened.map(\.header.type) == [.publishOpened])
    let subscribed = some.ask(Subscribe(topic: "s.1", grantedThrough: 1), stream: 2, in: small)
    #expect(subscribed.map(\.header.type) == [.subscribed, .live])
    #expect(some.ask(Subscribe(topic: "p.1", grantedThrough: 1), stream: 3, in: small).count == 1)
    #expect(try some.fault(on: 3)?.code == .permissionDenied)
  }

  @Test func theMemberOfAGroupMayPublishItsDeadLetters() throws {
    let small = try SmallWorld(rules: [
      "root": "all >", "none": "subscribe t create >", "some": "subscribe t publish morgue",
      "other": "subscribe t",
    ])
    let (root, none, some) = (small.connect(as: "root"), small.connect(as: "none"), small.connect(as: "some"))
    let other = small.connect(as: "other")
    _ = root.ask(TopicCreate(topic: "t", settings: TopicSettings()), stream: 1, in: small)
    func join(_ client: ScriptedClient, _ letters: String) throws -> ErrorCode? {
      var settings = JoinGroup.Settings(acknowledgement: .explicit)
      settings.deliveries = 2
      settings.deadLetters = letters
      client.forget()
      _ = client.ask(
        JoinGroup(topic: "t", group: "g", settings: settings, grantedThrough: 1), stream: 1, in: small)
      return try client.fault(on: 1)?.code
    }
    #expect(try join(none, "morgue") == .permissionDenied)
    #expect(try join(some, "morgue") == .unknownTopic)
    // A client without permission gets the same error whichever of the two topics exists.
    _ = root.ask(TopicDelete(topic: "t"), stream: 1, in: small)
    #expect(try join(other, "morgue") == .permissionDenied)
    _ = root.ask(TopicCreate(topic: "t", settings: TopicSettings()), stream: 1, in: small)
    #expect(try join(other, "morgue") == .permissionDenied)
    _ = root.ask(TopicCreate(topic: "morgue", settings: TopicSettings()), stream: 1, in: small)
    #expect(try join(none, "morgue") == .permissionDenied)
    #expect(try join(some, "morgue") == nil)
    // Other clients don't learn the group's dead-letter topic.
    #expect(try join(none, "") == .groupMismatch)
    #expect(try none.fault(on: 1)?.message.contains("morgue") == false)
  }

  // MARK: What is shown

  @Test func listsNameWhatMayBeKnown() throws {
    let small = try SmallWorld(rules: ["root": "all >", "some": "publish a.* admin c.1", "none": ""])
    let root = small.connect(as: "root")
    for name in ["a.1", "a.2", "a.3", "b.1", "c.1", "c.2", "_inbox.x"] {
      _ = root.ask(TopicCreate(topic: name, settings: TopicSettings()), stream: 1, in: small)
    }
    func list(_ client: ScriptedClient, limit: UInt32) throws -> [String] {
      var names: [String] = []
      while true {
        let answer = client.ask(TopicList(after: names.last ?? "", limit: limit), stream: 1, in: small)
        let page = try #require(answer.first).decoded(Topics.self)
        names += page.topics.map(\.topic)
        #expect(page.topics.count == Int(limit) || !page.more)
        if !page.more { return names }
      }
    }
    let (some, none) = (small.connect(as: "some"), small.connect(as: "none"))
    for limit in [UInt32(1), 2, 3, 100] {
      #expect(try list(some, limit: limit) == ["a.1", "a.2", "a.3", "c.1"])
      #expect(try list(none, limit: limit) == [])
      #expect(try list(root, limit: limit) == ["a.1", "a.2", "a.3", "b.1", "c.1", "c.2"])
    }
  }

  @Test func aTopicsDescriptionNamesOthersToWhoLooksAfterIt() throws {
    let small = try SmallWorld(
      brokerLoops: 2, rules: ["root": "all >", "ada": "subscribe t", "bob": "publish t", "none": "all u"])
    let root = small.connect(as: "root")
    _ = root.ask(TopicCreate(topic: "t", settings: TopicSettings()), stream: 1, in: small)
    let (ada, bob) = (small.connect(as: "ada"), small.connect(as: "bob"))
    let other = small.connect(as: "ada")
    for client in [ada, other] {
      _ = client.ask(Subscribe(topic: "t", grantedThrough: 1), stream: 1, in: small)
    }
    _ = bob.ask(PublishOpen(topic: "t", acknowledgement: .received), stream: 1, in: small)
    func show(_ client: ScriptedClient) throws -> TopicInfo {
      try #require(client.ask(TopicShow(topic: "t"), stream: 9, in: small).first).decoded(TopicInfo.self)
    }
    for (client, subscriptions, publications) in [(root, 2, 1), (ada, 2, 0), (bob, 0, 1)] {
      let info = try show(client)
      #expect(info.summary.subscriptions == 2 && info.summary.publications == 1)
      #expect(info.subscriptions.count == subscriptions && info.publications.count == publications)
    }
    let none = small.connect(as: "none")
    for topic in ["t", "missing"] {
      _ = none.ask(TopicShow(topic: topic), stream: 9, in: small)
      #expect(try none.fault(on: 9)?.code == .permissionDenied)
    }
  }

  @Test func anInboxIsItsOwners() throws {
    let small = try SmallWorld(rules: [
      "ada": "publish t", "bob": "subscribe t", "eve": "publish u subscribe u",
    ])
    let (ada, bob, eve) = (small.connect(as: "ada"), small.connect(as: "bob"), small.connect(as: "eve"))
    let inbox = Subscribe(topic: "_inbox.1", start: .new, grantedThrough: 9)
    #expect(ada.ask(inbox, stream: 1, in: small).first?.header.type == .subscribed)
    // Repliers may publish there; only the owner may subscribe.
    let opened = bob.ask(PublishOpen(topic: "_inbox.1", acknowledgement: .none), stream: 1, in: small)
    #expect(opened.map(\.header.type) == [.publishOpened])
    bob.publish([[1]], from: 0, stream: 1)
    small.settle()
    #expect(ada.frames(on: 1).last?.header.type == .deliver)
    for client in [bob, eve] {
      _ = client.ask(inbox, stream: 5, in: small)
      #expect(try client.fault(on: 5)?.code == .permissionDenied)
      // Other clients can't see it either.
      _ = client.ask(TopicShow(topic: "_inbox.1"), stream: 6, in: small)
      #expect(try client.fault(on: 6)?.code == .permissionDenied)
      _ = client.ask(SubscribePattern(pattern: "_inbox.>", grantedThrough: 9), stream: 7, in: small)
      #expect(!client.frames(on: 7).map(\.header.type).contains(.matched))
    }
    // The owner keeps its inbox on another connection.
    let again = small.connect(as: "ada")
    #expect(again.ask(inbox, stream: 1, in: small).first?.header.type == .subscribed)
    // A reply to a client that has left creates no topic.
    _ = bob.ask(PublishOpen(topic: "_inbox.2", acknowledgement: .none), stream: 2, in: small)
    #expect(try bob.fault(on: 2)?.code == .unknownTopic)
  }

  /// A statement needs the permissions of TOPIC_CREATE.
  @Test func settingsAreStatedByClientsThatMayCreateTheTopic() throws {
    let small = try SmallWorld(rules: [
      "root": "all >", "ada": "publish t", "bob": "subscribe t publish t", "eve": "subscribe t create t",
    ])
    let (root, ada) = (small.connect(as: "root"), small.connect(as: "ada"))
    let (bob, eve) = (small.connect(as: "bob"), small.connect(as: "eve"))
    let stated = TopicSettings(replayRecords: 7)
    func settings(_ topic: String) throws -> TopicSettings {
      try #require(small.broker.core.registry.find(topic)).settings
    }
    _ = root.ask(Subscribe(topic: "t", grantedThrough: 1), stream: 1, in: small)
    let before = try settings("t")
    _ = bob.ask(Subscribe(topic: "t", grantedThrough: 1, settings: stated), stream: 1, in: small)
    #expect(try bob.fault(on: 1)?.code == .permissionDenied)
    _ = bob.ask(PublishOpen(topic: "t", acknowledgement: .none, settings: stated), stream: 2, in: small)
    #expect(try bob.fault(on: 2)?.code == .permissionDenied)
    #expect(try settings("t") == before)
    _ = eve.ask(Subscribe(topic: "t", grantedThrough: 1, settings: stated), stream: 1, in: small)
    #expect(eve.frames(on: 1).first?.header.type == .subscribed)
    #expect(try settings("t").replayRecords == 7)

    // Clients that may publish to an inbox may not state its settings.
    _ = ada.ask(Subscribe(topic: "_inbox.1", start: .new, grantedThrough: 9), stream: 1, in: small)
    let inbox = try settings("_inbox.1")
    for (number, client) in [bob, eve].enumerated() {
      let stream = UInt32(10 + 2 * number)
      _ = client.ask(
        PublishOpen(topic: "_inbox.1", acknowledgement: .none, settings: stated), stream: stream, in: small)
      #expect(try client.fault(on: stream)?.code == .permissionDenied)
      _ = client.ask(
        Subscribe(topic: "_inbox.1", grantedThrough: 1, settings: stated), stream: stream + 1, in: small)
      #expect(try client.fault(on: stream + 1)?.code == .permissionDenied)
    }
    #expect(try settings("_inbox.1") == inbox)
  }

  // MARK: Changes

  @Test func streamsThatWouldntBeOpenedAnyMoreEnd() throws {
    let before = "all a.> all b.> all d"
    let small = try SmallWorld(brokerLoops: 2, rules: ["root": "all >", "some": before])
    let some = small.connect(as: "some")
    var settings = JoinGroup.Settings(acknowledgement: .explicit)
    settings.deadLetters = "d"
    settings.deliveries = 3
    for (offset, letter) in ["a", "b"].enumerated() {
      let stream = UInt32(offset * 10)
      _ = some.ask(Subscribe(topic: "\(letter).1", grantedThrough: 9), stream: stream + 1, in: small)
      _ = some.ask(
        PublishOpen(topic: "\(letter).1", acknowledgement: .received), stream: stream + 2, in: small)
      _ = some.ask(
        JoinGroup(topic: "\(letter).1", group: "g", grantedThrough: 9), stream: stream + 3, in: small)
      _ = some.ask(
        JoinGroup(topic: "\(letter).1", group: "d", settings: settings, grantedThrough: 9),
        stream: stream + 4,
        in: small)
      some.publish([[1]], from: 0, stream: stream + 2)
    }
    small.settle()
    #expect(!some.types.contains(.error))
    some.forget()
    try small.change(["root": "all >", "some": "all a.> subscribe b.> subscribe d"])
    // Publishing to b, and to the dead letters of both.
    #expect(some.frames.filter { $0.header.type == .error }.map(\.header.stream) == [4, 12, 14])
    for stream in [UInt32(4), 12, 14] { #expect(try some.fault(on: stream)?.code == .permissionDenied) }
    some.forget()
    try small.change(["root": "all >", "some": "all a.>"])
    #expect(some.frames.filter { $0.header.type == .error }.map(\.header.stream) == [11, 13])
    // The remaining streams continue.
    some.forget()
    some.publish([[2]], from: 1, stream: 2)
    small.settle()
    #expect(Set(some.frames.map(\.header.stream)).isSuperset(of: [1, 2]))
    let (a, b) = (small.broker.core.registry.find("a.1"), small.broker.core.registry.find("b.1"))
    #expect(a?.attached.subscriptions == 2 && a?.attached.publications == 1)
    #expect(b?.attached.subscriptions == 0 && b?.attached.publications == 0)
  }

  @Test func newCredentialsWithOtherPermissionsCountToo() throws {
    let small = try SmallWorld(rules: ["some": "all t"])
    let some = small.connect(as: "some")
    _ = some.ask(Subscribe(topic: "t", grantedThrough: 1), stream: 1, in: small)
    small.broker.core.authenticator?.update(try PlainAccess.policy(["some": "all u"]))
    let answer = some.ask(Authenticate(PlainAccess.password(of: "some")), stream: 2, in: small)
    #expect(answer.map(\.header.type) == [.authenticated])
    #expect(try some.fault(on: 1)?.code == .permissionDenied)
  }
}
