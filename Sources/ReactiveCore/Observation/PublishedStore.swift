/// The value of a published property, and the publishers of its changes.
final class PublishedStore<Value> {
  private let lock = Lock()
  // Guarded by the lock.
  private var property: Value
  private var published: CurrentValueSubject<Value, Never>?  // made for the first subscriber
  private var change: ObservableObjectPublisher?
  private var sources: [CombineIdentifier: any Cancellable] = [:]

  init(_ value: Value) { property = value }

  deinit {
    for (_, source) in sources {
      source.cancel()
    }
  }

  var value: Value { lock.withLock { property } }

  /// Publishes a value, then lets the property have it.
  func set(_ value: Value) {
    let (change, subject): (ObservableObjectPublisher?, CurrentValueSubject<Value, Never>?) =
      lock.withLock { (self.change, published) }
    change?.send()
    if let subject {
      publish(value, through: subject)
      return
    }
    // The replaced value is released outside the lock: its deinit may run any code.
    var old = value
    var late: CurrentValueSubject<Value, Never>?
    lock.withLock {
      late = published
      if late == nil { swap(&old, &property) }
    }
    if let late { publish(value, through: late) }
  }

  private func publish(_ value: Value, through subject: CurrentValueSubject<Value, Never>) {
    subject.send(value)
    // Not `value`: a value set meanwhile counts, and was the later. Both are read and written under the lock,
    // so that the property does not go back.
    var old = value
    lock.withLock {
      var latest = subject.value
      swap(&latest, &property)
      swap(&latest, &old)
    }
  }

  /// The subject that publishes the values. Its value is the property's value, or its next value during an assignment.
  var subject: CurrentValueSubject<Value, Never> {
    lock.withLock {
      if let published { return published }
      let made = CurrentValueSubject<Value, Never>(property)
      published = made
      return made
    }
  }

  /// Keeps a source of values until it completes or this is released.
  func keep(_ source: any Cancellable, as identifier: CombineIdentifier) {
    lock.withLock { sources[identifier] = source }
  }

  func forget(_ identifier: CombineIdentifier) {
    let source = lock.withLock { sources.removeValue(forKey: identifier) }
    withExtendedLifetime(source) {}
  }
}

/// A published property as its object sees it.
protocol ObservedProperty {
  /// The publisher that sends before the property changes.
  var objectWillChange: ObservableObjectPublisher? { get }

  /// Sets that publisher.
  func install(_ publisher: ObservableObjectPublisher)
}

extension Published: ObservedProperty {
  var objectWillChange: ObservableObjectPublisher? { store.objectWillChange }

  func install(_ publisher: ObservableObjectPublisher) { store.install(publisher) }
}

extension PublishedStore {
  fileprivate var objectWillChange: ObservableObjectPublisher? { lock.withLock { change } }

  fileprivate func install(_ publisher: ObservableObjectPublisher) {
    lock.withLock { if change == nil { change = publisher } }
  }
}
