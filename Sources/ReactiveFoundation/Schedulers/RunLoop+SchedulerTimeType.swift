public import Foundation
public import ReactiveCore

extension RunLoop {
  /// A moment by the wall clock.
  public struct SchedulerTimeType: Strideable, Codable, Hashable, Sendable {
    /// The date.
    public var date: Date

    /// A moment.
    public init(_ date: Date) {
      self.date = date
    }

    /// The time from this moment to another, negative if the other is earlier.
    public func distance(to other: SchedulerTimeType) -> Stride {
      Stride(other.date.timeIntervalSince(date))
    }

    /// The moment some time later, or earlier if the time is negative.
    public func advanced(by n: Stride) -> SchedulerTimeType {
      SchedulerTimeType(date.addingTimeInterval(n.magnitude))
    }

    /// Whether the left moment is the earlier one.
    public static func < (lhs: SchedulerTimeType, rhs: SchedulerTimeType) -> Bool { lhs.date < rhs.date }
  }
}

extension RunLoop.SchedulerTimeType {
  /// A length of time in seconds; what is too long is infinite.
  public struct Stride: SchedulerTimeIntervalConvertible, Comparable, SignedNumeric,
    ExpressibleByFloatLiteral,
    Hashable, Codable, Sendable
  {
    /// The length in seconds, with its sign.
    public var magnitude: TimeInterval

    /// A number of seconds.
    public init(_ timeInterval: TimeInterval) {
      magnitude = timeInterval
    }

    /// A number of seconds.
    public init(integerLiteral value: TimeInterval) {
      self.init(value)
    }

    /// A number of seconds.
    public init(floatLiteral value: TimeInterval) {
      self.init(value)
    }

    /// A number of seconds; nil if it cannot be represented exactly.
    public init?<T: BinaryInteger>(exactly source: T) {
      guard let value = TimeInterval(exactly: source) else { return nil }
      self.init(value)
    }

    /// The length in seconds, with its sign.
    public var timeInterval: TimeInterval { magnitude }

    /// Whether the left side is the shorter.
    public static func < (lhs: Stride, rhs: Stride) -> Bool { lhs.magnitude < rhs.magnitude }

    /// The product of both in seconds.
    public static func * (lhs: Stride, rhs: Stride) -> Stride { Stride(lhs.magnitude * rhs.magnitude) }

    /// The sum.
    public static func + (lhs: Stride, rhs: Stride) -> Stride { Stride(lhs.magnitude + rhs.magnitude) }

    /// The difference.
    public static func - (lhs: Stride, rhs: Stride) -> Stride { Stride(lhs.magnitude - rhs.magnitude) }

    /// Multiplies the left side.
    public static func *= (lhs: inout Stride, rhs: Stride) { lhs.magnitude *= rhs.magnitude }

    /// Adds to the left side.
    public static func += (lhs: inout Stride, rhs: Stride) { lhs.magnitude += rhs.magnitude }

    /// Subtracts from the left side.
    public static func -= (lhs: inout Stride, rhs: Stride) { lhs.magnitude -= rhs.magnitude }

    /// Seconds and a fraction.
    public static func seconds(_ s: Double) -> Stride { Stride(s) }

    /// Whole seconds.
    public static func seconds(_ s: Int) -> Stride { Stride(Double(s)) }

    /// Thousandths of a second.
    public static func milliseconds(_ ms: Int) -> Stride { Stride(Double(ms) / 1_000) }

    /// Millionths of a second.
    public static func microseconds(_ us: Int) -> Stride { Stride(Double(us) / 1_000_000) }

    /// Thousandths of a millionth of a second.
    public static func nanoseconds(_ ns: Int) -> Stride { Stride(Double(ns) / 1_000_000_000) }
  }
}
