/// Runs every function at once, on the calling thread; for it, no time ever passes.
public struct ImmediateScheduler: Scheduler, Sendable {
  /// The only moment of this scheduler.
  public struct SchedulerTimeType: Strideable, Sendable {
    /// A length of time; kept, but without effect.
    public struct Stride: ExpressibleByFloatLiteral, Comparable, SignedNumeric, Codable,
      SchedulerTimeIntervalConvertible, Sendable
    {
      /// The length, in no particular unit.
      public var magnitude: Int

      /// A length of time.
      @inlinable
      public init(_ value: Int) { magnitude = value }

      @inlinable
      public init(integerLiteral value: Int) { self.init(value) }

      @inlinable
      public init(floatLiteral value: Double) { self.init(Int(value)) }

      @inlinable
      public init?<T: BinaryInteger>(exactly source: T) {
        guard let value = Int(exactly: source) else { return nil }
        self.init(value)
      }

      @inlinable
      public static func < (lhs: Stride, rhs: Stride) -> Bool { lhs.magnitude < rhs.magnitude }

      @inlinable
      public static func + (lhs: Stride, rhs: Stride) -> Stride { Stride(lhs.magnitude + rhs.magnitude) }

      @inlinable
      public static func - (lhs: Stride, rhs: Stride) -> Stride { Stride(lhs.magnitude - rhs.magnitude) }

      @inlinable
      public static func * (lhs: Stride, rhs: Stride) -> Stride { Stride(lhs.magnitude * rhs.magnitude) }

      @inlinable
      public static func += (lhs: inout Stride, rhs: Stride) { lhs.magnitude += rhs.magnitude }

      @inlinable
      public static func -= (lhs: inout Stride, rhs: Stride) { lhs.magnitude -= rhs.magnitude }

      @inlinable
      public static func *= (lhs: inout Stride, rhs: Stride) { lhs.magnitude *= rhs.magnitude }

      /// No time.
      @inlinable
      public static func seconds(_ s: Int) -> Stride { 0 }
      /// No time.
      @inlinable
      public static func seconds(_ s: Double) -> Stride { 0 }
      /// No time.
      @inlinable
      public static func milliseconds(_ ms: Int) -> Stride { 0 }
      /// No time.
      @inlinable
      public static func microseconds(_ us: Int) -> Stride { 0 }
      /// No time.
      @inlinable
      public static func nanoseconds(_ ns: Int) -> Stride { 0 }
    }

    @usableFromInline init() {}

    /// Nothing: there is but one moment.
    @inlinable
    public func distance(to other: SchedulerTimeType) -> Stride { 0 }

    /// The same moment.
    @inlinable
    public func advanced(by n: Stride) -> SchedulerTimeType { self }
  }

  /// There are no options.
  public typealias SchedulerOptions = Never

  /// The scheduler.
  public static let shared = ImmediateScheduler()

  /// The one moment.
  public var now: SchedulerTimeType { SchedulerTimeType() }

  /// Nothing.
  public var minimumTolerance: SchedulerTimeType.Stride { 0 }

  /// Runs the function before this returns.
  @inlinable
  public func schedule(options: SchedulerOptions?, _ action: @escaping () -> Void) { action() }

  /// Runs the function before this returns.
  @inlinable
  public func schedule(
    after date: SchedulerTimeType, tolerance: SchedulerTimeType.Stride, options: SchedulerOptions?,
    _ action: @escaping () -> Void
  ) {
    action()
  }

  /// Runs the function once, before this returns.
  @inlinable
  public func schedule(
    after date: SchedulerTimeType, interval: SchedulerTimeType.Stride, tolerance: SchedulerTimeType.Stride,
    options: SchedulerOptions?, _ action: @escaping () -> Void
  ) -> any Cancellable {
    action()
    return Subscriptions.empty
  }
}
