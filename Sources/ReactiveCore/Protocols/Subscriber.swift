import Synchronization

/// A type that receives values from a publisher, at its own pace.
///
/// The calls below never overlap for one subscription. They may come from any thread.
public protocol Subscriber<Input, Failure>: CustomCombineIdentifierConvertible {
  /// The kind of values received.
  associatedtype Input
  /// The kind of error a stream may end with.
  associatedtype Failure: Error

  /// Hands the subscriber its subscription. It asks for values through the subscription, now or later.
  func receive(subscription: any Subscription)

  /// Delivers one value.
  ///
  /// - Returns: How many more values to deliver, in addition to earlier requests.
  func receive(_ input: Input) -> Subscribers.Demand

  /// Delivers the end of the stream. Nothing follows.
  func receive(completion: Subscribers.Completion<Failure>)
}

extension Subscriber where Input == Void {
  /// Delivers the value that carries no information.
  public func receive() -> Subscribers.Demand { receive(()) }
}

/// The connection of one subscriber to one publisher.
///
/// Both functions may be called from any thread, at any time, also from within the subscriber's own `receive`.
/// After ``Cancellable/cancel()`` has returned, nothing more is delivered on the calling thread; a value that another
/// thread is delivering at that moment may still arrive. Cancelling delivers no completion.
public protocol Subscription: Cancellable, CustomCombineIdentifierConvertible {
  /// Requests more values, in addition to earlier requests.
  func request(_ demand: Subscribers.Demand)
}

extension Subscription {
  /// Requests values, if there is demand; cancels this subscription if the demand is nil, because it isn't accepted.
  @inlinable @inline(__always)
  func start(requesting demand: Subscribers.Demand?) {
    guard let demand else { return cancel() }
    if demand > .none { request(demand) }
  }
}

/// An activity that can be stopped.
public protocol Cancellable {
  /// Stops it and releases what it held. Further calls have no effect.
  func cancel()
}

extension Cancellable {
  /// Keeps this in a collection, to be cancelled when the collection releases it.
  public func store<C: RangeReplaceableCollection>(in collection: inout C) where C.Element == AnyCancellable {
    AnyCancellable(self).store(in: &collection)
  }

  /// Keeps this in a set, to be cancelled when the set releases it.
  public func store(in set: inout Set<AnyCancellable>) { AnyCancellable(self).store(in: &set) }
}

/// A type whose instances have identifiers, for a log for example.
public protocol CustomCombineIdentifierConvertible {
  /// The identity of this instance.
  var combineIdentifier: CombineIdentifier { get }
}

extension CustomCombineIdentifierConvertible where Self: AnyObject {
  /// The identity of the object.
  @inlinable
  public var combineIdentifier: CombineIdentifier { CombineIdentifier(self) }
}

/// The identity of a publisher stream.
public struct CombineIdentifier: Hashable, CustomStringConvertible, Sendable {
  private let rawValue: UInt64

  private static let last = Atomic<UInt64>(0)

  /// An identifier that no other call returns.
  public init() { rawValue = CombineIdentifier.last.add(1, ordering: .relaxed).oldValue }

  /// The identifier of an object, valid for as long as the object lives.
  public init(_ object: AnyObject) { rawValue = UInt64(UInt(bitPattern: ObjectIdentifier(object))) }

  /// The identifier of something that stays at an address for as long as it lives.
  @usableFromInline
  init(address: UnsafeRawPointer) { rawValue = UInt64(UInt(bitPattern: address)) }

  /// The identifier as a hexadecimal number.
  public var description: String { "0x" + String(rawValue, radix: 16) }
}

/// The types of this module that act as subscribers, and the vocabulary they use.
public enum Subscribers {}
