extension Subscribers {
  /// How many values a subscriber wants: a number, or as many as there are.
  @frozen
  public struct Demand: Equatable, Comparable, Hashable, Codable, CustomStringConvertible, Sendable {
    /// The number asked for; one more than `Int.max` stands for unlimited.
    @usableFromInline let rawValue: UInt

    @inlinable init(rawValue: UInt) { self.rawValue = rawValue }

    /// As many values as there are.
    @inlinable
    public static var unlimited: Demand { Demand(rawValue: UInt(Int.max) + 1) }

    /// No values; the same as `max(0)`.
    @inlinable
    public static var none: Demand { Demand(rawValue: 0) }

    /// At most this many values.
    ///
    /// - Parameter value: The number, which must not be negative.
    @inlinable
    public static func max(_ value: Int) -> Demand {
      precondition(value >= 0, "demand cannot be negative")
      return Demand(rawValue: UInt(value))
    }

    /// The number of values, or nil if unlimited.
    @inlinable
    public var max: Int? { self == .unlimited ? nil : Int(rawValue) }

    /// `unlimited` or `max(n)`.
    public var description: String { self == .unlimited ? "unlimited" : "max(\(rawValue))" }

    /// Reads the number as written by ``encode(to:)``.
    public init(from decoder: any Decoder) throws {
      let number = try decoder.singleValueContainer().decode(UInt.self)
      self.init(rawValue: Swift.min(number, Demand.unlimited.rawValue))
    }

    /// Writes the number; `Int.max` + 1 stands for unlimited.
    public func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(rawValue)
    }
  }
}

// Arithmetic: unlimited absorbs everything; what exceeds `Int` is unlimited.
extension Subscribers.Demand {
  /// The sum; unlimited if either is, or if it would exceed `Int.max`.
  @inlinable
  public static func + (lhs: Self, rhs: Self) -> Self {
    if lhs == .unlimited || rhs == .unlimited { return .unlimited }
    return Self(rawValue: Swift.min(lhs.rawValue + rhs.rawValue, unlimited.rawValue))
  }

  /// Adds to the left side.
  @inlinable
  public static func += (lhs: inout Self, rhs: Self) { lhs = lhs + rhs }

  /// The sum with a number, which must not make it negative.
  @inlinable
  public static func + (lhs: Self, rhs: Int) -> Self {
    if lhs == .unlimited { return .unlimited }
    let (sum, overflow) = Int(lhs.rawValue).addingReportingOverflow(rhs)
    return overflow ? .unlimited : .max(sum)
  }

  /// Adds a number to the left side.
  @inlinable
  public static func += (lhs: inout Self, rhs: Int) { lhs = lhs + rhs }

  /// The product with a number, which must not be negative; unlimited if it would exceed `Int.max`.
  @inlinable
  public static func * (lhs: Self, rhs: Int) -> Self {
    if lhs == .unlimited { return .unlimited }
    let (product, overflow) = Int(lhs.rawValue).multipliedReportingOverflow(by: rhs)
    return overflow ? .unlimited : .max(product)
  }

  /// Multiplies the left side.
  @inlinable
  public static func *= (lhs: inout Self, rhs: Int) { lhs = lhs * rhs }

  /// The difference, never below none. Anything taken from unlimited leaves unlimited; unlimited taken from a number leaves none.
  @inlinable
  public static func - (lhs: Self, rhs: Self) -> Self {
    if lhs == .unlimited { return .unlimited }
    if rhs == .unlimited || rhs.rawValue >= lhs.rawValue { return .none }
    return Self(rawValue: lhs.rawValue - rhs.rawValue)
  }

  /// Subtracts from the left side.
  @inlinable
  public static func -= (lhs: inout Self, rhs: Self) { lhs = lhs - rhs }

  /// The difference with a number, which must not make it negative; none if it would exceed `Int.max`, as in Combine.
  @inlinable
  public static func - (lhs: Self, rhs: Int) -> Self {
    if lhs == .unlimited { return .unlimited }
    let (difference, overflow) = Int(lhs.rawValue).subtractingReportingOverflow(rhs)
    return overflow ? .none : .max(difference)
  }

  /// Subtracts a number from the left side.
  @inlinable
  public static func -= (lhs: inout Self, rhs: Int) { lhs = lhs - rhs }
}

// Comparison with plain numbers. Unlimited is greater than every number, and than nothing else.
extension Subscribers.Demand {
  /// Whether the left side is more than a number.
  @inlinable
  public static func > (lhs: Self, rhs: Int) -> Bool { lhs == .unlimited || Int(lhs.rawValue) > rhs }

  /// Whether the left side is a number or more.
  @inlinable
  public static func >= (lhs: Self, rhs: Int) -> Bool { lhs == .unlimited || Int(lhs.rawValue) >= rhs }

  /// Whether a number is more than the right side.
  @inlinable
  public static func > (lhs: Int, rhs: Self) -> Bool { rhs != .unlimited && lhs > Int(rhs.rawValue) }

  /// Whether a number is the right side or more.
  @inlinable
  public static func >= (lhs: Int, rhs: Self) -> Bool { rhs != .unlimited && lhs >= Int(rhs.rawValue) }

  /// Whether the left side is less than a number.
  @inlinable
  public static func < (lhs: Self, rhs: Int) -> Bool { lhs != .unlimited && Int(lhs.rawValue) < rhs }

  /// Whether a number is less than the right side.
  @inlinable
  public static func < (lhs: Int, rhs: Self) -> Bool { rhs == .unlimited || lhs < Int(rhs.rawValue) }

  /// Whether the left side is a number or less.
  @inlinable
  public static func <= (lhs: Self, rhs: Int) -> Bool { lhs != .unlimited && Int(lhs.rawValue) <= rhs }

  /// Whether a number is the right side or less.
  @inlinable
  public static func <= (lhs: Int, rhs: Self) -> Bool { rhs == .unlimited || lhs <= Int(rhs.rawValue) }

  /// Whether the left side is less than the right.
  @inlinable
  public static func < (lhs: Self, rhs: Self) -> Bool { lhs.rawValue < rhs.rawValue }

  /// Whether the left side is exactly a number.
  @inlinable
  public static func == (lhs: Self, rhs: Int) -> Bool { lhs != .unlimited && Int(lhs.rawValue) == rhs }

  /// Whether the left side is anything but a number.
  @inlinable
  public static func != (lhs: Self, rhs: Int) -> Bool { !(lhs == rhs) }

  /// Whether a number is exactly the right side.
  @inlinable
  public static func == (lhs: Int, rhs: Self) -> Bool { rhs == lhs }

  /// Whether a number is anything but the right side.
  @inlinable
  public static func != (lhs: Int, rhs: Self) -> Bool { !(rhs == lhs) }
}
