/// An object that publishes when it is about to change.
///
/// Its `@Published` properties, those of superclasses included, do so by themselves; the program publishes other changes by
/// `objectWillChange.send()`.
///
///     final class Contact: ObservableObject {
///       @Published var name = "Ada"
///       var age = 36 {
///         willSet { objectWillChange.send() }
///       }
///     }
public protocol ObservableObject: AnyObject {
  /// The publisher of changes.
  associatedtype ObjectWillChangePublisher: Publisher = ObservableObjectPublisher
  where ObjectWillChangePublisher.Failure == Never

  /// Sends before each change.
  var objectWillChange: ObjectWillChangePublisher { get }
}

extension ObservableObject where ObjectWillChangePublisher == ObservableObjectPublisher {
  /// Sends before each change of a `@Published` property. The same for as long as the object lives.
  ///
  /// The properties are found by reflection: all stored properties are read when this is used first, so no
  /// other thread may be setting one then that isn't published. Those of a type that has a mirror of its own
  /// are found if that mirror shows them.
  public var objectWillChange: ObservableObjectPublisher {
    var properties: [any ObservedProperty] = []
    var mirror: Mirror? = Mirror(reflecting: self)
    while let current = mirror {
      for child in current.children {
        guard let property = child.value as? any ObservedProperty else { continue }
        if let publisher = property.objectWillChange { return publisher }
        properties.append(property)
      }
      mirror = current.superclassMirror
    }
    return properties.isEmpty
      ? PublisherTable.shared.publisher(of: self) : PublisherTable.shared.install(in: properties)
  }
}

/// Where the publishers of objects are made, one for each.
///
/// They are kept in the published properties. For an object that has none, they are kept here, beside a weak
/// reference to the object. References to objects that are gone are removed whenever there are twice as many
/// entries as after the last time.
private final class PublisherTable: @unchecked Sendable {
  // Sendable because the lock guards all fields.

  static let shared = PublisherTable()

  private struct Entry {
    weak var object: AnyObject?
    let publisher: ObservableObjectPublisher
  }

  private let lock = Lock()
  private var entries: [ObjectIdentifier: Entry] = [:]  // guarded by the lock
  private var limit = 64  // guarded by the lock: the count at which stale entries are removed next

  /// Installs a new publisher in all properties of an object, unless another thread has just done so.
  func install(in properties: [any ObservedProperty]) -> ObservableObjectPublisher {
    let candidate = ObservableObjectPublisher()
    return lock.withLock {
      let publisher = properties[0].objectWillChange ?? candidate
      // Backwards: if the first property has a publisher, all have.
      for property in properties.reversed() { property.install(publisher) }
      return publisher
    }
  }

  /// The publisher of an object without published properties.
  func publisher(of object: AnyObject) -> ObservableObjectPublisher {
    let candidate = ObservableObjectPublisher()
    // Other threads may release these objects meanwhile, so that the last reference is here; not to be released under the lock.
    var alive: [AnyObject] = []
    var released: [Entry] = []
    let publisher = lock.withLock {
      let identifier = ObjectIdentifier(object)
      if let entry = entries[identifier], entry.object === object { return entry.publisher }
      if let stale = entries.updateValue(Entry(object: object, publisher: candidate), forKey: identifier) {
        released.append(stale)
      }
      guard entries.count >= limit else { return candidate }
      for (identifier, entry) in entries {
        if let object = entry.object {
          alive.append(object)
        } else {
          entries[identifier] = nil
          released.append(entry)
        }
      }
      limit = Swift.max(64, entries.count * 2)
      return candidate
    }
    withExtendedLifetime(alive) {}

    withExtendedLifetime(released) {}
    return publisher
  }
}

/// Sends to its subscribers before an object changes.
///
/// The first request of a subscriber stands for unlimited demand. May be used from any thread.
public final class ObservableObjectPublisher: Publisher, Sendable {
  public typealias Output = Void
  public typealias Failure = Never

  private let subject = PassthroughSubject<Void, Never>()

  /// A publisher without subscribers.
  public init() {}

  public func receive<S: Subscriber>(subscriber: S) where S.Input == Void, S.Failure == Never {
    subject.receive(subscriber: ObjectWillChangeSubscriber(downstream: subscriber))
  }

  /// Sends to the subscribers.
  public func send() { subject.send() }
}

/// Passes the signal on; the demand of downstream makes no difference.
private struct ObjectWillChangeSubscriber<Downstream: Subscriber>: PassThroughSubscriber
where Downstream.Input == Void, Downstream.Failure == Never {

  typealias Input = Void
  typealias Failure = Never

  let downstream: Downstream
  let combineIdentifier = CombineIdentifier()

  func receive(subscription: any Subscription) {
    downstream.receive(subscription: ObjectWillChangeSubscription(subscription, downstream: downstream))
  }

  func receive(_ input: Void) -> Subscribers.Demand {
    _ = downstream.receive(input)
    return .none
  }
}

private final class ObjectWillChangeSubscription<Downstream>: Subscription, OperatorPart {

  private let upstream: any Subscription
  private let lock = Lock()
  private var downstream: Downstream?  // guarded by the lock; for the mirror alone

  init(_ upstream: any Subscription, downstream: Downstream) {
    self.upstream = upstream
    self.downstream = downstream
  }

  func request(_ demand: Subscribers.Demand) { upstream.request(.unlimited) }

  func cancel() {
    upstream.cancel()
    _ = lock.withLock { downstream.take() }
  }

  var description: String { "ObservableObjectPublisher" }

  var customMirror: Mirror {
    let downstream = lock.withLock { self.downstream }
    return mirror(("downstream", downstream as Any))
  }
}
