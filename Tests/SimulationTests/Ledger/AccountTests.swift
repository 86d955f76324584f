import SluiceIO
import SluiceSession
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Broker state created by an identity or address is limited to its share. It stays charged after its connections have closed, and leaves the reserve to
/// others.
@Suite struct AccountTests {
  private static let memory = 8 << 20

  private func world(_ configure: @escaping (inout BrokerConfiguration) -> Void = { _ in }) throws
    -> SmallWorld
  {
    try SmallWorld(rules: ["ada": "all >", "bob": "all >", "eve": "all >"]) {
      $0.limits.memory = Self.memory
      configure(&$0)
    }
  }

  private func account(_ name: String, _ small: SmallWorld) -> KeptAccount {
    small.broker.core.memory.accounts.account(of: .identity(name))
  }

  /// Creates durable cursors until one is denied.
  private func makeCursors(_ client: ScriptedClient, _ small: SmallWorld) throws -> (
    count: Int, refusal: Fault
  ) {
    for number in 0..<100_000 {
      client.send(
        Subscribe(topic: "t", grantedThrough: 0, cursor: "c\(number)" + String(repeating: "x", count: 200)),
        stream: 1)
      client.send(Cancel(), stream: 1)
      guard number % 200 == 199 else { continue }
      small.settle(.milliseconds(500))
      let refusal = try client.frames.first { $0.header.type == .error }?.decoded(Fault.self)
      if let refusal { return (small.broker.core.registry.find("t")?.cursorCount ?? 0, refusal) }
      client.forget()
    }
    throw WireError(.limitReached, "nothing was refused")
  }

  @Test func whatAnIdentityLeavesBehindStopsNoOtherIdentity() throws {
    let small = try world()
    let ada = small.connect(as: "ada")
    let (count, refusal) = try makeCursors(ada, small)
    #expect(refusal.code == .limitReached)
    #expect(refusal.message.contains("identity ada") && refusal.message.contains("--max-memory-per-identity"))
    ada.close()
    small.settle()
    // They stay charged to the identity.
    let share = Self.memory / 8
    #expect(account("ada", small).used > share * 9 / 10 && account("ada", small).used <= share)

    let bob = small.connect(as: "bob")
    let publication = bob.ask(
      PublishOpen(topic: "u", acknowledgement: .received, producer: 7), stream: 1, in: small)
    #expect(publication.first?.header.type == .publishOpened)
    let subscription = bob.ask(Subscribe(topic: "t", grantedThrough: 1, cursor: "bob"), stream: 2, in: small)
    #expect(subscription.first?.header.type == .subscribed)
    #expect(
      bob.ask(JoinGroup(topic: "t", group: "g", grantedThrough: 1), stream: 3, in: small).first?.header.type
        == .subscribed)

    // The identity may still subscribe without a cursor, and delete what it created.
    let again = small.connect(as: "ada")
    #expect(
      again.ask(Subscribe(topic: "t", grantedThrough: 1), stream: 1, in: small).first?.header.type
        == .subscribed)
    #expect(
      again.ask(Subscribe(topic: "t", grantedThrough: 1, cursor: "new"), stream: 2, in: small).first?.header
        .type == .error)
    for number in 0..<count {
      again.send(CursorDelete(topic: "t", name: "c\(number)" + String(repeating: "x", count: 200)), stream: 3)
    }
    small.settle(.seconds(5))
    #expect(account("ada", small).used < share / 10)
    #expect(
      again.ask(Subscribe(topic: "t", grantedThrough: 1, cursor: "new"), stream: 4, in: small).first?.header
        .type == .subscribed)
  }

  @Test func aFullShareIsAProblemThatNamesItsOwnerAndWhatToDelete() throws {
    let small = try world()
    _ = try makeCursors(small.connect(as: "ada"), small)
    let found = Shared<BrokerSnapshot?>(nil)
    small.broker.snapshot(SnapshotRequest(consumersPerTopic: 2)) { gathered in found.set(gathered.assembled())
    }
    small.settle()
    var finder = ProblemFinder()
    let problems = finder.problems(in: try #require(found.value))
    let problem = try #require(problems.first { $0.kind == .keptMemoryShareNearlyFull })
    #expect(problem.sentence.hasPrefix("Identity ada has used"))
    #expect(problem.sentence.contains("sluice cursor delete t NAME"))
    #expect(problem.sentence.contains("--max-memory-per-identity"))
  }

  @Test func theReserveIsForPlainStreamsAndNoAccountUsesItUp() throws {
    let small = try world()
    let kept = small.broker.core.memory.kept
    let (bob, eve) = (small.connect(as: "bob"), small.connect(as: "eve"))
    _ = bob.ask(TopicCreate(topic: "t", settings: TopicSettings()), stream: 1, in: small)
    // Others have used all memory except the reserve.
    let others = kept.limit - kept.reserve - kept.used
    kept.add(others)
    #expect(
      bob.ask(JoinGroup(topic: "t", group: "g", grantedThrough: 1), stream: 1, in: small).first?.header.type
        == .error)
    #expect(
      bob.ask(SubscribePattern(pattern: ">", grantedThrough: 1), stream: 2, in: small).first?.header.type
        == .error)
    let filter = RecordFilter([.init(.key, .exists)])
    #expect(
      bob.ask(Subscribe(topic: "t", grantedThrough: 1, filter: filter), stream: 3, in: small).first?.header
        .type == .error)
    #expect(bob.ask(TopicShow(topic: "t"), stream: 4, in: small).first?.header.type == .topicInfo)

    var plain = 0
    for number in 0..<200 as Range<UInt32> {
      let answer = bob.ask(Subscribe(topic: "t", grantedThrough: 0), stream: 10 + number, in: small)
      if answer.first?.header.type == .subscribed { plain += 1 }
    }
    #expect(plain > 5 && plain * KeptCost.stream <= kept.plainAllowance)
    #expect(
      eve.ask(Subscribe(topic: "t", grantedThrough: 0), stream: 1, in: small).first?.header.type
        == .subscribed)
    #expect(
      eve.ask(PublishOpen(topic: "t", acknowledgement: .none), stream: 2, in: small).first?.header.type
        == .publishOpened)
    kept.add(-others)
    #expect(
      bob.ask(JoinGroup(topic: "t", group: "g", grantedThrough: 1), stream: 1, in: small).first?.header.type
        == .subscribed)
  }

  @Test func filtersAndPositionsAreRefusedBeyondTheShare() throws {
    let small = try world()
    let client = small.connect(as: "ada")
    let filter = LedgerStory.filter(1)
    for number in 0..<200 as Range<UInt32> {
      client.send(Subscribe(topic: "t", grantedThrough: 0, filter: filter), stream: 2 * number + 1)
      client.send(
        SubscribePattern(pattern: "t.*", grantedThrough: 0, filter: filter, more: true),
        stream: 2 * number + 2)
    }
    small.settle(.seconds(5))
    #expect(client.types.contains(.error))
    #expect(account("ada", small).used <= Self.memory / 8)
    client.close()
    small.settle()
    #expect(small.broker.core.registry.find("t").map { _ in account("ada", small).used } ?? 0 < 8_192)
  }

  @Test func aShareCanBeSet() throws {
    let small = try world { $0.limits.memoryPerIdentity = 100_000 }
    let ada = small.connect(as: "ada")
    _ = try makeCursors(ada, small)
    #expect(account("ada", small).used <= 100_000 + small.broker.core.memory.kept.plainAllowance)
  }
}
