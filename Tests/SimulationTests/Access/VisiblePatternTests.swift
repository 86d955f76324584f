import SluiceAccess
import SluiceIO
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Subscriptions to patterns include only topics that the client may subscribe to.
@Suite struct VisiblePatternTests {
  /// The frames received on a pattern's stream: topics in the order in which they were matched and unmatched, and the records of each.
  private struct Heard: Equatable {
    var matched: [String] = []
    var unmatched: [String] = []
    var records: [String: [Range<UInt64>]] = [:]

    init(_ client: ScriptedClient, on stream: UInt32 = 1) throws {
      var names: [UInt32: String] = [:]
      var subject: UInt32 = 0
      for frame in client.frames(on: stream) {
        switch frame.header.type {
        case .matched:
          let frame = try frame.decoded(Matched.self)
          names[frame.number] = frame.topic
          matched.append(frame.topic)
        case .unmatched: unmatched.append(try #require(names[try frame.decoded(Unmatched.self).number]))
        case .selectTopic: subject = try frame.decoded(SelectTopic.self).number
        case .deliver:
          let header = try frame.body.withUnsafeBytes { try DeliverHeader.decode($0).header }
          records[try #require(names[subject]), default: []]
            .append(header.firstOffset..<header.firstOffset + UInt64(header.count))
        default: break
        }
      }
    }
  }

  /// A world with a producer that has published one record to each topic.
  private func world(
    _ rules: [String: String], topics: [String], _ configure: (inout BrokerConfiguration) -> Void = { _ in }
  ) throws -> (SmallWorld, ScriptedClient) {
    let small = try SmallWorld(
      brokerLoops: 2, rules: rules.merging(["root": "all >"]) { $1 }, configure)
    let root = small.connect(as: "root")
    for (index, name) in topics.enumerated() {
      _ = root.ask(PublishOpen(topic: name, acknowledgement: .none), stream: UInt32(index + 1), in: small)
      root.publish([[1]], from: 0, stream: UInt32(index + 1))
    }
    small.settle()
    return (small, root)
  }

  @Test func othersAreAsIfTheyWerentThere() throws {
    let (small, root) = try world(["some": "subscribe a.*", "none": ""], topics: ["a.1", "b.1"])
    let (some, none) = (small.connect(as: "some"), small.connect(as: "none"))
    for client in [some, none] {
      _ = client.ask(SubscribePattern(pattern: ">", grantedThrough: 100), stream: 1, in: small)
    }
    for (index, name) in ["a.2", "b.2"].enumerated() {
      _ = root.ask(PublishOpen(topic: name, acknowledgement: .none), stream: UInt32(index + 11), in: small)
      root.publish([[1]], from: 0, stream: UInt32(index + 11))
    }
    small.settle()
    let heard = try Heard(some)
    #expect(heard.matched == ["a.1", "a.2"] && heard.unmatched.isEmpty)
    #expect(heard.records == ["a.1": [0..<1], "a.2": [0..<1]])
    // SUBSCRIBED, end of the list, all live: the same frames as without any topics.
    #expect(none.types == [.welcome, .subscribed, .selectTopic, .live])
  }

  @Test func limitsCountWhatIsSeen() throws {
    let (small, root) = try world(
      ["some": "subscribe a.*"], topics: ["a.1", "a.2", "b.1", "b.2", "b.3"]
    ) { $0.limits.matches = 2 }
    let some = small.connect(as: "some")
    _ = some.ask(SubscribePattern(pattern: ">", grantedThrough: 100), stream: 1, in: small)
    #expect(try Heard(some).matched == ["a.1", "a.2"])
    _ = root.ask(TopicCreate(topic: "b.4", settings: TopicSettings()), stream: 20, in: small)
    #expect(!some.types.contains(.error))
    _ = root.ask(TopicCreate(topic: "a.3", settings: TopicSettings()), stream: 20, in: small)
    #expect(try some.fault(on: 1)?.code == .limitReached)
  }

  @Test func topicsComeAndGoWithThePermissions() throws {
    let (small, root) = try world(["some": "subscribe a.*"], topics: ["a.1", "b.1", "b.2"])
    let some = small.connect(as: "some")
    _ = some.ask(SubscribePattern(pattern: "*.*", grantedThrough: 100), stream: 1, in: small)
    _ = some.ask(
      SubscribePattern(pattern: "b.*", start: .new, grantedThrough: 100), stream: 2, in: small)
    try small.change(["root": "all >", "some": "subscribe b.*"])
    #expect(try Heard(some).matched == ["a.1", "b.1", "b.2"])
    #expect(try Heard(some).unmatched == ["a.1"])
    // The topic starts where the subscription originally requested.
    #expect(try Heard(some).records == ["a.1": [0..<1], "b.1": [0..<1], "b.2": [0..<1]])
    #expect(try Heard(some, on: 2).matched == ["b.1", "b.2"])
    #expect(try Heard(some, on: 2).records.isEmpty)
    for stream in [UInt32(1), 2, 3] { root.publish([[2]], from: 1, stream: stream) }
    small.settle()
    #expect(try Heard(some).records["a.1"] == [0..<1])
    #expect(try Heard(some).records["b.1"] == [0..<1, 1..<2])
    #expect(try Heard(some, on: 2).records == ["b.1": [1..<2], "b.2": [1..<2]])
    // Change the permissions back.
    try small.change(["root": "all >", "some": "subscribe a.*"])
    #expect(try Heard(some).matched == ["a.1", "b.1", "b.2", "a.1"])
    #expect(try Heard(some).records["a.1"] == [0..<1, 0..<2])
    #expect(try Heard(some, on: 2).unmatched == ["b.1", "b.2"])
    let registry = small.broker.core.registry
    #expect(registry.find("a.1")?.attached.subscriptions == 1)
    #expect(registry.find("b.1")?.attached.subscriptions == 0)
  }

  @Test func whatIsMadeJustThenIsHeardOnce() throws {
    // The policy and a new topic reach the subscriber's loop in either order.
    for delay in 0..<40 {
      let (small, root) = try world(["some": "subscribe a.*"], topics: [])
      let some = small.connect(as: "some")
      _ = some.ask(SubscribePattern(pattern: ">", grantedThrough: 100), stream: 1, in: small)
      root.send(PublishOpen(topic: "b.1", acknowledgement: .none), stream: 1)
      small.settle(.microseconds(delay * 25))
      small.broker.updateAccess(try PlainAccess.policy(["root": "all >", "some": "subscribe >"]))
      small.settle()
      root.publish([[1], [2]], from: 0, stream: 1)
      small.settle()
      let heard = try Heard(some)
      #expect(heard.matched == ["b.1"] && heard.unmatched.isEmpty)
      #expect(heard.records == ["b.1": [0..<2]])
    }
  }
}
