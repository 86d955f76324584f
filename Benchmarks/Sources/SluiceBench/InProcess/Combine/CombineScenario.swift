import CAllocationCount
import CLinux
import Glibc

/// A pipeline whose cost per value is measured, and the target for that cost.
struct CombineScenario {
  let name: String
  /// The most nanoseconds per value; nil without a target.
  let target: Double?
  /// The number of values that a round delivers.
  let values: Int
  /// The clock: the CPU time of the calling thread, or of all threads if others do part of the work, or wall time.
  let clock: clockid_t
  /// Builds the pipeline and returns a function that delivers a round of values through it.
  let prepare: () -> () -> Void

  /// - Parameter values: The number of values that each call of the function from `prepare` delivers.
  init(
    _ name: String, target: Double?, values: Int, clock: clockid_t = CLOCK_THREAD_CPUTIME_ID,
    prepare: @escaping () -> () -> Void
  ) {
    self.name = name
    self.target = target
    self.values = values
    self.clock = clock
    self.prepare = prepare
  }

  /// Measures one run: the time of many rounds, and the allocations of one round after all buffers have grown.
  func run(_ seconds: Double) -> [Reading] {
    let round = prepare()
    round()
    let time = Stopwatch.nanoseconds(for: seconds, on: clock, round) / Double(values)
    var readings = [Reading(.perValue, time)]
    if let allocations = Self.allocations(in: round) {
      readings.append(Reading(.allocations, Double(allocations) / Double(values)))
    }
    if let target { readings.append(Reading(.target, target)) }
    return readings
  }

  /// The number of allocations in the body; nil if they can't be counted here.
  private static func allocations(in body: () -> Void) -> UInt64? {
    guard allocation_count_is_available() else { return nil }
    let before = allocation_count()
    allocation_count_enable(true)
    body()
    allocation_count_enable(false)
    return allocation_count() - before
  }
}

extension Column {
  fileprivate static let perValue = Column("ns/value")
  fileprivate static let target = Column("target")
  fileprivate static let allocations = Column("allocations/value")
}
