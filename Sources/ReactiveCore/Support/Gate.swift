import Synchronization

/// Lets one caller at a time deliver to a subscriber that several upstreams share.
///
/// Whoever is inside owns the subscriber. A caller that finds another inside leaves its work where the one inside will look for
/// it, and knocks. So nobody waits, the subscriber gets one thing at a time, and the stack does not grow when
/// delivering leads to more deliveries. After the end, the one inside, or else whoever ended it, releases the subscriber.
///
///     if gate.enter() {
///       …deliver…
///       if !gate.leave() { …look for work until leave() succeeds… }
///     } else {
///       …put the work down, under a lock…
///       if gate.knock() { …look for work until leave() succeeds… }
///     }
@usableFromInline
struct Gate: ~Copyable {
  @usableFromInline let word: Atomic<UInt8>

  /// Someone is inside.
  @inlinable static var busy: UInt8 { 1 }
  /// Someone has knocked.
  @inlinable static var knocked: UInt8 { 2 }
  /// Nothing will be delivered any more.
  @inlinable static var ended: UInt8 { 4 }

  /// Who has to release the subscriber.
  @usableFromInline
  enum Custody {
    /// The caller, for nobody is inside.
    case caller
    /// Whoever is inside.
    case insider
    /// It had ended before.
    case nobody
  }

  /// An open gate.
  ///
  /// - Parameter isBusy: Whether the caller is inside from the start.
  @inlinable
  init(isBusy: Bool = false) {
    word = Atomic(isBusy ? Self.busy : 0)
  }

  @inlinable var isEnded: Bool { word.load(ordering: .acquiring) & Self.ended != 0 }

  /// Goes inside if nobody is and it has not ended.
  @inlinable
  func enter() -> Bool {
    word.compareExchange(expected: 0, desired: Self.busy, ordering: .acquiring).exchanged
  }

  /// Goes inside, or tells the one inside to look for work.
  ///
  /// - Returns: Whether the caller is inside now and must look for work itself.
  @inlinable
  func knock() -> Bool {
    var current = word.load(ordering: .relaxed)
    while true {
      if current & Self.ended != 0 { return false }
      let isBusy = current & Self.busy != 0
      let (isOurs, actual) = word.weakCompareExchange(
        expected: current, desired: isBusy ? current | Self.knocked : Self.busy,
        ordering: .acquiringAndReleasing)
      if isOurs { return !isBusy }
      current = actual
    }
  }

  /// Goes outside, unless someone has knocked or it has ended. Called inside.
  @inlinable
  func leave() -> Bool {
    word.compareExchange(expected: Self.busy, desired: 0, ordering: .releasing).exchanged
  }

  /// Answers the knocking. Called inside, before looking for work.
  ///
  /// - Returns: Whether it has not ended. Otherwise the caller stays inside for good and releases the subscriber.
  @inlinable
  func answer() -> Bool {
    word.bitwiseAnd(~Self.knocked, ordering: .acquiringAndReleasing).oldValue & Self.ended == 0
  }

  /// Ends it.
  @inlinable
  func end() -> Custody {
    let old = word.bitwiseOr(Self.ended, ordering: .acquiringAndReleasing).oldValue
    if old & Self.ended != 0 { return .nobody }
    return old & Self.busy != 0 ? .insider : .caller
  }
}
