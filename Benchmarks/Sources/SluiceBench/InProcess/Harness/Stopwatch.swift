import CLinux
import Glibc
import Synchronization

/// A measurement: a row of a table.
///
/// Each run starts afresh, so that rows can be measured in turn, and a busy moment of the machine doesn't affect all runs of one row.
struct MicroCase {
  /// The table, whose title describes what its rows have in common.
  let table: String
  let name: String
  /// Measures once, in about that many seconds if the time can be chosen.
  let run: (_ seconds: Double) throws -> [Reading]

  init(_ table: String, _ name: String, run: @escaping (_ seconds: Double) throws -> [Reading]) {
    self.table = table
    self.name = name
    self.run = run
  }
}

/// One figure of one run.
struct Reading {
  let column: Column
  let value: Double

  init(_ column: Column, _ value: Double) {
    self.column = column
    self.value = value
  }
}

/// The title of a figure and of its column in the table.
struct Column: Hashable, Codable {
  enum Form: String, Codable {
    /// As a number with three digits.
    case plain
    /// As a number with a prefix: 5.1 M.
    case count
  }

  let title: String
  let form: Form

  init(_ title: String, _ form: Form = .plain) {
    self.title = title
    self.form = form
  }

  func text(_ value: Double) -> String {
    switch form {
    case .plain: Format.digits(value)
    case .count: Format.count(value)
    }
  }
}

/// Clocks of the calling thread and others. On a machine with other work, CPU time shows the cost, while wall time also shows the waiting.
enum Stopwatch {
  /// CPU time of this thread in nanoseconds.
  static func threadCPU() -> UInt64 {
    nanoseconds(of: CLOCK_THREAD_CPUTIME_ID)
  }

  /// The value of a clock: wall time, or CPU time, see `pthread_getcpuclockid`.
  @inline(__always)
  static func nanoseconds(of clock: clockid_t) -> UInt64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
  }

  /// Nanoseconds of a clock per call of `body`, measured for about `seconds`. The default is this thread's CPU time.
  static func nanoseconds(
    for seconds: Double, on clock: clockid_t = CLOCK_THREAD_CPUTIME_ID, _ body: () throws -> Void
  ) rethrows -> Double {
    let wanted = seconds * 1e9
    var calls = 1
    while true {
      let start = nanoseconds(of: clock)
      for _ in 0..<calls { try body() }
      let spent = Double(nanoseconds(of: clock) - start)
      if spent >= wanted / 2 { return spent / Double(calls) }
      let factor = spent > 0 ? min(wanted / spent, 100) : 100
      calls = max(calls + 1, Int(Double(calls) * factor))
    }
  }
}

private let lastKept = Atomic<Int>(0)

/// Makes the compiler believe that a value is needed.
@inline(never)
func keep(_ value: Int) {
  lastKept.store(value, ordering: .relaxed)
}
