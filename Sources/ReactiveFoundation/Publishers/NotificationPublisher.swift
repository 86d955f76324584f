public import Foundation
public import ReactiveCore

extension NotificationCenter {
  /// A publisher of the notifications of one name.
  ///
  ///     let changes = NotificationCenter.default.publisher(for: .init("saved"))
  ///     let subscription = changes.sink { print($0.name) }
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - object: The object that posts them; nil for any.
  public func publisher(for name: Notification.Name, object: AnyObject? = nil) -> Publisher {
    Publisher(center: self, name: name, object: object)
  }

  /// Delivers the notifications of one name, on the threads that post them.
  ///
  /// A notification that is posted while the subscriber has asked for none is missed. A notification that is posted
  /// during the delivery of another one, by another thread or by the subscriber, is delivered right after it by the
  /// delivering thread. In Combine it is delivered within the call that posts it.
  public struct Publisher: ReactiveCore.Publisher {
    public typealias Output = Notification
    public typealias Failure = Never

    /// Where the notifications are posted.
    public let center: NotificationCenter
    /// Their name.
    public let name: Notification.Name
    /// The object that posts them; nil for any.
    public let object: AnyObject?

    /// A publisher of the notifications of one name.
    public init(center: NotificationCenter, name: Notification.Name, object: AnyObject? = nil) {
      self.center = center
      self.name = name
      self.object = object
    }

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Notification, S.Failure == Never {
      subscriber.receive(subscription: NotificationSubscription(self, downstream: AnySubscriber(subscriber)))
    }
  }
}

extension NotificationCenter.Publisher: Equatable {
  /// Whether both observe the same centre for the same name and object.
  public static func == (lhs: Self, rhs: Self) -> Bool {
    lhs.center === rhs.center && lhs.name == rhs.name && lhs.object === rhs.object
  }
}

/// Observes from when it is made until it is cancelled or released.
private final class NotificationSubscription: Subscription, OperatorPart, @unchecked Sendable {
  // Sendable because the lock guards all that changes, and one thread at a time delivers.

  typealias Downstream = AnySubscriber<Notification, Never>

  private let name: Notification.Name

  private let lock = Lock()
  // Guarded by the lock.
  private var center: NotificationCenter?
  private var object: AnyObject?
  private var downstream: Downstream?
  private var observation: (any NSObjectProtocol)?
  private var demand = Subscribers.Demand.none
  private var waiting: [Notification] = []  // within demand, and already taken off it
  private var isDelivering = false

  init(_ publisher: NotificationCenter.Publisher, downstream: Downstream) {
    name = publisher.name
    center = publisher.center
    object = publisher.object
    self.downstream = downstream
    observation = publisher.center.addObserver(forName: name, object: object, queue: nil) { [weak self] in
      self?.receive($0)
    }
  }

  deinit {
    if let observation { center?.removeObserver(observation) }
  }

  private func receive(_ notification: Notification) {
    let isDeliverer = lock.withLock {
      guard downstream != nil, demand > 0 else { return false }
      demand -= 1
      waiting.append(notification)
      defer { isDelivering = true }
      return !isDelivering
    }
    if isDeliverer { deliver() }
  }

  private func deliver() {
    while true {
      var batch: [Notification] = []
      let isIdle = lock.withLock {
        swap(&batch, &waiting)
        if batch.isEmpty { isDelivering = false }
        return batch.isEmpty
      }
      if isIdle { return }
      for notification in batch {
        guard let downstream = lock.withLock({ self.downstream }) else { break }
        let more = downstream.receive(notification)
        lock.withLock { demand += more }
      }
    }
  }

  func request(_ demand: Subscribers.Demand) {
    lock.withLock { self.demand += demand }
  }

  func cancel() {
    let (center, observation, released) = lock.withLock {
      let released = (object.take(), downstream.take(), exchange(&waiting, with: []))
      return (self.center.take(), self.observation.take(), released)
    }
    if let observation { center?.removeObserver(observation) }
    withExtendedLifetime(released) {}
  }

  var description: String { "NotificationCenter Observer" }

  var customMirror: Mirror {
    let (center, object, demand) = lock.withLock { (self.center, self.object, self.demand) }
    return mirror(("center", center as Any), ("name", name), ("object", object as Any), ("demand", demand))
  }
}
