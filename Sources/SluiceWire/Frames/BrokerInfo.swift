/// BROKER_SHOW: asks for the state of the broker. Answered by ``BrokerInfo`` or ``Fault`` on the same stream.
///
/// The body is empty.
public struct BrokerShow: LaidOutFrame {
  public static let type = FrameType.brokerShow

  public init() {}

  public static let layout = FrameLayout(Self.init)
}

/// BROKER_INFO: the state of the broker at one moment. Answers ``BrokerShow``.
///
/// ```
/// u64 time · u64 uptime · structure storage · u32 stopped · list of stopped topics · list of numbers · list of problems ·
/// list of problem kinds
/// ```
public struct BrokerInfo: LaidOutFrame {
  public static let type = FrameType.brokerInfo

  /// A topic whose producers are stopped.
  ///
  /// ```
  /// string topic · u8 reason · u64 milliseconds
  /// ```
  public struct StoppedTopic: Hashable, Sendable {
    public var topic: String
    public var reason: TopicInfo.Publication.WaitReason
    /// For how long they are, at least 1, pauses of up to a second included.
    public var milliseconds: UInt64

    public init(topic: String, reason: TopicInfo.Publication.WaitReason, milliseconds: UInt64) {
      self.topic = topic
      self.reason = reason
      self.milliseconds = milliseconds
    }

    static let layout = FrameLayout(
      Self.init, Field.string("stopped topic", \Self.topic), Field.number("stopped reason", \Self.reason),
      Field.integer("stopped milliseconds", \Self.milliseconds))
  }

  /// A counter or a gauge, by the name that it has in the broker's metrics.
  ///
  /// ```
  /// string name · u64 value
  /// ```
  public struct Number: Hashable, Sendable {
    public var name: String
    public var value: UInt64

    public init(name: String, value: UInt64) {
      self.name = name
      self.value = value
    }

    static let layout = FrameLayout(
      Self.init, Field.string("number's name", \Self.name), Field.integer("number's value", \Self.value))
  }

  /// Something that an operator should look at.
  ///
  /// ```
  /// u8 severity · u64 since · string sentence · string kind · string topic · string consumer · u64 connection
  /// ```
  public struct Problem: Hashable, Sendable {
    /// How urgent it is. The number is the one on the wire; others may follow.
    public struct Severity: RawRepresentable, Hashable, Sendable {
      public var rawValue: UInt8

      public init(rawValue: UInt8) {
        self.rawValue = rawValue
      }

      /// Records are refused, or lost.
      public static let critical = Severity(rawValue: 0)
      /// They will be, or clients wait.
      public static let warning = Severity(rawValue: 1)
    }

    public var severity: Severity
    /// When it began or was first found, in milliseconds since 1970.
    public var since: UInt64
    /// A sentence for users: the event, its subject and the cause.
    public var sentence: String
    /// The kind of problem, by the name that it has in the admin API.
    public var kind: String
    /// The topic that it is about; empty for none.
    public var topic: String
    /// The durable cursor or group that it is about; empty for none.
    public var consumer: String
    /// The connection that it is about; 0 for none.
    public var connection: UInt64

    public init(
      severity: Severity, since: UInt64, sentence: String, kind: String = "", topic: String = "",
      consumer: String = "", connection: UInt64 = 0
    ) {
      self.severity = severity
      self.since = since
      self.sentence = sentence
      self.kind = kind
      self.topic = topic
      self.consumer = consumer
      self.connection = connection
    }

    static let layout = FrameLayout(
      Self.init, Field.number("problem severity", \Self.severity),
      Field.integer("problem since", \Self.since),
      Field.string("problem sentence", limit: 2048, \Self.sentence),
      Field.string("problem kind", limit: Limits.name, \Self.kind),
      Field.string("problem topic", \Self.topic),
      Field.string("problem consumer", limit: Limits.name, \Self.consumer),
      Field.integer("problem connection", \Self.connection))
  }

  /// All problems of one kind.
  ///
  /// ```
  /// string kind · u8 severity · u64 since · u32 count · string sentence
  /// ```
  public struct ProblemKind: Hashable, Sendable {
    /// The name of the kind, as in ``Problem``.
    public var kind: String
    /// That of the most urgent of them.
    public var severity: Problem.Severity
    /// When the first of them began or was found, in milliseconds since 1970.
    public var since: UInt64
    /// How many there are, those included that aren't listed.
    public var count: UInt32
    /// A sentence for users that covers all of them, or the problem's own sentence if there is one.
    public var sentence: String

    public init(kind: String, severity: Problem.Severity, since: UInt64, count: UInt32, sentence: String) {
      self.kind = kind
      self.severity = severity
      self.since = since
      self.count = count
      self.sentence = sentence
    }

    static let layout = FrameLayout(
      Self.init, Field.string("problem kind's name", limit: Limits.name, \Self.kind),
      Field.number("problem kind's severity", \Self.severity),
      Field.integer("problem kind's since", \Self.since),
      Field.integer("problem kind's count", \Self.count),
      Field.string("problem kind's sentence", limit: 2048, \Self.sentence))
  }

  /// Milliseconds since 1970.
  public var time: UInt64
  /// Milliseconds since the broker has started.
  public var uptime: UInt64
  /// The store of durable topics.
  public var storage: StorageStatus
  /// How many topics there are whose producers are stopped.
  public var stopped: UInt32
  /// The first of these, those that have been stopped for the longest time.
  public var stoppedTopics: [StoppedTopic]
  /// The broker's counters and gauges: `topics`, `connections`, `records_received` and others.
  public var numbers: [Number]
  /// The problems that the broker has found, the most urgent first; at most 20.
  public var problems: [Problem]
  /// All problems by kind, those included that aren't listed; the most urgent kinds first.
  public var problemKinds: [ProblemKind]

  public init(
    time: UInt64, uptime: UInt64, storage: StorageStatus, stopped: UInt32, stoppedTopics: [StoppedTopic],
    numbers: [Number], problems: [Problem] = [], problemKinds: [ProblemKind] = []
  ) {
    self.time = time
    self.uptime = uptime
    self.storage = storage
    self.stopped = stopped
    self.stoppedTopics = stoppedTopics
    self.numbers = numbers
    self.problems = problems
    self.problemKinds = problemKinds
  }

  /// The number of that name; nil when the broker doesn't have it.
  public subscript(name: String) -> UInt64? {
    numbers.first { $0.name == name }?.value
  }

  public static let layout = FrameLayout(
    Self.init, Field.integer("BROKER_INFO time", \Self.time),
    Field.integer("BROKER_INFO uptime", \Self.uptime),
    Field.structure("BROKER_INFO storage", \Self.storage, StorageStatus.layout),
    Field.integer("BROKER_INFO stopped", \Self.stopped),
    Field.list("stopped topics", \Self.stoppedTopics, StoppedTopic.layout),
    Field.list("numbers", \Self.numbers, Number.layout),
    Field.list("problems", \Self.problems, Problem.layout),
    Field.list("problem kinds", \Self.problemKinds, ProblemKind.layout))
}
