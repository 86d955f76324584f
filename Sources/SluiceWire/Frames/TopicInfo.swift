/// TOPIC_INFO: a topic, its settings, and who is attached. Answers TOPIC_SHOW and TOPIC_CREATE.
///
/// ```
/// structure summary · settings
/// list of subscriptions: u64 connection · string client · u32 stream · u8 state · u64 next offset · u64 granted · u64 sent · u64 holding
/// list of publications:  u64 connection · string client · u32 stream · u64 granted · u64 received · u64 waiting
/// ```
public struct TopicInfo: Frame {
  public static let type = FrameType.topicInfo

  /// A subscription as the broker sees it.
  public struct Subscription: Hashable, Sendable {
    /// What it is doing. The number is the one on the wire; others may follow.
    public struct State: RawRepresentable, Hashable, Sendable {
      public var rawValue: UInt8

      public init(rawValue: UInt8) {
        self.rawValue = rawValue
      }

      /// Below the offset where it became live.
      public static let replaying = State(rawValue: 0)
      /// Waiting for records.
      public static let live = State(rawValue: 1)
    }

    /// The broker's number for the connection.
    public var connection: UInt64
    /// The name in the client's HELLO.
    public var client: String
    public var stream: UInt32
    public var state: State
    /// The offset of the next record to be sent.
    public var nextOffset: UInt64
    /// Cumulative demand; all ones is unlimited.
    public var granted: UInt64
    /// Records sent so far; never more than `granted`.
    public var sent: UInt64
    /// For how long it has been holding producers up, in milliseconds; 0 when it doesn't.
    public var holding: UInt64

    public init(
      connection: UInt64, client: String, stream: UInt32, state: State, nextOffset: UInt64, granted: UInt64,
      sent: UInt64, holding: UInt64 = 0
    ) {
      self.connection = connection
      self.client = client
      self.stream = stream
      self.state = state
      self.nextOffset = nextOffset
      self.granted = granted
      self.sent = sent
      self.holding = holding
    }
  }

  /// A publication as the broker sees it.
  public struct Publication: Hashable, Sendable {
    public var connection: UInt64
    public var client: String
    public var stream: UInt32
    /// Cumulative demand that the broker gave.
    public var granted: UInt64
    /// Records received so far.
    public var received: UInt64
    /// For how long it has had no demand, in milliseconds; 0 when it has some.
    public var waiting: UInt64

    public init(
      connection: UInt64, client: String, stream: UInt32, granted: UInt64, received: UInt64,
      waiting: UInt64 = 0
    ) {
      self.connection = connection
      self.client = client
      self.stream = stream
      self.granted = granted
      self.received = received
      self.waiting = waiting
    }
  }

  public var summary: TopicSummary
  public var settings: TopicSettings
  /// The first of them; `summary.subscriptions` counts all.
  public var subscriptions: [Subscription]
  /// The first of them; `summary.publications` counts all.
  public var publications: [Publication]

  public init(
    summary: TopicSummary, settings: TopicSettings, subscriptions: [Subscription], publications: [Publication]
  ) {
    self.summary = summary
    self.settings = settings
    self.subscriptions = subscriptions
    self.publications = publications
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.structure { summary.encode(into: &$0) }
    settings.encode(into: &writer)
    writer.list(subscriptions) { subscription, writer in
      writer.integer(subscription.connection)
      writer.string(subscription.client, limit: Limits.name)
      writer.integer(subscription.stream)
      writer.integer(subscription.state.rawValue)
      writer.integer(subscription.nextOffset)
      writer.integer(subscription.granted)
      writer.integer(subscription.sent)
      writer.integer(subscription.holding)
    }
    writer.list(publications) { publication, writer in
      writer.integer(publication.connection)
      writer.string(publication.client, limit: Limits.name)
      writer.integer(publication.stream)
      writer.integer(publication.granted)
      writer.integer(publication.received)
      writer.integer(publication.waiting)
    }
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    var summary = try reader.structure("topic summary")
    self.summary = try TopicSummary(from: &summary)
    settings = try TopicSettings(from: &reader, unknown: .ignore)
    subscriptions = try reader.list("subscription") { reader throws(WireError) in
      Subscription(
        connection: try reader.integer("subscription connection"),
        client: try reader.string("subscription client"),
        stream: try reader.integer("subscription stream"),
        state: .init(rawValue: try reader.integer("subscription state")),
        nextOffset: try reader.integer("subscription next offset"),
        granted: try reader.integer("subscription granted"),
        sent: try reader.integer("subscription sent"),
        holding: try reader.integer("subscription holding"))
    }
    publications = try reader.list("publication") { reader throws(WireError) in
      Publication(
        connection: try reader.integer("publication connection"),
        client: try reader.string("publication client"),
        stream: try reader.integer("publication stream"),
        granted: try reader.integer("publication granted"),
        received: try reader.integer("publication received"),
        waiting: try reader.integer("publication waiting"))
    }
  }
}
