import SluiceWire
import TestSupport
import Testing

/// Limits of subscriptions to patterns, per connection and in all, and of the topics that they match.
@Suite(.onItsOwnThread) struct PatternLimitTests {
  private func subscribe(_ client: RawClient, _ pattern: String, stream: UInt32) throws {
    try client.send(SubscribePattern(pattern: pattern, grantedThrough: 1), stream: stream)
  }

  private func expectSubscribed(_ client: RawClient, _ pattern: String, stream: UInt32) throws {
    try subscribe(client, pattern, stream: stream)
    let answer = try client.receive("an answer to \(pattern)") { $0.stream == stream }
    #expect(answer.type == .subscribed, "\(answer)")
  }

  private func fault(_ client: RawClient, stream: UInt32) throws -> Fault {
    try client.receive("ERROR on stream \(stream)") { $0.stream == stream && $0.type == .error }
      .decode(Fault.self)
  }

  @Test func patternsOfAConnectionAndInAll() throws {
    let broker = try BrokerProcess("--max-patterns-per-connection", "2", "--max-patterns", "3")
    let one = try broker.client("one")
    for stream in UInt32(1)...2 { try expectSubscribed(one, "a.*", stream: stream) }
    try subscribe(one, "b.*", stream: 3)
    let own = try fault(one, stream: 3)
    #expect(own.code == .limitReached && own.message.contains("connection has 2 subscriptions to patterns"))

    let other = try broker.client("other")
    try expectSubscribed(other, "a.*", stream: 1)
    try subscribe(other, "a.*", stream: 2)
    let all = try fault(other, stream: 2)
    #expect(all.code == .limitReached && all.message.contains("broker has 3 subscriptions to patterns"))
    #expect(try broker.metric("refused_patterns") == 2)
    // A subscription that ends makes room for another. Subscriptions to single topics don't count.
    try one.cancel(stream: 1)
    try expectSubscribed(other, "a.*", stream: 2)
    try one.subscribe("a.b", stream: 4)
  }

  @Test func topicsThatPatternsMatch() throws {
    let broker = try BrokerProcess("--max-matches", "3")
    let client = try broker.client()
    let producer = try broker.client("producer")
    for topic in ["a.1", "a.2"] { try producer.create(topic) }
    try expectSubscribed(client, "a.*", stream: 1)
    try expectSubscribed(client, "a.1", stream: 2)
    // The third and the fourth topic.
    try subscribe(client, "a.2", stream: 3)
    #expect(try fault(client, stream: 3).code == .limitReached)
    try producer.create("a.3")
    let fault = try fault(client, stream: 1)
    #expect(fault.code == .limitReached && fault.message.contains("match 3 topics in all"))
    #expect(try broker.metric("refused_matches") == 2)
    // Other subscriptions have their own limit, and this connection continues.
    try expectSubscribed(try broker.client("other"), "a.*", stream: 1)
    try client.roundTrip()
  }
}
