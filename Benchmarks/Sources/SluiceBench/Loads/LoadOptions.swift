/// What one run does.
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
  /// Subscribers, among those, that never read.
  var stalled: Int
  /// Records that all publishers together may be ahead of the slowest subscriber.
  var window: Int
  /// Records in all, or nil: `seconds` decide.
  var records: Int?
  /// How long is measured, after `warmup`.
  var seconds: Double
  var warmup: Double
  /// Records a second, for latency.
  var rate: Int
  /// Seconds without any progress after which a run is over.
  var patience: Double
  var server: ServerProcess?

  /// The window of one publisher, at least four batches.
  var windowPerPublisher: UInt64 {
    UInt64(max(window / publishers, 4 * target.batch))
  }
}
