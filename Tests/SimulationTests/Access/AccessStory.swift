import SluiceAccess
import SluiceIO
import SluiceSimulation
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// A broker with authentication; an administrator that creates topics, publishes and changes permissions; and peers that try every operation.
final class AccessStory {
  enum Event: CaseIterable {
    case denied, ended, matched, unmatched, delivered, listed, revoked, expired, renewed
  }

  static let topicNames = topics
  private static let topics = ["a.1", "a.2", "b.1", "b.2", "c.1"]
  private static let names = ["ada", "bob", "eve"]
  private static let rules = [
    "subscribe a.*", "publish a.>", "all b.1", "subscribe >", "create a.>", "admin c.*", "create >",
    "publish b.2",
    "subscribe c.1", "admin b.>",
  ]
  /// How long after a change frames may still arrive that the former permissions allowed.
  private static let afterglow = Duration.milliseconds(300)

  private var random: SeededRandom
  private let small: SmallWorld
  private let root: ScriptedClient
  private var rootStreams: UInt32 = 0
  private var publications: [String: (stream: UInt32, published: UInt64)] = [:]
  /// The present policy, and those before it.
  private var policies: [(since: MonotonicTime, rules: [String: Permissions])] = []
  private var text: [String: String] = [:]
  private(set) var peers: [AccessPeer] = []
  private(set) var failures: [String] = []
  private(set) var told: [Event: Int] = [:]

  init(seed: UInt64) throws {
    random = SeededRandom(seed: seed &* 0x9E37_79B9_7F4A_7C15 &+ 11)
    var conditions = SimulatedConditions.calm
    conditions.latency = .microseconds(10) ... .milliseconds(random.next(in: 1...4))
    small = try SmallWorld(
      seed: seed, brokerLoops: random.next(in: 1...3), conditions: conditions, rules: ["root": "all >"])
    root = small.connect(as: "root")
    try change()
    for _ in 0..<random.next(in: 2...4) { join() }
    for credentials in [Credentials.none, .password("wrong", user: "ada")] {
      let stranger = small.connect(credentials: credentials)
      check(stranger.types == [.error] && stranger.hasEnded, "a stranger gets \(stranger.frames)")
    }
  }

  var now: MonotonicTime { small.world.now }
  var wallClock: Int64 { small.world.wallClock }

  func play() throws {
    for _ in 0..<random.next(in: 60...140) {
      switch random.next(below: 16) {
      case 0: try change()
      case 1, 2, 3: publish(to: Self.topics[random.next(in: 0...Self.topics.count - 1)])
      case 4: delete()
      case 5: comeBack()
      default: act()
      }
      small.settle(.milliseconds(random.next(in: 0...8)))
      for peer in peers { peer.inspect() }
      if !failures.isEmpty { return }
    }
    try end()
  }

  // MARK: What happens

  private func join() {
    let name = Self.names[random.next(in: 0...Self.names.count - 1)]
    guard text[name] != nil else { return }
    let lifetime: Int64? = random.oneIn(3) ? Int64(random.next(in: 500...4_000)) : nil
    let credentials = credentials(of: name, for: lifetime)
    let expires = lifetime.map { wallClock + $0 }
    peers.append(AccessPeer(name, small.connect(credentials: credentials), expires: expires, in: self))
  }

  private func credentials(of name: String, for lifetime: Int64?) -> Credentials {
    lifetime.map { PlainAccess.token(of: name, until: wallClock + $0) } ?? PlainAccess.password(of: name)
  }

  private func comeBack() {
    if peers.count(where: { !$0.isOver }) < 5 { join() }
  }

  private func act() {
    let living = peers.filter { $0.isWelcome && !$0.isOver }
    guard !living.isEmpty else { return }
    let peer = living[random.next(in: 0...living.count - 1)]
    let topic = Self.topics[random.next(in: 0...Self.topics.count - 1)]
    let other = Self.topics[random.next(in: 0...Self.topics.count - 1)]
    switch random.next(below: 14) {
    case 0, 1: peer.open(.reading(topic), .subscribe, Subscribe(topic: topic, grantedThrough: .max))
    case 2: peer.open(.writing(topic), .publish, PublishOpen(topic: topic, acknowledgement: .received))
    case 3, 4:
      let pattern = [">", "a.*", "*.1", "b.>", "c.1"][random.next(in: 0...4)]
      peer.open(.pattern(pattern), [], SubscribePattern(pattern: pattern, grantedThrough: .max))
    case 5 where topic != other:
      var settings = JoinGroup.Settings(acknowledgement: .explicit)
      settings.deliveries = 2
      settings.deadLetters = other
      let group = "\(topic)-\(other)"
      peer.open(
        .group(topic, deadLetters: other), .subscribe,
        JoinGroup(topic: topic, group: group, settings: settings, grantedThrough: .max))
    case 6: peer.open(.asking(topic), .create, TopicCreate(topic: topic, settings: TopicSettings()))
    case 7: peer.open(.asking(topic), .admin, TopicDelete(topic: topic))
    case 8: peer.open(.asking(topic), nil, TopicShow(topic: topic))
    case 9: peer.open(.listing, [], TopicList(after: "", limit: UInt32(random.next(in: 1...10))))
    case 10: peer.open(.asking(topic), .subscribe, CursorList(topic: topic, limit: 10))
    case 11: peer.open(.asking(topic), .admin, TopicConnect(topic: topic))
    case 12: peer.cancelOne(&random)
    default:
      let lifetime: Int64? = random.oneIn(2) ? 3_000 : nil
      guard text[peer.name] != nil else { return }
      peer.renew(credentials(of: peer.name, for: lifetime), expires: lifetime.map { wallClock + $0 })
    }
  }

  /// Replaces the policy.
  private func change() throws {
    // Wait, so that at most two policies are valid at a time.
    if !policies.isEmpty { small.settle(Self.afterglow + .milliseconds(50)) }
    for peer in peers { peer.inspect() }
    text = ["root": "all >"]
    for name in Self.names where !random.oneIn(6) {
      let count = random.next(in: 0...4)
      text[name] = (0..<count).map { _ in Self.rules[random.next(in: 0...Self.rules.count - 1)] }
        .joined(separator: " ")
    }
    policies.append((now, try text.mapValues { try PlainAccess.permissions($0) }))
    small.broker.updateAccess(try PlainAccess.policy(text))
  }

  private func publish(to topic: String) {
    if publications[topic] == nil {
      rootStreams += 1
      publications[topic] = (rootStreams, 0)
      _ = root.ask(PublishOpen(topic: topic, acknowledgement: .none), stream: rootStreams, in: small)
    }
    guard let (stream, published) = publications[topic] else { return }
    // A client has deleted it.
    if root.frames(on: stream).contains(where: { $0.header.type == .error }) {
      publications[topic] = nil
      return publish(to: topic)
    }
    publications[topic]?.published += 1
    root.publish([Array(topic.utf8)], from: published, stream: stream)
  }

  private func delete() {
    rootStreams += 1
    let topic = Self.topics[random.next(in: 0...Self.topics.count - 1)]
    root.send(TopicDelete(topic: topic), stream: rootStreams)
  }

  // MARK: The end

  /// Stops changing permissions and checks that every peer received the records it may read.
  private func end() throws {
    small.settle(.seconds(1))
    for topic in Self.topics { publish(to: topic) }
    small.settle(.seconds(1))
    for peer in peers { peer.inspect() }
    for peer in peers { peer.forgetRecords() }
    for topic in Self.topics { publish(to: topic) }
    small.settle(.seconds(1))
    for peer in peers {
      peer.inspect()
      if peer.isWelcome, !peer.isOver { peer.checkEnd(Self.topics) }
    }
    // The remaining peers are disconnected when their credentials expire, and not before.
    small.settle(.seconds(5))
    for peer in peers {
      peer.inspect()
      check(
        peer.isOver == (peer.expires != nil || peer.wasRevoked),
        "\(peer.name) is \(peer.isOver ? "gone" : "there")")
    }
  }

  // MARK: The truth

  /// Whether the broker's connection of that number, if it is still there, is one of that identity.
  func isConnection(_ number: UInt64, of name: String) -> Bool {
    for context in small.broker.contexts {
      if let connection = context.connections.first(where: { $0.id == number }) {
        return connection.client.identity.name == name
      }
    }
    return true
  }

  func tell(_ event: Event) { told[event, default: 0] += 1 }

  func check(_ holds: Bool, _ message: @autoclosure () -> String) {
    if !holds { failures.append(message()) }
  }

  /// The present permissions of `name`; nil for an identity that isn't listed.
  func permissions(of name: String) -> Permissions? { policies.last?.rules[name] }

  /// The present permissions of `name`, and those valid within the last 300 ms (``afterglow``).
  func recentPermissions(of name: String) -> [Permissions?] {
    let recent = policies.indices.filter { index in
      let end = index + 1 < policies.count ? policies[index + 1].since : now
      return end + Self.afterglow >= now
    }
    return recent.map { policies[$0].rules[name] }
  }
}
