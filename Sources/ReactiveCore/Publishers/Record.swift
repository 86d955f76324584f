/// Delivers values and a completion recorded before, to each subscriber, as it asks for them.
public struct Record<Output, Failure: Error>: Publisher {
  /// The recorded values and completion.
  public let recording: Recording

  /// A publisher of recorded values. It finishes, unless the function records a failure.
  public init(record: (inout Recording) -> Void) {
    var recording = Recording()
    record(&recording)
    self.init(recording: recording)
  }

  /// A publisher of a recording.
  public init(recording: Recording) { self.recording = recording }

  /// A publisher of values and a completion.
  public init(output: [Output], completion: Subscribers.Completion<Failure>) {
    self.init(recording: Recording(output: output, completion: completion))
  }

  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    if recording.output.isEmpty {
      subscriber.receive(subscription: Subscriptions.empty)
      subscriber.receive(completion: recording.completion)
    } else {
      Publishers.Sequence<[Output], Failure>(sequence: recording.output)
        .receive(subscriber: RecordSubscriber(recording, downstream: subscriber))
    }
  }

  /// Values, and how their stream ended.
  public struct Recording {
    public typealias Input = Output

    /// The values.
    public private(set) var output: [Output]
    /// The end; a finish until another is recorded.
    public private(set) var completion: Subscribers.Completion<Failure>

    private var isComplete: Bool

    /// An empty recording, to be added to.
    public init() {
      output = []
      completion = .finished
      isComplete = false
    }

    /// A complete recording, which nothing can be added to.
    public init(output: [Output], completion: Subscribers.Completion<Failure> = .finished) {
      self.output = output
      self.completion = completion
      isComplete = true
    }

    /// Adds a value. Stops the program if the recording is complete.
    public mutating func receive(_ input: Input) {
      precondition(!isComplete, "Receiving values after completion is not allowed")
      output.append(input)
    }

    /// Completes the recording. Stops the program if it is complete.
    public mutating func receive(completion: Subscribers.Completion<Failure>) {
      precondition(!isComplete, "Receiving completion more than once is not allowed")
      self.completion = completion
      isComplete = true
    }
  }
}

extension Record: Sendable where Output: Sendable {}
extension Record.Recording: Sendable where Output: Sendable {}
extension Record: Codable where Output: Codable, Failure: Codable {}

extension Record.Recording: Codable where Output: Codable, Failure: Codable {
  private enum CodingKeys: String, CodingKey {
    case output
    case completion
  }

  /// Reads a complete recording from `output` and `completion`.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      output: try container.decode([Output].self, forKey: .output),
      completion: try container.decode(Subscribers.Completion<Failure>.self, forKey: .completion))
  }

  /// Writes `output` and `completion`.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(output, forKey: .output)
    try container.encode(completion, forKey: .completion)
  }

  /// The same as ``encode(to:)``.
  public func encode(into encoder: any Encoder) throws { try encode(to: encoder) }
}

/// Puts the recorded completion in place of the finish of the values.
private struct RecordSubscriber<Input, Failure, Downstream: Subscriber>: PassThroughSubscriber
where Downstream.Input == Input, Downstream.Failure == Failure {
  let recording: Record<Input, Failure>.Recording
  let downstream: Downstream
  let combineIdentifier = CombineIdentifier()

  init(_ recording: Record<Input, Failure>.Recording, downstream: Downstream) {
    self.recording = recording
    self.downstream = downstream
  }

  func receive(subscription: any Subscription) {
    downstream.receive(subscription: RecordSubscription(recording, subscription))
  }

  func receive(_ input: Input) -> Subscribers.Demand { downstream.receive(input) }

  func receive(completion: Subscribers.Completion<Failure>) {
    downstream.receive(completion: recording.completion)
  }
}

/// The subscription to the values, which shows the recording for as long as values are to come.
private final class RecordSubscription<Output, Failure: Error>: Subscription, OperatorPart {
  private let completion: Subscribers.Completion<Failure>
  private let values: any Subscription

  init(_ recording: Record<Output, Failure>.Recording, _ values: any Subscription) {
    completion = recording.completion
    self.values = values
  }

  func request(_ demand: Subscribers.Demand) { values.request(demand) }

  func cancel() { values.cancel() }

  var description: String {
    let shown = String(describing: values)
    return shown == "Sequence" ? "Cancelled Events" : shown
  }

  var customMirror: Mirror {
    let sequence = Mirror(reflecting: values).descendant("sequence") ?? [Output]()
    return mirror(("sequence", sequence), ("completion", completion))
  }
}
