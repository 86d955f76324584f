/// The connection of one subscriber to one publisher.
///
/// Both functions may be called from any thread, at any time, also from within the subscriber's own `receive`.
/// After ``Cancellable/cancel()`` has returned, nothing more is delivered on the calling thread; a value that another
/// thread is delivering at that moment may still arrive. Cancelling does not tell the subscriber.
public protocol Subscription: Cancellable, CustomCombineIdentifierConvertible {
  /// Asks for more values, on top of what was asked for before.
  func request(_ demand: Subscribers.Demand)
}
