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

  /// The state of reopening its stream while its topic moves; nil before the first move.
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

  /// Notes that the stream has ended without a final answer of the topic's node.
  func doubt(at now: MonotonicTime) {
    switch self {
    case .subscription(let subscription): subscription.doubts.add(at: now)
    case .publication(let publication): publication.doubts.add(at: now)
    case .request: break
    }
  }

  /// Another opening has taken the stream's place; see ``DoubtfulOpenings/explain(at:)``.
  func explainsLoss(at now: MonotonicTime) -> Bool {
    switch self {
    case .subscription(let subscription): subscription.doubts.explain(at: now)
    case .publication(let publication): publication.doubts.explain(at: now)
    case .request: false
    }
  }
}

/// The owners that wait for a stream, in the order in which they came.
struct AwaitingStreams {
  /// The condition for which an owner waits.
  enum Condition {
    case connection
    /// A connection to a node.
    case node(DirectLink)
    /// The end of a delay.
    case timer(TimerToken)
  }

  private var owners: [ObjectIdentifier: (order: UInt64, attachment: Attachment, condition: Condition)] = [:]
  private var last: UInt64 = 0

  mutating func add(_ attachment: Attachment, until condition: Condition = .connection) {
    last += 1
    owners[ObjectIdentifier(attachment.owner)] = (last, attachment, condition)
  }

  var publications: [Publication] {
    owners.values.compactMap {
      if case .publication(let publication) = $0.attachment { publication } else { nil }
    }
  }

  func contains(_ owner: AnyObject) -> Bool {
    owners[ObjectIdentifier(owner)] != nil
  }

  /// - Returns: the condition for which the owner waited; nil if it didn't.
  @discardableResult
  mutating func remove(_ owner: AnyObject) -> Condition? {
    owners.removeValue(forKey: ObjectIdentifier(owner))?.condition
  }

  /// Removes the owners that wait for one of these conditions.
  mutating func removeAll(where isMet: (Condition) -> Bool = { _ in true }) -> [(Attachment, Condition)] {
    let met = owners.values.filter { isMet($0.condition) }.sorted { $0.order < $1.order }
    for owner in met { remove(owner.attachment.owner) }
    return met.map { ($0.attachment, $0.condition) }
  }
}
