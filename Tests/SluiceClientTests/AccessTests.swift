import ReactiveCore
import SluiceAccess
import SluiceBroker
import SluiceTLS
import SluiceWire
import Synchronization
import Testing

@testable import SluiceClient

/// Clients of a broker with access control, on real loops.
@Suite struct AccessTests {
  private final class Setting: Sendable {
    let broker: Broker
    let address: String

    init(_ policy: AccessPolicy) throws {
      var configuration = BrokerConfiguration()
      configuration.listen = [.host("127.0.0.1", port: 0)]
      configuration.loops = 2
      configuration.limits.keepalive = 0
      configuration.limits.handshake = .seconds(600)
      broker = try Broker(configuration, access: policy)
      address = "\(try broker.start()[0])"
    }

    deinit {
      broker.stop()
    }

    func connect(
      _ credentials: ClientCredentials, _ configure: (inout ClientOptions) -> Void = { _ in }
    ) async throws -> Client {
      var options = ClientOptions()
      options.credentials = credentials
      options.keepalive = .zero
      options.connectTimeout = .seconds(600)
      options.requestTimeout = .seconds(600)
      options.reconnect = .quick
      configure(&options)
      return try await Client.connect(to: address, options: options)
    }
  }

  private static func policy(_ rules: [String: [Permissions.Rule]]) throws -> AccessPolicy {
    var policy = AccessPolicy()
    for (name, rules) in rules {
      policy.users[name] = PasswordHash(of: name, cost: .init(logN: 4, r: 1, p: 1))
      policy.permissions[name] = Permissions(rules)
    }
    return policy
  }

  private static func rule(_ rights: Rights, _ pattern: String) throws -> Permissions.Rule {
    .init(rights, on: try TopicPattern(pattern))
  }

  private static func password(_ name: String) -> ClientCredentials { .password(name, user: name) }

  private func code(_ body: () async throws -> Void) async -> ClientError.Code? {
    do {
      try await body()
      return nil
    } catch {
      return (error as? ClientError)?.code
    }
  }

  @Test func whatIsProvidedIsProved() async throws {
    let setting = try Setting(Self.policy(["ada": [Self.rule(.all, ">")]]))
    let asked = Atomic(0)
    let client = try await setting.connect(
      .provider {
        asked.add(1, ordering: .relaxed)
        await Task.yield()
        return .provider { Self.password("ada") }
      })
    #expect(client.identity?.name == "ada" && client.identity?.expires == nil)
    // Each connection gets separate credentials.
    LoopbackSetting.breakOff(client)
    // The first ping may still be answered on the connection that breaks.
    for _ in 0..<10_000 where asked.load(ordering: .relaxed) == 1 { _ = try await client.ping() }
    #expect(asked.load(ordering: .relaxed) == 2)
  }

  @Test func whatIsntProvidedIsNoConnection() async throws {
    let setting = try Setting(Self.policy(["ada": [Self.rule(.all, ">")]]))
    struct Missing: Error {}
    #expect(
      await code { _ = try await setting.connect(.provider { throw Missing() }) } == .credentialsUnavailable)
    #expect(
      await code {
        _ = try await setting.connect(
          .provider {
            try await Task.sleep(for: .seconds(3_600)); return .none
          }
        ) {
          $0.connectTimeout = .milliseconds(50)
        }
      } == .credentialsUnavailable)
    #expect(await code { _ = try await setting.connect(.none) } == .authenticationRequired)
    #expect(
      await code { _ = try await setting.connect(.password("bob", user: "ada")) } == .authenticationFailed)
  }

  @Test func whatIsDeniedFailsWithThat() async throws {
    let setting = try Setting(
      Self.policy([
        "ada": [Self.rule(.all, ">")],
        "bob": [Self.rule([.subscribe, .create], "in.>"), Self.rule(.publish, "out")],
      ]))
    let bob = try await setting.connect(Self.password("bob"))
    #expect(await code { for try await _ in bob.topic("out").values {} } == .permissionDenied)
    #expect(await code { try await bob.subject("in.1").publish("x") } == .permissionDenied)
    #expect(await code { _ = try await bob.topicInfo("other") } == .permissionDenied)
    #expect(await code { try await bob.deleteTopic("in.1") } == .permissionDenied)
    #expect(await code { try await bob.subject("out").publish("x") } == .unknownTopic)
    // Other requests still work.
    #expect(try await bob.topics().isEmpty)
  }

  @Test func requestsAndRepliesNeedNoMoreThanTheirTopic() async throws {
    let setting = try Setting(
      Self.policy([
        "asker": [Self.rule([.publish, .create], "questions")],
        "replier": [Self.rule(.subscribe, "questions")],
      ]))
    let (asker, replier) = try await (
      setting.connect(Self.password("asker")), setting.connect(Self.password("replier"))
    )
    try await asker.subject("questions").publish("first")
    let service = replier.respond(to: SubscriptionPlan("questions", from: .replay)) {
      Message($0.string + "!")
    }
    #expect(try await asker.request("questions", "why", timeout: .seconds(600)).string == "why!")
    // The reply belongs to the request's trace.
    var question = Message("why")
    question.trace = TraceContext()
    #expect(try await asker.request("questions", question, timeout: .seconds(600)).trace == question.trace)
    service.cancel()
  }

  @Test func whatIsTakenAwayEnds() async throws {
    let setting = try Setting(Self.policy(["ada": [Self.rule(.all, ">")]]))
    let client = try await setting.connect(Self.password("ada"))
    let subject = client.subject("t")
    try await subject.publish("a")
    var records = client.topic("t").values.makeAsyncIterator()
    #expect(try await records.next()?.string == "a")
    // Without a password hash in the policy, the former identity is gone: a client that reconnects authenticates again, and has no permissions.
    setting.broker.updateAccess(try Self.policy(["ada": []]))
    let failure = await code { _ = try await records.next() }
    #expect(failure == .permissionDenied)
    #expect(await code { try await subject.publish("b") } == .permissionDenied)
    #expect(client.failure == nil)
    // After that it can't reconnect at all.
    setting.broker.updateAccess(AccessPolicy())
    #expect(await code { while true { _ = try await client.ping() } } == .authenticationFailed)
    #expect(client.failure?.code == .authenticationFailed)
  }
}
