/// The owner of a stream: a subscription, a publication or a request. While there is no connection, owners await the next one.
enum Attachment {
  case subscription(RemoteSubscription)
  case publication(Publication)
  case request(Request)

  fileprivate var id: ObjectIdentifier {
    switch self {
    case .subscription(let subscription): ObjectIdentifier(subscription)
    case .publication(let publication): ObjectIdentifier(publication)
    case .request(let request): ObjectIdentifier(request)
    }
  }
}

/// The owners of streams that await a connection, in the order in which they came.
struct AwaitingConnection {
  private var owners: [ObjectIdentifier: (order: UInt64, attachment: Attachment)] = [:]
  private var last: UInt64 = 0

  mutating func add(_ attachment: Attachment) {
    last += 1
    owners[attachment.id] = (last, attachment)
  }

  func contains(_ owner: AnyObject) -> Bool {
    owners[ObjectIdentifier(owner)] != nil
  }

  mutating func remove(_ owner: AnyObject) {
    owners[ObjectIdentifier(owner)] = nil
  }

  mutating func removeAll() -> [Attachment] {
    exchange(&owners, with: [:]).values.sorted { $0.order < $1.order }.map(\.attachment)
  }
}
