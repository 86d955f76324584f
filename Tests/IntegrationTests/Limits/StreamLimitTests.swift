import SluiceWire
import TestSupport
import Testing

/// Limits of subscriptions, publications and topics, per connection and in all. Only the request beyond the limit is denied.
@Suite(.onItsOwnThread) struct StreamLimitTests {
  @Test func subscriptionsOfAConnectionAndInAll() throws {
    let broker = try BrokerProcess(
      "--max-subscriptions-per-connection", "3", "--max-subscriptions", "5")
    let one = try broker.client("one")
    for stream in UInt32(1)...2 { try one.subscribe("t", stream: stream) }
    try one.send(SubscribePattern(pattern: "x.*", grantedThrough: 1), stream: 3)
    _ = try one.receive("SUBSCRIBED") { $0.stream == 3 && $0.type == .subscribed }
    try one.send(Subscribe(topic: "t", grantedThrough: 1), stream: 4)
    let fault = try one.receive("ERROR") { $0.stream == 4 }.decode(Fault.self)
    #expect(fault.code == .limitReached && fault.message.contains("connection has 3 subscriptions"))

    let other = try broker.client("other")
    for stream in UInt32(1)...2 { try other.subscribe("t", stream: stream) }
    try other.send(JoinGroup(topic: "t", group: "g", grantedThrough: 1), stream: 3)
    let second = try other.receive("ERROR") { $0.stream == 3 }.decode(Fault.self)
    #expect(second.code == .limitReached && second.message.contains("broker has 5 subscriptions"))
    #expect(try broker.metric("refused_subscriptions_per_connection") == 1)
    #expect(try broker.metric("refused_subscriptions") == 1)

    // A stream that ends makes room for another.
    try one.cancel(stream: 3)
    try one.subscribe("t", stream: 3)
    #expect(try broker.metric("subscriptions") == 5)
    other.close()
    try eventually("those of a closed connection are gone") { try broker.metric("subscriptions") == 3 }
  }

  @Test func publicationsOfAConnectionAndInAll() throws {
    let broker = try BrokerProcess("--max-publications-per-connection", "2", "--max-publications", "3")
    let one = try broker.client("one")
    for stream in UInt32(1)...2 { try one.openPublication("t", stream: stream) }
    try one.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 3)
    let fault = try one.receive("ERROR") { $0.stream == 3 && $0.type == .error }.decode(Fault.self)
    #expect(fault.code == .limitReached && fault.message.contains("connection has 2 publications"))
    // Other publications are unaffected.
    try one.publish(["a"], stream: 1)
    try one.receiveAcknowledgements(stream: 1)

    let other = try broker.client("other")
    try other.openPublication("t", stream: 1)
    try other.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 2)
    let second = try other.receive("ERROR") { $0.stream == 2 && $0.type == .error }.decode(Fault.self)
    #expect(second.code == .limitReached && second.message.contains("broker has 3 publications"))
    #expect(try broker.metric("refused_publications_per_connection") == 1)
    #expect(try broker.metric("refused_publications") == 1)
    try one.cancel(stream: 1)
    try other.openPublication("t", stream: 2)
    #expect(try broker.metric("publications") == 3)
  }

  @Test func topicsThatAConnectionMakes() throws {
    let broker = try BrokerProcess("--max-topics-per-connection", "3", "--max-topics", "5")
    let one = try broker.client("one")
    let other = try broker.client("other")
    try one.create("a")
    try one.subscribe("b", stream: 1)
    try one.openPublication("c", stream: 2)
    try one.send(Subscribe(topic: "d", grantedThrough: 1), stream: 3)
    let fault = try one.receive("ERROR") { $0.stream == 3 }.decode(Fault.self)
    #expect(fault.code == .limitReached && fault.message.contains("created 3 topics"))
    // Topics that other clients have created may be used.
    try other.create("d")
    try one.subscribe("d", stream: 3)

    // Deleting a topic makes room for the connection that created it, whichever client deletes it.
    try other.delete("a")
    try one.create("e")
    try other.create("f")
    try other.send(TopicCreate(topic: "g", settings: TopicSettings()), stream: 9)
    let second = try other.receive("ERROR") { $0.stream == 9 }.decode(Fault.self)
    #expect(second.code == .limitReached && second.message.contains("broker has 5 topics"))
    #expect(try broker.metric("refused_topics_per_connection") == 1)
    #expect(try broker.metric("refused_topics") == 1)
  }
}
