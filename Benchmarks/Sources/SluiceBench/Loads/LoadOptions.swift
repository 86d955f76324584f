/// The options of one run.
struct LoadOptions {
  enum Workload: String, CaseIterable {
    case fanout
    case latency
    case replay
    case idleMemory = "idle-memory"
    case slowReader = "slow-reader"
    case publish
  }

  var workload: Workload
  var driver: String
  var target: LoadTarget
  var publishers: Int
  var subscribers: Int
  /// The number of those subscribers that never read.
  var stalled: Int
  /// Records that all publishers together may be ahead of the slowest subscriber.
  var window: Int
  /// The total number of records; nil to run for `seconds`.
  var records: Int?
  /// The measured time, after `warmup`.
  var seconds: Double
  var warmup: Double
  /// Records per second, for latency.
  var rate: Int
  /// Seconds without progress after which a run is aborted.
  var patience: Double
  var server: ServerProcess?

  /// The window of one publisher, at least four batches.
  var windowPerPublisher: UInt64 {
    UInt64(max(window / publishers, 4 * target.batch))
  }
}
