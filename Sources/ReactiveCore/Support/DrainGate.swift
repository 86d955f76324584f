import Synchronization

/// Lets one caller at a time deliver to a subscriber that several upstreams share.
///
/// The caller that holds the gate owns the subscriber. A caller that finds the gate held queues its work and requests a drain;
/// the holder drains the queue before it leaves. So no caller waits, the subscriber gets one call at a time, and the stack does
/// not grow when a delivery leads to more deliveries. After the end the holder releases the subscriber; if the gate isn't held,
/// the caller that ended it does.
///
///     if gate.enter() {
///       …deliver…
///       if !gate.leave() { …drain the queue until leave() succeeds… }
///     } else {
///       …queue the work, under a lock…
///       if gate.requestDrain() { …drain the queue until leave() succeeds… }
///     }
@usableFromInline
struct DrainGate: ~Copyable {
  @usableFromInline let word: Atomic<UInt8>

  /// A caller holds the gate.
  @inlinable static var busy: UInt8 { 1 }
  /// Another caller has queued work for the holder.
  @inlinable static var drainRequested: UInt8 { 2 }
  /// Nothing will be delivered any more.
  @inlinable static var ended: UInt8 { 4 }

  /// The caller that has to release the subscriber.
  @usableFromInline
  enum Releaser {
    /// The caller that ended the gate: it isn't held.
    case caller
    /// The caller that holds the gate.
    case holder
    /// None: the gate had ended before.
    case alreadyReleased
  }

  /// An open gate.
  ///
  /// - Parameter isBusy: Whether the caller holds the gate from the start.
  @inlinable init(isBusy: Bool = false) { word = Atomic(isBusy ? Self.busy : 0) }

  @inlinable var isEnded: Bool { word.load(ordering: .acquiring) & Self.ended != 0 }

  /// Takes the gate, unless it is held or has ended.
  @inlinable
  func enter() -> Bool {
    word.compareExchange(expected: 0, desired: Self.busy, ordering: .acquiring).exchanged
  }

  /// Takes the gate, or has the holder drain the queue.
  ///
  /// - Returns: Whether the caller holds the gate now and must drain the queue itself.
  @inlinable
  func requestDrain() -> Bool {
    var current = word.load(ordering: .relaxed)
    while true {
      if current & Self.ended != 0 { return false }
      let isBusy = current & Self.busy != 0
      let (isOurs, actual) = word.weakCompareExchange(
        expected: current, desired: isBusy ? current | Self.drainRequested : Self.busy,
        ordering: .acquiringAndReleasing)
      if isOurs { return !isBusy }
      current = actual
    }
  }

  /// Gives up the gate, unless a drain was requested or the gate has ended. Called by the holder.
  @inlinable
  func leave() -> Bool {
    word.compareExchange(expected: Self.busy, desired: 0, ordering: .releasing).exchanged
  }

  /// Begins a pass over the queue. Called by the holder, before it reads the queue.
  ///
  /// - Returns: Whether the gate has not ended. Otherwise the caller keeps the gate and releases the subscriber.
  @inlinable
  func beginPass() -> Bool {
    word.bitwiseAnd(~Self.drainRequested, ordering: .acquiringAndReleasing).oldValue & Self.ended == 0
  }

  /// Ends it.
  @inlinable
  func end() -> Releaser {
    let old = word.bitwiseOr(Self.ended, ordering: .acquiringAndReleasing).oldValue
    if old & Self.ended != 0 { return .alreadyReleased }
    return old & Self.busy != 0 ? .holder : .caller
  }
}
