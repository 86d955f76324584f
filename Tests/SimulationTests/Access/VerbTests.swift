import SluiceIO
import SluiceStore
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// The reply to every verb that names a topic, for every kind of topic.
@Suite struct VerbTests {
  /// A kind of topic, as seen by the client `some`, which has all rights on topics `p.>`.
  private enum Kind: String, CaseIterable {
    case plain = "p.plain"
    case unknown = "p.unknown"
    case durable = "p.durable"
    case ended = "p.ended"
    /// The topic exists, but no rule of the client covers it.
    case hidden = "x.hidden"
    case missing = "x.missing"
    case ownInbox = "_inbox.own"
    case foreignInbox = "_inbox.foreign"
    /// An inbox that no client has claimed.
    case freeInbox = "_inbox.free"
  }

  /// An answer, as one character.
  private enum Answer: Character {
    case done = "+"
    case denied = "D"
    case unknownTopic = "U"
    case unknownCursor = "C"
    case unsupported = "N"
    case topicEnded = "E"
    /// The subscription to the pattern is open without the topic, or the list omits it.
    case withoutTopic = "-"

    init?(_ code: ErrorCode?) {
      switch code {
      case nil: self = .done
      case .permissionDenied: self = .denied
      case .unknownTopic: self = .unknownTopic
      case .unknownCursor: self = .unknownCursor
      case .unsupported: self = .unsupported
      case .topicEnded: self = .topicEnded
      default: return nil
      }
    }
  }

  struct Verb: Sendable, CustomTestStringConvertible {
    var description: String
    var type: FrameType
    /// By kind, in the order of ``Kind``.
    var expected: String
    var encode: @Sendable (_ topic: String) -> [UInt8]

    init(_ description: String, _ expected: String, _ frame: @escaping @Sendable (String) -> some Frame) {
      self.description = description
      self.expected = expected
      type = Self.type(of: frame("t"))
      encode = { frame($0).encoded(stream: 1) }
    }

    private static func type<F: Frame>(of frame: F) -> FrameType { F.type }

    var testDescription: String { description }
  }

  private static let letters: @Sendable (String) -> JoinGroup = { name in
    var settings = JoinGroup.Settings(acknowledgement: .explicit)
    settings.deadLetters = name
    return JoinGroup(topic: "p.source", group: "letters", settings: settings, grantedThrough: 1)
  }

  private static let manual: TopicSettings = {
    var settings = TopicSettings()
    settings.connect = .manual
    return settings
  }()

  private static let stored: TopicSettings = {
    var settings = manual
    settings.storage = .durable
    return settings
  }()

  //                        plain, unknown, durable, ended, hidden, missing; inboxes: own, foreign, free
  static let verbs: [Verb] = [
    Verb("SUBSCRIBE", "++++DD+D+") { Subscribe(topic: $0, grantedThrough: 1) },
    Verb("SUBSCRIBE with a cursor", "++++DD+D+") { Subscribe(topic: $0, grantedThrough: 1, cursor: "c") },
    Verb("SUBSCRIBE_PATTERN", "+-++-----") { SubscribePattern(pattern: $0, grantedThrough: 1) },
    Verb("JOIN", "++++DD+D+") { JoinGroup(topic: $0, group: "g", grantedThrough: 1) },
    Verb("JOIN with dead letters there", "++++DD+++", letters),
    Verb("PUBLISH_OPEN", "+++EDD+++") { PublishOpen(topic: $0, acknowledgement: .received) },
    Verb("TOPIC_CREATE", "++++DD+D+") {
      switch $0 {
      case Kind.plain.rawValue, Kind.ended.rawValue: TopicCreate(topic: $0, settings: manual)
      case Kind.durable.rawValue: TopicCreate(topic: $0, settings: stored)
      default: TopicCreate(topic: $0, settings: TopicSettings())
      }
    },
    Verb("TOPIC_SHOW", "+U++DDDDD") { TopicShow(topic: $0) },
    Verb("TOPIC_LIST", "+-++-----") { _ in TopicList(after: "", limit: 100) },
    Verb("TOPIC_DELETE", "+U++DDDDD") { TopicDelete(topic: $0) },
    Verb("TOPIC_CONNECT", "+N++DDDDD") { TopicConnect(topic: $0) },
    Verb("TOPIC_DISCONNECT", "+N++DDDDD") { TopicDisconnect(topic: $0) },
    Verb("CURSOR_LIST", "+U++DD+DD") { CursorList(topic: $0, limit: 9) },
    Verb("CURSOR_MOVE", "+U++DDDDD") { CursorMove(topic: $0, name: "c", to: .replay) },
    Verb("CURSOR_DELETE", "CUCCDDDDD") { CursorDelete(topic: $0, name: "c") },
    Verb("TOPIC_SET", "+U++DDDDD") { TopicSet(topic: $0, settings: TopicSettings(replayRecords: 5)) },
    Verb("TOPIC_TRIM", "+U++DDDDD") { TopicTrim(topic: $0, .newest(1)) },
    Verb("STATE_LIST", "NU+NDDDDD") { StateList(topic: $0, kind: .producer) },
    Verb("STATE_RESTORE", "NU+NDDDDD") { StateRestore(topic: $0, kind: .group, origin: 0, states: []) },
  ]

  @Test(arguments: verbs)
  func whatIsAnswered(verb: Verb) throws {
    for (kind, letter) in zip(Kind.allCases, verb.expected) {
      let small = try SmallWorld(
        rules: ["root": "all >", "some": "all p.>", "other": "all o.>"],
        storage: StoreConfiguration(MemoryStore())
      )
      let (root, some, other) = (
        small.connect(as: "root"), small.connect(as: "some"), small.connect(as: "other")
      )
      for kind in [Kind.plain, .durable, .ended, .hidden] {
        let settings = kind == .durable ? Self.stored : Self.manual
        _ = root.ask(TopicCreate(topic: kind.rawValue, settings: settings), stream: 1, in: small)
      }
      // A replying client creates the inbox but doesn't own it.
      _ = root.ask(PublishOpen(topic: Kind.freeInbox.rawValue, acknowledgement: .none), stream: 3, in: small)
      _ = root.ask(PublishOpen(topic: Kind.ended.rawValue, acknowledgement: .none), stream: 2, in: small)
      _ = root.ask(Complete(.finished), stream: 2, in: small)
      _ = some.ask(Subscribe(topic: Kind.ownInbox.rawValue, grantedThrough: 1), stream: 9, in: small)
      _ = other.ask(Subscribe(topic: Kind.foreignInbox.rawValue, grantedThrough: 1), stream: 9, in: small)
      #expect(!root.types.contains(.error) && !some.types.contains(.error) && !other.types.contains(.error))

      some.forget()
      some.send(verb.encode(kind.rawValue))
      small.settle()
      var answer = Answer(try some.fault(on: 1)?.code)
      if answer == .done, try !hasTopic(kind.rawValue, some, verb.type) { answer = .withoutTopic }
      #expect(answer == Answer(rawValue: letter), "\(verb.description) of \(kind)")
    }
  }

  /// Whether a reply that may cover several topics includes this one.
  private func hasTopic(_ name: String, _ client: ScriptedClient, _ type: FrameType) throws -> Bool {
    switch type {
    case .subscribePattern:
      return try client.frames.contains {
        try $0.header.type == .matched && $0.decoded(Matched.self).topic == name
      }
    case .topicList:
      return try client.frames.contains {
        try $0.header.type == .topics && $0.decoded(Topics.self).topics.contains { $0.topic == name }
      }
    default: return client.types.isEmpty == false
    }
  }
}
