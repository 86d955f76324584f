import SluiceClient
import SluiceCommand
import SluiceIO

struct BenchCommand: Command {
  let size: Int
  let records: UInt64
  let publishers: Int
  let subscribers: Int
  /// Records that a subscriber requests at first; it requests one more with each record. Nil for unlimited demand.
  let demand: Int?
  /// Records per second while latency is measured.
  let rate: Double
  let latencyTime: Duration
  let asJSON: Bool

  static let page = CommandPage(
    "sluice bench", summary: "measure a running broker",
    options: [
      CommandOption(
        "size", value: "SIZE", help: "The payload size of a record, at least 8B.", standard: "128B"),
      CommandOption(
        "records", value: "N", help: "Records to publish for throughput, by all producers together.",
        standard: "1M"),
      CommandOption(
        "publishers", value: "N", help: "Producers, each with a connection and a thread.", standard: "1"),
      CommandOption("subscribers", value: "N", help: "Subscribers, each with a connection.", standard: "1"),
      CommandOption(
        "demand", value: "N",
        help:
          "Records that a subscriber requests at first; it requests one more with each record. Or 'unlimited'.",
        standard: "unlimited", choices: ["unlimited"]),
      CommandOption(
        "rate", value: "N", help: "Records per second while latency is measured.", standard: "10k"),
      CommandOption(
        "for", value: "TIME", help: "How long to measure latency; 0 skips it.", standard: "3s"),
      CommandOption("json", help: "Print the results as a JSON object."),
    ],
    details: """
      Publishes to a topic of its own and subscribes to it, checks that every subscriber gets every record in order, and prints rates. Then measures the latency \
      from publishing to receiving at a steady rate. Deletes the topic afterwards.

      Everything runs in one process on this machine, so the results include the client's work. For the broker alone, and for comparisons with other brokers, \
      see sluice-bench and scripts/bench-peers.sh.
      """,
    examples: [
      "Measure with the defaults.": "sluice bench",
      "Measure a fan-out of small records.": "sluice bench --size 16B --subscribers 100 --records 200k",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    size = try arguments.value("size", Self.size) ?? 128
    records = try arguments.value("records", Values.count(in: 1...UInt64(Int.max))) ?? 1_000_000
    publishers = Int(try arguments.value("publishers", Values.count(in: 1...64)) ?? 1)
    subscribers = Int(try arguments.value("subscribers", Values.count(in: 1...4096)) ?? 1)
    let requested = try arguments.value("demand", Values.countOrUnlimited(in: 1...UInt64.max))
    demand = requested.flatMap { $0 == .max ? nil : Int(clamping: $0) }
    rate = Double(try arguments.value("rate", Values.count(in: 1...10_000_000)) ?? 10_000)
    latencyTime = try arguments.value("for", TimeSpan.parse) ?? .seconds(3)
    asJSON = arguments.has("json")
  }

  private static func size(_ text: String) throws(ValueError) -> Int {
    let bytes = try ByteSize.parse(text)
    guard (8...(256 << 20)).contains(bytes) else { throw ValueError("\(text) isn't between 8B and 256MiB") }
    return Int(bytes)
  }

  func start(_ run: Run) {
    let benchmark = Benchmark(self, run.access)
    run.interrupted = { benchmark.interrupt() }
    ProgressLine.start(run) { [records] in
      // The measurement of latency follows, whose duration is fixed.
      let done = benchmark.progress
      guard done > 0, done < records else { return nil }
      return ProgressLine.Figures(done: done, total: records, unit: .records)
    }
    Threads.start {
      let result = Result(catching: benchmark.run)
      run.loop.execute {
        switch result {
        case .success(let report): run.report(.success(report)) { self.asJSON ? $0.json.line : $0.text }
        case .failure(let error as ClientError): run.fail(error)
        case .failure(Benchmark.Failure.said(let message)): run.finish(.failure, message)
        case .failure: run.finish(.interrupted)
        }
      }
    }
  }
}

/// The figures of one `sluice bench`.
struct BenchReport: Sendable {
  struct Throughput: Sendable {
    var records: UInt64
    /// Seconds until all records were acknowledged, and until all had arrived.
    var publishing: Double
    var delivering: Double
  }

  struct Latency: Sendable {
    /// The measured rate, in records per second, and the duration in seconds.
    var rate: Double
    var seconds: Double
    var histogram: LatencyHistogram
  }

  private static let percentiles = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)]

  var server: String
  var size: Int
  var publishers: Int
  var subscribers: Int
  var throughput = Throughput(records: 0, publishing: 0, delivering: 0)
  var latency: Latency?

  private var published: Double { Double(throughput.records) / throughput.publishing }
  private var delivered: Double { Double(throughput.records) * Double(subscribers) / throughput.delivering }

  var text: String {
    var rows = [
      ["broker", server],
      [
        "load",
        "\(Magnitude.grouped(throughput.records)) records of \(ByteSize.exact(UInt64(size))), \(publishers) × \(subscribers)",
      ],
      ["published", rate(published)], ["delivered", rate(delivered)],
    ]
    if let latency {
      let times = Self.percentiles.map { "\($0.0) \(time(latency.histogram.percentile($0.1)))" }
      rows.append([
        "latency",
        times.joined(separator: ", ")
          + ", max \(time(latency.histogram.largest)), at \(Magnitude.rounded(latency.rate))/s",
      ])
    }
    return TextTable.render(rows, leftColumns: 2)
  }

  var json: JSON {
    [
      "broker": .text(server), "size": .number(size), "publishers": .number(publishers),
      "subscribers": .number(subscribers), "records": .number(throughput.records),
      "published_per_second": .number(published, decimals: 0),
      "delivered_per_second": .number(delivered, decimals: 0),
      "latency": latency.map { latency in
        let histogram = latency.histogram
        let percentiles = Self.percentiles.map { ("\($0.0)_ns", JSON.number(histogram.percentile($0.1))) }
        return ["rate": .number(latency.rate, decimals: 0), "seconds": .number(latency.seconds, decimals: 3)]
          + .object(percentiles) + ["max_ns": .number(histogram.largest)]
      },
    ]
  }

  private func rate(_ records: Double) -> String {
    "\(Magnitude.rounded(records)) records/s, \(ByteSize.rounded(UInt64(records * Double(size))))/s"
  }

  private func time(_ nanoseconds: UInt64) -> String {
    TimeSpan.rounded(.nanoseconds(Int64(clamping: nanoseconds)))
  }
}

/// A histogram of durations in nanoseconds, exact to about 3 percent.
///
/// Each power of two is divided into 32 equal parts.
struct LatencyHistogram: Sendable {
  private static let parts: UInt64 = 32

  private var counts: [UInt64] = []
  private(set) var total: UInt64 = 0
  private(set) var largest: UInt64 = 0

  mutating func add(_ nanoseconds: UInt64) {
    let index = Self.index(of: nanoseconds)
    if index >= counts.count { counts += Array(repeating: 0, count: index + 1 - counts.count) }
    counts[index] += 1
    total += 1
    largest = max(largest, nanoseconds)
  }

  mutating func merge(_ other: Self) {
    if other.counts.count > counts.count {
      counts += Array(repeating: 0, count: other.counts.count - counts.count)
    }
    for (index, count) in other.counts.enumerated() { counts[index] += count }
    total += other.total
    largest = max(largest, other.largest)
  }

  /// The smallest time that at least `share` of all measurements don't exceed; 0 without measurements.
  func percentile(_ share: Double) -> UInt64 {
    let rank = max(UInt64((share * Double(total)).rounded(.up)), 1)
    var seen: UInt64 = 0
    for (index, count) in counts.enumerated() {
      seen += count
      if seen >= rank { return min(Self.upperBound(of: index), largest) }
    }
    return largest
  }

  static func index(of value: UInt64) -> Int {
    guard value >= parts else { return Int(value) }
    let shift = 63 - value.leadingZeroBitCount - parts.trailingZeroBitCount
    return (shift + 1) * Int(parts) + Int(value >> UInt64(shift) - parts)
  }

  static func upperBound(of index: Int) -> UInt64 {
    guard index >= Int(parts) else { return UInt64(index) }
    let shift = UInt64(index / Int(parts) - 1)
    return ((UInt64(index % Int(parts)) + parts + 1) << shift) - 1
  }
}
