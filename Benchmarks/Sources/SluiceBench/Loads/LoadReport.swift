/// The results of one run. Absent fields don't apply to its workload.
struct LoadReport: Codable {
  var driver: String
  var workload: String
  /// The workload and its sizes as text: `1x8 128 B`.
  var name: String
  var publishers: Int
  var subscribers: Int
  var size: Int

  var published: UInt64 = 0
  /// The total number of records that reading subscribers have received.
  var delivered: UInt64 = 0
  var lost: UInt64 = 0
  var outOfOrder: UInt64 = 0
  /// The failure of the run, in a sentence; nil if all records arrived in order.
  var fault: String?

  var seconds: Double = 0
  var deliveredPerSecond: Double = 0
  /// Payload bytes per second.
  var bytesPerSecond: Double = 0
  /// The server's CPU time per delivered record, in microseconds.
  var serverMicrosecondsPerRecord: Double?
  /// The number of busy CPUs; 1 for one core.
  var serverCPUs: Double?
  var loadCPUs: Double = 0

  /// The latency from sending to receiving, in microseconds.
  var latency: LatencyFigures?
  var serverBytesBefore: Int?
  var serverBytesAfter: Int?
  var bytesPerConnection: Double?
  /// The longest time without a delivery, in seconds.
  var longestPause: Double?

  init(_ options: LoadOptions) {
    driver = options.driver
    workload = options.workload.rawValue
    publishers = options.publishers
    subscribers = options.subscribers
    size = options.target.size
    name = Self.name(options)
  }

  private static func name(_ options: LoadOptions) -> String {
    let size = options.target.size
    let sizeText = size % 1024 == 0 ? "\(size / 1024) KiB" : "\(size) B"
    let shape = "\(options.publishers)x\(options.subscribers) \(sizeText)"
    switch options.workload {
    case .fanout: return shape
    case .publish: return "publish \(options.publishers) to \(options.target.topics), \(sizeText)"
    case .latency: return "latency \(sizeText)"
    case .replay: return options.subscribers == 1 ? "replay \(sizeText)" : "replay \(shape)"
    case .idleMemory: return "idle connections"
    case .slowReader: return "\(options.stalled) of \(options.subscribers) stalled, \(sizeText)"
    }
  }
}

/// Percentiles in microseconds.
struct LatencyFigures: Codable {
  var p50: Double
  var p99: Double
  var p999: Double
  var max: Double

  /// - Parameter samples: nanoseconds, in any order, at least one.
  init(nanoseconds samples: [UInt64]) {
    let sorted = samples.sorted()
    func microseconds(_ share: Double) -> Double {
      Double(Statistics.percentile(share, ofSorted: sorted) ?? 0) / 1000
    }
    p50 = microseconds(0.5)
    p99 = microseconds(0.99)
    p999 = microseconds(0.999)
    max = microseconds(1)
  }
}
