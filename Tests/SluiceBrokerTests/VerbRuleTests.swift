import SluiceAccess
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// The rules of verbs compared with the frame table.
struct VerbRuleTests {
  /// Every type of frame that a broker accepts on any stream.
  private static let taken: [FrameType] = (UInt8.min...UInt8.max).map(FrameType.init(rawValue:)).filter {
    type in
    [UInt32(0), 1].contains { stream in
      (try? FrameHeader(length: 0, type: type, stream: stream).admission(at: .broker)) == .take
    }
  }

  @Test func everyFrameThatABrokerTakesHasARule() {
    #expect(Set(VerbRule.table.keys) == Set(Self.taken))
    #expect(Self.taken.count > 20)
  }

  @Test func framesOfTheConnectionNeedNoPermission() {
    for type in Self.taken {
      let isOfConnection =
        (try? FrameHeader(length: 0, type: type, stream: 0).admission(at: .broker)) == .take
      let needsNone = VerbRule.rule(for: type).permission == .none
      // New credentials are for the connection, but the request has a stream.
      #expect(isOfConnection == needsNone || type == .authenticate, "\(type)")
    }
  }

  @Test func whatReadsATopicByItsNameMustOwnAnInbox() {
    for (type, rule) in VerbRule.table where rule.permission == .rights(.subscribe) {
      #expect(rule.inbox != .anyClient, "\(type) reads a topic")
    }
    #expect(VerbRule.rule(for: .topicCreate).inbox != .anyClient)
  }
}
