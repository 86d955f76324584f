import ReactiveCore

/// Runs functions when the test says so, in the order of their times; time passes only then.
///
/// Functions may be scheduled from any thread; one thread lets time pass.
package final class ManualScheduler: Scheduler {
  package enum SchedulerOptions: Hashable {
    case special
  }

  /// The functions that were scheduled.
  package enum Call: Equatable {
    case soon(SchedulerOptions?)
    case once(
      after: SchedulerTimeType.Stride, tolerance: SchedulerTimeType.Stride, options: SchedulerOptions?)
    case repeatedly(
      after: SchedulerTimeType.Stride, interval: SchedulerTimeType.Stride,
      tolerance: SchedulerTimeType.Stride, options: SchedulerOptions?)
  }

  package struct SchedulerTimeType: Strideable, Hashable {
    package struct Stride: SchedulerTimeIntervalConvertible, SignedNumeric, Comparable,
      ExpressibleByFloatLiteral, Hashable
    {
      package var magnitude: Int

      package init(_ nanoseconds: Int) { magnitude = nanoseconds }
      package init(integerLiteral value: Int) { self.init(value) }
      package init(floatLiteral value: Double) { self.init(Int(value)) }
      package init?<T: BinaryInteger>(exactly source: T) { self.init(Int(source)) }
      package static func < (lhs: Stride, rhs: Stride) -> Bool { lhs.magnitude < rhs.magnitude }
      package static func + (lhs: Stride, rhs: Stride) -> Stride { Stride(lhs.magnitude + rhs.magnitude) }
      package static func - (lhs: Stride, rhs: Stride) -> Stride { Stride(lhs.magnitude - rhs.magnitude) }
      package static func * (lhs: Stride, rhs: Stride) -> Stride { Stride(lhs.magnitude * rhs.magnitude) }
      package static func *= (lhs: inout Stride, rhs: Stride) { lhs = lhs * rhs }
      package static func seconds(_ s: Int) -> Stride { Stride(s * 1_000_000_000) }
      package static func seconds(_ s: Double) -> Stride { Stride(Int(s * 1_000_000_000)) }
      package static func milliseconds(_ ms: Int) -> Stride { Stride(ms * 1_000_000) }
      package static func microseconds(_ us: Int) -> Stride { Stride(us * 1_000) }
      package static func nanoseconds(_ ns: Int) -> Stride { Stride(ns) }
    }

    package var nanoseconds: Int

    package init(nanoseconds: Int) { self.nanoseconds = nanoseconds }

    package func distance(to other: SchedulerTimeType) -> Stride { Stride(other.nanoseconds - nanoseconds) }
    package func advanced(by n: Stride) -> SchedulerTimeType {
      SchedulerTimeType(nanoseconds: nanoseconds + n.magnitude)
    }
  }

  package private(set) var now = SchedulerTimeType(nanoseconds: 0)
  package var minimumTolerance: SchedulerTimeType.Stride { 1 }

  private let lock = Lock()
  // Guarded by the lock.
  private var calls: [Call] = []
  private var agenda: [(time: SchedulerTimeType, number: Int, action: () -> Void)] = []
  private var lastNumber = 0

  package init() {}

  /// How many functions wait.
  package var pending: Int { lock.withLock { agenda.count } }

  /// The functions that were scheduled since the last look.
  package func takeCalls() -> [Call] {
    lock.withLock {
      defer { calls = [] }
      return calls
    }
  }

  private func add(_ time: SchedulerTimeType, _ action: @escaping () -> Void) -> Int {
    lock.withLock {
      lastNumber += 1
      agenda.append((time, lastNumber, action))
      agenda.sort { ($0.time, $0.number) < ($1.time, $1.number) }
      return lastNumber
    }
  }

  private func note(_ call: Call) {
    lock.withLock { calls.append(call) }
  }

  package func schedule(options: SchedulerOptions?, _ action: @escaping () -> Void) {
    note(.soon(options))
    _ = add(now, action)
  }

  package func schedule(
    after date: SchedulerTimeType, tolerance: SchedulerTimeType.Stride, options: SchedulerOptions?,
    _ action: @escaping () -> Void
  ) {
    note(.once(after: now.distance(to: date), tolerance: tolerance, options: options))
    _ = add(date, action)
  }

  package func schedule(
    after date: SchedulerTimeType, interval: SchedulerTimeType.Stride, tolerance: SchedulerTimeType.Stride,
    options: SchedulerOptions?, _ action: @escaping () -> Void
  ) -> any Cancellable {
    note(
      .repeatedly(
        after: now.distance(to: date), interval: interval, tolerance: tolerance, options: options))
    var number = 0
    func again(_ time: SchedulerTimeType) {
      number = add(time) {
        action()
        if number != -1 { again(time.advanced(by: interval)) }
      }
    }
    again(date)
    return AnyCancellable { [unowned self] in
      // Released outside the lock.
      let removed = lock.withLock {
        let removed = agenda.filter { $0.number == number }
        agenda.removeAll { $0.number == number }
        return removed
      }
      number = -1
      withExtendedLifetime(removed) {}
    }
  }

  /// Lets time pass and runs what falls due.
  package func advance(by duration: SchedulerTimeType.Stride = 0) {
    let end = now.advanced(by: duration)
    while let next = lock.withLock({
      agenda.first.map { $0.time <= end } == true ? agenda.removeFirst() : nil
    }) {
      now = Swift.max(now, next.time)
      next.action()
    }
    now = Swift.max(now, end)
  }

  /// Runs the functions that wait now, but not those that they schedule.
  package func runWaiting() {
    let due = lock.withLock {
      defer { agenda = [] }
      return agenda
    }
    for item in due { item.action() }
  }
}
