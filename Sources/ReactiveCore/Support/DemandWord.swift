import Synchronization

/// Whether a caller delivers, the demand, and whether the stream has ended, in one word.
///
/// A source that has its values ready delivers them from within `request`. A request that comes meanwhile, from the subscriber
/// or from another thread, is added up here for the caller that is delivering. So the stack does not grow with the stream and
/// the subscriber gets one value at a time. After the end, the caller that was delivering, or else the caller that ended the
/// stream, owns the source's contents and releases them.
@usableFromInline
struct DemandWord: ~Copyable {
  /// Bit 63: ended. Bit 62: a caller is delivering. The rest: demand, all ones for unlimited.
  @usableFromInline let word = Atomic<UInt64>(0)

  @inlinable static var ended: UInt64 { 1 << 63 }
  @inlinable static var running: UInt64 { 1 << 62 }
  @inlinable static var unlimited: UInt64 { (1 << 62) - 1 }

  @inlinable init() {}

  /// The demand as counted here.
  @inlinable
  static func count(_ demand: Subscribers.Demand) -> UInt64 { Swift.min(UInt64(demand.rawValue), unlimited) }

  /// The sum of two counts.
  @inlinable
  static func sum(_ lhs: UInt64, _ rhs: UInt64) -> UInt64 { Swift.min(lhs + rhs, unlimited) }

  @inlinable var isEnded: Bool { word.load(ordering: .acquiring) & Self.ended != 0 }

  /// Adds demand.
  ///
  /// - Returns: Whether the caller must deliver.
  @inlinable
  func request(_ demand: Subscribers.Demand) -> Bool {
    let more = Self.count(demand)
    if more == 0 { return false }
    var current = word.load(ordering: .relaxed)
    while true {
      if current & Self.ended != 0 { return false }
      let sum = Self.sum(current & Self.unlimited, more)
      let (isOurs, actual) = word.weakCompareExchange(
        expected: current, desired: sum | Self.running, ordering: .acquiringAndReleasing)
      if isOurs { return current & Self.running == 0 }
      current = actual
    }
  }

  /// Takes all demand. Called by the caller that delivers.
  ///
  /// - Returns: The count, or nil if the stream has ended.
  @inlinable
  func take() -> UInt64? {
    let current = word.bitwiseAnd(~Self.unlimited, ordering: .acquiringAndReleasing).oldValue
    return current & Self.ended == 0 ? current & Self.unlimited : nil
  }

  /// Stops delivering, unless there is new demand or the stream has ended.
  @inlinable
  func pause() -> Bool {
    word.compareExchange(expected: Self.running, desired: 0, ordering: .acquiringAndReleasing).exchanged
  }

  /// Ends the stream.
  ///
  /// - Returns: Whether no caller is delivering and the stream had not ended, so that this caller owns what is to be released.
  @inlinable
  func end() -> Bool {
    let old = word.bitwiseOr(Self.ended, ordering: .acquiringAndReleasing).oldValue
    return old & (Self.ended | Self.running) == 0
  }

  /// The demand, for mirrors.
  var demand: Subscribers.Demand {
    let count = word.load(ordering: .relaxed) & Self.unlimited
    return count == Self.unlimited ? .unlimited : .max(Int(count))
  }
}

/// How many values may still be delivered: added to from any thread, taken from by the caller that delivers.
@usableFromInline
struct DemandCount: ~Copyable {
  @usableFromInline let count = Atomic<UInt>(0)

  @inlinable init() {}

  /// The demand that isn't taken yet.
  @inlinable var value: Subscribers.Demand { Subscribers.Demand(rawValue: count.load(ordering: .acquiring)) }

  @inlinable
  func add(_ more: Subscribers.Demand) {
    if more == .none { return }
    var current = count.load(ordering: .relaxed)
    while true {
      let sum = Subscribers.Demand(rawValue: current) + more
      let (isDone, actual) = count.weakCompareExchange(
        expected: current, desired: sum.rawValue, ordering: .acquiringAndReleasing)
      if isDone { return }
      current = actual
    }
  }

  /// Takes one.
  ///
  /// - Returns: Whether there was one.
  @inlinable
  func take() -> Bool {
    var current = count.load(ordering: .acquiring)
    while current != Subscribers.Demand.unlimited.rawValue {
      if current == 0 { return false }
      let (isDone, actual) = count.weakCompareExchange(
        expected: current, desired: current - 1, ordering: .acquiringAndReleasing)
      if isDone { return true }
      current = actual
    }
    return true
  }
}
