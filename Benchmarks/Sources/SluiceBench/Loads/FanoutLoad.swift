/// Publishers and subscribers on one topic, as fast as all subscribers can follow. Some subscribers may never read. Without subscribers, as fast as the
/// server confirms.
enum FanoutLoad {
  static func run<Driver: LoadDriver>(_: Driver.Type, _ options: LoadOptions) throws -> LoadReport {
    let loop = try LoadLoop<Driver, CountingSink>(options)
    for index in 0..<options.subscribers { try loop.openSubscriber(reads: index >= options.stalled) }
    try loop.openPublishers()
    var report = LoadReport(options)
    if options.stalled > 0 { report.serverBytesBefore = options.server?.residentBytes() }

    var watch = ProgressWatch(patience: options.patience)
    do {
      if let records = options.records {
        try run(loop, records: records, options, &watch, &report)
      } else {
        try runForSeconds(loop, options, &watch, &report)
      }
      report.verify(loop)
    } catch let error as BenchError {
      report.verify(loop)
      report.fault = error.description
    }
    if options.stalled > 0 {
      report.serverBytesAfter = options.server?.residentBytes()
      report.longestPause = watch.longestPause
    }
    try loop.finish()
    return report
  }

  /// A given number of records, measured from the first sent to the last received.
  private static func run<Driver: LoadDriver>(
    _ loop: LoadLoop<Driver, CountingSink>, records: Int, _ options: LoadOptions,
    _ watch: inout ProgressWatch, _ report: inout LoadReport
  ) throws {
    let limit = UInt64(max(records / options.publishers, 1))
    let owed = limit * UInt64(options.publishers * max(options.subscribers - options.stalled, 1))
    let start = Moment(delivered: 0, server: options.server)
    watch.restart()
    try loop.deliver(owed, &watch) { try loop.turn(window: options.windowPerPublisher, limit: limit) }
    report.measure(from: start, to: Moment(delivered: loop.progress, server: options.server))
  }

  /// Runs for a given time after a warm-up, then waits for records in flight, so that loss would be noticed.
  private static func runForSeconds<Driver: LoadDriver>(
    _ loop: LoadLoop<Driver, CountingSink>, _ options: LoadOptions, _ watch: inout ProgressWatch,
    _ report: inout LoadReport
  ) throws {
    func runFor(_ seconds: Double) throws {
      let end = monotonicNanoseconds() + UInt64(seconds * 1e9)
      while true {
        let now = monotonicNanoseconds()
        guard now < end, watch.goesOn(loop.progress, now: now) else { return }
        try loop.turn(window: options.windowPerPublisher, limit: .max)
      }
    }
    watch.restart()
    try runFor(options.warmup)
    let start = Moment(delivered: loop.progress, server: options.server)
    try runFor(options.seconds)
    report.measure(from: start, to: Moment(delivered: loop.progress, server: options.server))
    try loop.drain(to: options.subscribers - options.stalled, &watch)
  }
}
