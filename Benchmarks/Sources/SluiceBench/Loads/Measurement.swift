/// A moment of a run: the delivered records and the cost so far.
struct Moment {
  private let server: ServerProcess?
  let delivered: UInt64
  let serverCPU: Double?
  let time: UInt64
  let loadCPU: Double
  private let threadCPU: UInt64

  init(delivered: UInt64 = 0, server: ServerProcess?) {
    self.server = server
    self.delivered = delivered
    // The slowest reading comes first, since the measurement begins afterwards.
    serverCPU = server?.cpuSeconds()
    time = monotonicNanoseconds()
    loadCPU = processCPUSeconds()
    threadCPU = Stopwatch.threadCPU()
  }

  /// The time since then, in nanoseconds: wall time, and the CPU time of the process, of this thread and of the server.
  func elapsed() -> (wall: Double, process: Double, thread: Double, server: Double?) {
    let wall = Double(monotonicNanoseconds() - time)
    let process = (processCPUSeconds() - loadCPU) * 1e9
    let thread = Double(Stopwatch.threadCPU() - threadCPU)
    let now = server?.cpuSeconds()
    return (wall, process, thread, now.flatMap { now in serverCPU.map { (now - $0) * 1e9 } })
  }
}

/// Watches the progress of a run: it is aborted when nothing was delivered for `patience` seconds.
struct ProgressWatch {
  private let patience: UInt64
  private var last: UInt64 = 0
  private var since = monotonicNanoseconds()
  private(set) var longestPause: Double = 0

  init(patience: Double) {
    self.patience = UInt64(patience * 1e9)
  }

  /// Notes the progress of the run. Returns false if there was none for too long.
  mutating func goesOn(_ delivered: UInt64, now: UInt64) -> Bool {
    if delivered == last { return now &- since < patience }
    longestPause = max(longestPause, Double(now &- since) / 1e9)
    last = delivered
    since = now
    return true
  }

  mutating func restart() {
    since = monotonicNanoseconds()
  }
}

extension LoadReport {
  /// Rates and costs between two moments.
  mutating func measure(from start: Moment, to end: Moment) {
    seconds = Double(end.time - start.time) / 1e9
    let count = Double(end.delivered - start.delivered)
    deliveredPerSecond = count / seconds
    bytesPerSecond = deliveredPerSecond * Double(size)
    loadCPUs = (end.loadCPU - start.loadCPU) / seconds
    if let before = start.serverCPU, let after = end.serverCPU {
      serverCPUs = (after - before) / seconds
      serverMicrosecondsPerRecord = count > 0 ? (after - before) / count * 1e6 : nil
    }
  }

  /// Counts the records that every reading subscriber has received or, without such subscribers, that the server has confirmed. Sets a fault unless each
  /// record arrived once and in order.
  mutating func verify<Driver: LoadDriver, Sink: CheckingSink>(_ loop: LoadLoop<Driver, Sink>) {
    published = loop.published
    let readers = loop.subscribers.filter(\.reads)
    delivered = loop.progress
    outOfOrder = readers.reduce(0) { $0 + $1.sink.check.outOfOrder }
    let owed = published * UInt64(max(readers.count, 1))
    lost = owed > delivered ? owed - delivered : 0
    if outOfOrder > 0 {
      fault = "\(outOfOrder) records out of order"
    } else if delivered != owed {
      fault = "\(delivered) of \(owed) records arrived"
    }
  }
}
