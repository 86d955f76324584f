/// Cancels what it holds when it is cancelled or released, whichever comes first, once.
///
/// May be cancelled and released on any thread; the cancellation runs there.
public final class AnyCancellable: Cancellable, Hashable {
  private let lock = Lock()
  private var action: (() -> Void)?  // guarded by the lock

  /// Runs a function on cancellation.
  public init(_ cancel: @escaping () -> Void) { action = cancel }

  /// Cancels something else on cancellation.
  public init<C: Cancellable>(_ canceller: C) {
    action = { canceller.cancel() }
  }

  deinit { action?() }

  /// Runs the cancellation if it has not run before, then releases it.
  public func cancel() {
    var action: (() -> Void)?
    lock.withLock { swap(&action, &self.action) }
    action?()
  }

  /// Keeps this in a collection, to be cancelled when the collection releases it.
  public func store<C: RangeReplaceableCollection>(in collection: inout C) where C.Element == AnyCancellable {
    collection.append(self)
  }

  /// Keeps this in a set, to be cancelled when the set releases it.
  public func store(in set: inout Set<AnyCancellable>) { set.insert(self) }

  /// Whether both are the same object.
  public static func == (lhs: AnyCancellable, rhs: AnyCancellable) -> Bool { lhs === rhs }

  /// Adds the object's identity to a hasher.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

// The lock guards the only mutable field. The caller that takes the action out runs it, outside the lock; the subscriptions of
// this module may be cancelled from any thread.
extension AnyCancellable: @unchecked Sendable {}
