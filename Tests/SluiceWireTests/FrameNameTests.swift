import SluiceWire
import TestSupport
import Testing

/// Every text in a frame is either a name, which is checked when the frame is admitted, or listed as another text.
@Suite struct FrameNameTests {
  /// The texts in frames that aren't names in a client's request: texts for display, parts of credentials, positions in a list, and reports of
  /// brokers.
  private static let otherTexts: Set<String> = [
    "Authenticated.identity",
    "Complete.ending.failure.message",
    "CursorList.after",
    "Cursors.cursors.name", "TopicInfo.consumers.name",
    "Fault.message",
    "GoAway.message",
    "Hello.credentials.password.0",
    "Hello.credentials.password.user",
    "Hello.name",
    "JoinGroup.settings.filter.conditions.subject.header",
    "BrokerInfo.numbers.name",
    "ClusterInfo.engine.problems", "ClusterInfo.engine.server",
    "ClusterInfo.name", "ClusterInfo.unreadiness",
    "ClusterInfo.nodes.address", "ClusterInfo.nodes.name", "ClusterInfo.nodes.version",
    "ClusterInfo.numbers.name",
    "ClusterInfo.shards.owner", "ClusterInfo.shards.pin", "ClusterInfo.shards.target",
    "ClusterShow.after",
    "Redirect.address", "Redirect.node",
    "BrokerInfo.stoppedTopics.topic", "BrokerInfo.problems.sentence",
    "BrokerInfo.problems.kind", "BrokerInfo.problems.topic", "BrokerInfo.problems.consumer",
    "BrokerInfo.problemKinds.kind", "BrokerInfo.problemKinds.sentence",
    "Connections.connections.client",
    "Connections.connections.identity",
    "Connections.connections.peer",
    "Connections.connections.security",
    "ClusterInfo.nodes.problem",
    "Matched.topic", "Origin.client", "Origin.node", "TopicInfo.publications.node",
    "TopicInfo.subscriptions.node",
    "Subscribe.filter.conditions.subject.header",
    "TopicInfo.subscriptions.client", "TopicInfo.subscriptions.consumer",
    "TopicInfo.summary.topic",
    "TopicList.after",
    "Topics.topics.ending.some.failure.message",
    "Topics.topics.topic",
    "Welcome.identity",
    "Welcome.software",
  ]

  /// The paths of all texts in a value, such as `Subscribe.cursor`.
  private static func texts(in value: Any, at path: String) -> [(path: String, text: String)] {
    if let text = value as? String { return [(path, text)] }
    let mirror = Mirror(reflecting: value)
    return mirror.children.enumerated().flatMap { index, child in
      // Elements have no names of their own.
      let label = mirror.displayStyle == .collection ? nil : child.label ?? "\(index)"
      return texts(in: child.value, at: label.map { "\(path).\($0)" } ?? path)
    }
  }

  @Test func aTextThatClientsSendIsANameThatIsCheckedOrIsKnownToBeNone() {
    var unknown: Set<String> = []
    for golden in goldenFrames {
      let type = "\(Swift.type(of: golden.frame))"
      let names = golden.frame.names.map(\.text)
      for (path, text) in Self.texts(in: golden.frame, at: type)
      where !text.isEmpty && !names.contains(text) && !Self.otherTexts.contains(path) {
        unknown.insert(path)
      }
    }
    #expect(unknown == [])
  }

  @Test func everyFrameWithNamesIsInTheTableOfThose() {
    let named = Set(goldenFrames.filter { !$0.frame.names.isEmpty }.map(\.type))
    #expect(named == Set(WireProbe.namedFrames.map { type(of: $0).type.rawValue }))
    #expect(Set(WireProbe.frameTypes.map { $0.type.rawValue }) == Set(goldenFrames.map(\.type)))
  }

  @Test func everyNameIsChecked() throws {
    for frame in WireProbe.namedFrames {
      try frame.validateNames()
      for bytes in WireProbe.misnamed(frame, stream: 1) {
        let misnamed = try frame.decoded(bytes)
        let error = #expect(throws: WireError.self) { try misnamed.validateNames() }
        #expect(error?.code == .invalidTopic)
      }
    }
  }

  @Test(arguments: [FrameName.Kind.topic, .pattern, .cursor, .group, .deadLetters])
  func namesHaveOneToTwoHundredFiftyFiveBytes(kind: FrameName.Kind) throws {
    for length in [1, 255] { try FrameName(kind, String(repeating: "n", count: length)).validate() }
    for length in [0, 256] {
      let error = #expect(throws: WireError.self) {
        try FrameName(kind, String(repeating: "n", count: length)).validate()
      }
      #expect(error?.code == .invalidTopic)
    }
    try FrameName(kind, "", isOptional: true).validate()
  }
}

extension Frame {
  /// Decodes another frame of the same type from all bytes.
  fileprivate func decoded(_ bytes: [UInt8]) throws -> any Frame {
    try bytes[FrameHeader.size...].withUnsafeBytes { try Self(body: $0) }
  }
}
