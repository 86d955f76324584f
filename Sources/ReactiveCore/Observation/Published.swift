/// Publishes a property of a class: `$name` is a publisher of the values of `name`.
///
/// A subscriber gets the current value when it asks for values, then each new one *before* the property
/// changes: a subscriber that reads the property while it receives a value gets the one before. One that has asked for fewer
/// values than there were gets the latest when it asks again.
///
///     final class Weather {
///       @Published var temperature = 20.0
///     }
///     let weather = Weather()
///     let subscription = weather.$temperature.sink { print("now \($0), before \(weather.temperature)") }
///     weather.temperature = 25
///
/// The property may be read and set from any thread. A value that is set during the publication of another one, by a subscriber
/// or by another thread, takes effect at once. The publishing caller publishes it next, so the last assignment wins, unlike in
/// Combine. Unlike there, copies of the wrapper share their state.
@propertyWrapper
public struct Published<Value> {
  let store: PublishedStore<Value>

  /// A property with a first value; what `@Published var name = value` stands for.
  public init(wrappedValue: Value) { store = PublishedStore(wrappedValue) }

  /// The same, for use in initialisers: `_name = Published(initialValue: value)`.
  public init(initialValue: Value) { self.init(wrappedValue: initialValue) }

  /// The publisher, `$name`. Setting it has no effect; that it can be set lets `assign(to:)` take it.
  public var projectedValue: Publisher {
    get { Publisher(store: store) }
    nonmutating set {}

  }

  /// Not available: properties of structures cannot be published.
  @available(*, unavailable, message: "@Published is only available on properties of classes")
  public var wrappedValue: Value {
    get { fatalError("@Published is only available on properties of classes") }
    set { fatalError("@Published is only available on properties of classes") }
  }

  /// The property of an object; called by the compiler.
  public static subscript<EnclosingSelf: AnyObject>(
    _enclosingInstance object: EnclosingSelf,
    wrapped wrappedKeyPath: ReferenceWritableKeyPath<EnclosingSelf, Value>,
    storage storageKeyPath: ReferenceWritableKeyPath<EnclosingSelf, Published<Value>>
  ) -> Value {
    get { object[keyPath: storageKeyPath].store.value }
    set { object[keyPath: storageKeyPath].store.set(newValue) }
  }

  /// The values of a published property. Never ends while it is referenced.
  public struct Publisher: ReactiveCore.Publisher {
    public typealias Output = Value
    public typealias Failure = Never

    let store: PublishedStore<Value>

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Value, S.Failure == Never {
      store.subject.receive(subscriber: PublishedSubscriber<Value, S>(downstream: subscriber))
    }
  }
}

// The store guards its state. Values cross threads, hence the condition.
extension Published: @unchecked Sendable where Value: Sendable {}
extension Published.Publisher: @unchecked Sendable where Value: Sendable {}

/// Passes everything on; gives the subscription its name.
private struct PublishedSubscriber<Input, Downstream: Subscriber>: PassThroughSubscriber
where Downstream.Input == Input, Downstream.Failure == Never {
  typealias Failure = Never

  let downstream: Downstream
  let combineIdentifier = CombineIdentifier()

  func receive(subscription: any Subscription) {
    downstream.receive(subscription: PublishedSubscription(subscription))
  }

  func receive(_ input: Input) -> Subscribers.Demand { downstream.receive(input) }
}

private final class PublishedSubscription: Subscription, OperatorPart {
  private let upstream: any Subscription

  init(_ upstream: any Subscription) { self.upstream = upstream }

  func request(_ demand: Subscribers.Demand) { upstream.request(demand) }

  func cancel() { upstream.cancel() }

  var description: String { "PublishedSubject" }

  var customMirror: Mirror { Mirror(self, children: Mirror(reflecting: upstream).children) }
}

/// Sets a property that it does not keep alive; kept by the property itself.
private final class AssignToPublished<Value>: Subscriber, Cancellable {
  typealias Input = Value
  typealias Failure = Never

  private let lock = Lock()
  private weak var store: PublishedStore<Value>?
  private var subscription: (any Subscription)?  // guarded by the lock
  private var isAttached = false  // guarded by the lock

  init(_ store: PublishedStore<Value>) { self.store = store }

  func receive(subscription: any Subscription) {
    let isAccepted = lock.withLock {
      if isAttached { return false }
      isAttached = true
      self.subscription = subscription
      return true
    }
    guard isAccepted, let store else { return subscription.cancel() }
    store.keep(self, as: combineIdentifier)
    subscription.request(.unlimited)
  }

  func receive(_ input: Value) -> Subscribers.Demand {
    if lock.withLock({ subscription != nil }) { store?.set(input) }
    return .none
  }

  func receive(completion: Subscribers.Completion<Never>) {
    _ = take()
    store?.forget(combineIdentifier)
  }

  func cancel() { take()?.cancel() }

  private func take() -> (any Subscription)? {
    lock.withLock { subscription.take() }
  }
}

extension Publisher where Failure == Never {
  /// Sets a published property to each value: `publisher.assign(to: &object.$name)`.
  ///
  /// Asks for everything. The subscription lives as long as the property, and is cancelled when that is
  /// released; the object is not kept alive by it.
  public func assign(to published: inout Published<Output>.Publisher) {
    subscribe(AssignToPublished(published.store))
  }
}
