public import Dispatch
public import ReactiveCore

extension DispatchQueue {
  /// A moment on the clock of dispatch queues, which counts nanoseconds while the machine is awake.
  ///
  /// Arithmetic stops at the ends of the range instead of trapping: at the clock's first nanosecond, and at
  /// `DispatchTime.distantFuture`, from which nothing leads back.
  public struct SchedulerTimeType: Strideable, Codable, Hashable, Sendable {
    /// The moment as Dispatch knows it.
    public var dispatchTime: DispatchTime

    /// A moment.
    public init(_ time: DispatchTime) { dispatchTime = time }

    /// Reads the nanoseconds on the clock, as written by ``encode(to:)``.
    public init(from decoder: any Decoder) throws {
      let nanoseconds = try decoder.singleValueContainer().decode(UInt64.self)
      dispatchTime = DispatchTime(uptimeNanoseconds: nanoseconds)
    }

    /// Writes the nanoseconds on the clock as a plain number. It means nothing to another machine.
    public func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(dispatchTime.uptimeNanoseconds)
    }

    /// The time from this moment to another, negative if the other is earlier.
    ///
    /// To and from the distant future it is as long as can be.
    public func distance(to other: SchedulerTimeType) -> Stride {
      let (start, end) = (dispatchTime.uptimeNanoseconds, other.dispatchTime.uptimeNanoseconds)
      if start <= end { return .nanoseconds(Int(clamping: end - start)) }
      return .nanoseconds(-Int(clamping: start - end))
    }

    /// The moment some time later, or earlier if the time is negative.
    public func advanced(by n: Stride) -> SchedulerTimeType {
      if dispatchTime == .distantFuture { return self }
      let start = dispatchTime.uptimeNanoseconds
      let (end, isOutside) =
        n.magnitude < 0
        ? start.subtractingReportingOverflow(UInt64(n.magnitude.magnitude))
        : start.addingReportingOverflow(UInt64(n.magnitude))
      if n.magnitude < 0 {
        // Nought would mean now.
        return SchedulerTimeType(DispatchTime(uptimeNanoseconds: isOutside ? 1 : max(end, 1)))
      }
      // The other half of the range is wall-clock time to Dispatch.
      return SchedulerTimeType(
        isOutside || end >= UInt64(Int64.max) ? .distantFuture : DispatchTime(uptimeNanoseconds: end))
    }

    /// Whether both are the same moment.
    public static func == (lhs: SchedulerTimeType, rhs: SchedulerTimeType) -> Bool {
      lhs.dispatchTime == rhs.dispatchTime
    }

    /// Whether the left moment is the earlier one.
    public static func < (lhs: SchedulerTimeType, rhs: SchedulerTimeType) -> Bool {
      lhs.dispatchTime < rhs.dispatchTime
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(dispatchTime.rawValue) }
  }
}

extension DispatchQueue.SchedulerTimeType {
  /// A length of time in nanoseconds.
  ///
  /// Literals are in seconds. Values out of range are clamped to `Int` instead of trapping.
  public struct Stride: SchedulerTimeIntervalConvertible, Comparable, SignedNumeric,
    ExpressibleByFloatLiteral,
    Hashable, Codable, Sendable
  {
    // The name is also the key under which the length is encoded.
    private var _nanoseconds: Int

    private init(nanoseconds: Int) { _nanoseconds = nanoseconds }

    private init(_ count: Int, times nanoseconds: Int) {
      let (product, isOutside) = count.multipliedReportingOverflow(by: nanoseconds)
      _nanoseconds = isOutside ? (count < 0 ? .min : .max) : product
    }

    /// A length of time; `never` is as long as can be.
    public init(_ timeInterval: DispatchTimeInterval) {
      switch timeInterval {
      case .seconds(let count): self.init(count, times: 1_000_000_000)
      case .milliseconds(let count): self.init(count, times: 1_000_000)
      case .microseconds(let count): self.init(count, times: 1_000)
      case .nanoseconds(let count): self.init(nanoseconds: count)
      case .never: self.init(nanoseconds: .max)
      @unknown default: self.init(nanoseconds: .max)
      }
    }

    /// A number of seconds.
    public init(floatLiteral value: Double) { self = .seconds(value) }

    /// A number of seconds.
    public init(integerLiteral value: Int) { self = .seconds(value) }

    /// A number of seconds; nil if it isn't an `Int`.
    public init?<T: BinaryInteger>(exactly source: T) {
      guard let value = Int(exactly: source) else { return nil }
      self = .seconds(value)
    }

    /// The length as Dispatch knows it.
    public var timeInterval: DispatchTimeInterval { .nanoseconds(_nanoseconds) }

    /// The length in nanoseconds, with its sign.
    public var magnitude: Int { _nanoseconds }

    /// Whether the left side is the shorter.
    public static func < (lhs: Stride, rhs: Stride) -> Bool { lhs._nanoseconds < rhs._nanoseconds }

    /// The product of both in seconds.
    public static func * (lhs: Stride, rhs: Stride) -> Stride {
      let isNegative = (lhs._nanoseconds < 0) != (rhs._nanoseconds < 0)
      let product = lhs._nanoseconds.magnitude.multipliedFullWidth(by: rhs._nanoseconds.magnitude)
      // The quotient fits if the upper half is less than the divisor.
      let billion: UInt = 1_000_000_000
      let size = product.high < billion ? Int(clamping: billion.dividingFullWidth(product).quotient) : .max
      return Stride(nanoseconds: isNegative ? -size : size)
    }

    /// The sum.
    public static func + (lhs: Stride, rhs: Stride) -> Stride {
      let (sum, isOutside) = lhs._nanoseconds.addingReportingOverflow(rhs._nanoseconds)
      return Stride(nanoseconds: isOutside ? (rhs._nanoseconds < 0 ? .min : .max) : sum)
    }

    /// The difference.
    public static func - (lhs: Stride, rhs: Stride) -> Stride {
      let (difference, isOutside) = lhs._nanoseconds.subtractingReportingOverflow(rhs._nanoseconds)
      return Stride(nanoseconds: isOutside ? (rhs._nanoseconds < 0 ? .max : .min) : difference)
    }

    /// Multiplies the left side, in seconds.
    public static func *= (lhs: inout Stride, rhs: Stride) { lhs = lhs * rhs }

    /// Adds to the left side.
    public static func += (lhs: inout Stride, rhs: Stride) { lhs = lhs + rhs }

    /// Subtracts from the left side.
    public static func -= (lhs: inout Stride, rhs: Stride) { lhs = lhs - rhs }

    /// Turns the sign around.
    public static prefix func - (operand: Stride) -> Stride { Stride(nanoseconds: 0) - operand }

    /// Turns the sign around.
    public mutating func negate() { self = -self }

    /// Seconds and a fraction, to the nearest nanosecond. NaN counts as zero.
    public static func seconds(_ s: Double) -> Stride {
      let nanoseconds = (s * 1_000_000_000).rounded()
      if nanoseconds.isNaN { return Stride(nanoseconds: 0) }
      if nanoseconds >= Double(Int.max) { return Stride(nanoseconds: .max) }
      if nanoseconds <= Double(Int.min) { return Stride(nanoseconds: .min) }
      return Stride(nanoseconds: Int(nanoseconds))
    }

    /// Whole seconds.
    public static func seconds(_ s: Int) -> Stride { Stride(s, times: 1_000_000_000) }

    /// Thousandths of a second.
    public static func milliseconds(_ ms: Int) -> Stride { Stride(ms, times: 1_000_000) }

    /// Millionths of a second.
    public static func microseconds(_ us: Int) -> Stride { Stride(us, times: 1_000) }

    /// Thousandths of a millionth of a second.
    public static func nanoseconds(_ ns: Int) -> Stride { Stride(nanoseconds: ns) }
  }
}
