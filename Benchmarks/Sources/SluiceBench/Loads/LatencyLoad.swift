import CLinux
import Glibc

/// Records sent at a steady rate, independent of the server, each with the time of its sending.
enum LatencyLoad {
  static func run<Driver: LoadDriver>(_: Driver.Type, _ options: LoadOptions) throws -> LoadReport {
    guard options.publishers == 1 else { throw UsageError("latency is measured with one publisher") }
    let loop = try LoadLoop<Driver, LatencySink>(options)
    for _ in 0..<options.subscribers { try loop.openSubscriber() }
    try loop.openPublishers()
    var report = LoadReport(options)

    let timer = try PacingTimer(perSecond: options.rate)
    defer { timer.close() }
    loop.watch(timer.descriptor)
    let begin = monotonicNanoseconds()
    let measured = begin + UInt64(options.warmup * 1e9)
    let end = measured + UInt64(options.seconds * 1e9)
    for subscriber in loop.subscribers { subscriber.sink.measure(from: measured) }
    var start: Moment?
    while true {
      let now = monotonicNanoseconds()
      if now >= end { break }
      if start == nil, now >= measured { start = Moment(delivered: loop.delivered, server: options.server) }
      if try loop.handleEvents(milliseconds: 100) {
        // After a late wake-up, sends the records that have become due meanwhile; the stamp is the time of sending.
        var due = timer.expirations()
        while due > 0 {
          let count = min(due, options.target.batch)
          try loop.publishNow(count, stamp: monotonicNanoseconds())
          due -= count
        }
      }
    }
    let finish = Moment(delivered: loop.delivered, server: options.server)
    var watch = ProgressWatch(patience: options.patience)
    try loop.drain(to: options.subscribers, &watch)
    if let start { report.measure(from: start, to: finish) }
    report.verify(loop)
    let samples = loop.subscribers.flatMap(\.sink.samples.values)
    if !samples.isEmpty { report.latency = LatencyFigures(nanoseconds: samples) }
    try loop.finish()
    return report
  }
}

/// A timerfd that expires at a steady rate.
struct PacingTimer {
  let descriptor: Int32

  init(perSecond rate: Int) throws {
    descriptor = timerfd_create(CLOCK_MONOTONIC, Int32(TFD_CLOEXEC) | Int32(TFD_NONBLOCK))
    guard descriptor >= 0 else { throw BenchError("timerfd: \(errorText())") }
    let interval = timespec(tv_sec: rate == 1 ? 1 : 0, tv_nsec: rate == 1 ? 0 : 1_000_000_000 / rate)
    var setting = itimerspec(it_interval: interval, it_value: interval)
    timerfd_settime(descriptor, 0, &setting, nil)
  }

  /// The number of expirations since the last call.
  func expirations() -> Int {
    var count: UInt64 = 0
    return read(descriptor, &count, 8) == 8 ? Int(count) : 0
  }

  func close() {
    Glibc.close(descriptor)
  }
}
