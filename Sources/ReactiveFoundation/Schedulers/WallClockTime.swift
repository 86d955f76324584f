public import Foundation
public import ReactiveCore

/// A moment of the wall clock: the common part of the time types of `RunLoop` and `OperationQueue`.
public protocol _WallClockTime: Strideable, Codable, Hashable, Sendable where Stride: _SecondsStride {
  /// The date.
  var date: Date { get set }

  /// A moment.
  init(_ date: Date)
}

extension _WallClockTime {
  /// The time from this moment to another, negative if the other is earlier.
  public func distance(to other: Self) -> Stride { Stride(other.date.timeIntervalSince(date)) }

  /// The moment some time later, or earlier if the time is negative.
  public func advanced(by n: Stride) -> Self { Self(date.addingTimeInterval(n.magnitude)) }

  /// Whether the left moment is the earlier one.
  public static func < (lhs: Self, rhs: Self) -> Bool { lhs.date < rhs.date }
}

/// A length of time in seconds; values out of range are infinite.
public protocol _SecondsStride: SchedulerTimeIntervalConvertible, Comparable, SignedNumeric,
  ExpressibleByFloatLiteral, Hashable, Codable, Sendable
where Magnitude == TimeInterval, IntegerLiteralType == TimeInterval, FloatLiteralType == TimeInterval {
  /// The length in seconds, with its sign.
  var magnitude: TimeInterval { get set }

  /// A number of seconds.
  init(_ timeInterval: TimeInterval)
}

extension _SecondsStride {
  /// A number of seconds.
  public init(integerLiteral value: TimeInterval) { self.init(value) }

  /// A number of seconds.
  public init(floatLiteral value: TimeInterval) { self.init(value) }

  /// A number of seconds; nil if it cannot be represented exactly.
  public init?<T: BinaryInteger>(exactly source: T) {
    guard let value = TimeInterval(exactly: source) else { return nil }
    self.init(value)
  }

  /// The length in seconds, with its sign.
  public var timeInterval: TimeInterval { magnitude }

  /// Whether the left side is the shorter.
  public static func < (lhs: Self, rhs: Self) -> Bool { lhs.magnitude < rhs.magnitude }

  /// The product of both in seconds.
  public static func * (lhs: Self, rhs: Self) -> Self { Self(lhs.magnitude * rhs.magnitude) }

  /// The sum.
  public static func + (lhs: Self, rhs: Self) -> Self { Self(lhs.magnitude + rhs.magnitude) }

  /// The difference.
  public static func - (lhs: Self, rhs: Self) -> Self { Self(lhs.magnitude - rhs.magnitude) }

  /// Multiplies the left side.
  public static func *= (lhs: inout Self, rhs: Self) { lhs.magnitude *= rhs.magnitude }

  /// Adds to the left side.
  public static func += (lhs: inout Self, rhs: Self) { lhs.magnitude += rhs.magnitude }

  /// Subtracts from the left side.
  public static func -= (lhs: inout Self, rhs: Self) { lhs.magnitude -= rhs.magnitude }

  /// Seconds and a fraction.
  public static func seconds(_ s: Double) -> Self { Self(s) }

  /// Whole seconds.
  public static func seconds(_ s: Int) -> Self { Self(Double(s)) }

  /// Thousandths of a second.
  public static func milliseconds(_ ms: Int) -> Self { Self(Double(ms) / 1_000) }

  /// Millionths of a second.
  public static func microseconds(_ us: Int) -> Self { Self(Double(us) / 1_000_000) }

  /// Thousandths of a millionth of a second.
  public static func nanoseconds(_ ns: Int) -> Self { Self(Double(ns) / 1_000_000_000) }
}
