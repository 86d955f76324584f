import SluiceIO

/// The owner of a stream: a subscription, a publication or a request. It may wait for its stream, see ``AwaitingStreams``.
enum Attachment {
  case subscription(RemoteSubscription)
  case publication(Publication)
  case request(Request)

  var owner: AnyObject {
    switch self {
    case .subscription(let subscription): subscription
    case .publication(let publication): publication
    case .request(let request): request
    }
  }

  /// The topic, or the pattern; nil for a request that names none.
  var topic: String? {
    switch self {
    case .subscription(let subscription): subscription.plan.topic
    case .publication(let publication): publication.topic
    case .request(let request): request.topic
    }
  }

  /// When its stream is opened again while its topic moves; nil before the first move.
  var move: Move? {
    get {
      switch self {
      case .subscription(let subscription): subscription.move
      case .publication(let publication): publication.move
      case .request(let request): request.move
      }
    }
    nonmutating set {
      switch self {
      case .subscription(let subscription): subscription.move = newValue
      case .publication(let publication): publication.move = newValue
      case .request(let request): request.move = newValue
      }
    }
  }
}

/// The owners that wait for a stream, in the order in which they came.
struct AwaitingStreams {
  /// What an owner waits for.
  enum Condition {
    case connection
    /// The end of a delay.
    case timer(TimerToken)
  }

  private var owners: [ObjectIdentifier: (order: UInt64, attachment: Attachment, condition: Condition)] = [:]
  private var last: UInt64 = 0

  mutating func add(_ attachment: Attachment, until condition: Condition = .connection) {
    last += 1
    owners[ObjectIdentifier(attachment.owner)] = (last, attachment, condition)
  }

  func contains(_ owner: AnyObject) -> Bool {
    owners[ObjectIdentifier(owner)] != nil
  }

  /// - Returns: what the owner waited for; nil if it didn't.
  @discardableResult
  mutating func remove(_ owner: AnyObject) -> Condition? {
    owners.removeValue(forKey: ObjectIdentifier(owner))?.condition
  }

  /// Removes the owners that wait for a connection.
  mutating func removeConnectable() -> [Attachment] {
    let all = owners
    owners = all.filter { if case .timer = $0.value.condition { true } else { false } }
    return all.values.filter { if case .connection = $0.condition { true } else { false } }
      .sorted { $0.order < $1.order }.map(\.attachment)
  }

  mutating func removeAll() -> [(Attachment, Condition)] {
    exchange(&owners, with: [:]).values.sorted { $0.order < $1.order }.map { ($0.attachment, $0.condition) }
  }
}
