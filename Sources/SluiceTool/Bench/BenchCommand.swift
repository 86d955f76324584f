import SluiceClient
import SluiceCommand
import SluiceIO

/// `sluice bench`
struct BenchCommand: Command {
  let size: Int
  let records: UInt64
  let publishers: Int
  let subscribers: Int
  /// What a subscriber asks for at first; it asks for one more with each record then. Nil for everything at once.
  let demand: Int?
  /// Records a second, while latency is measured.
  let rate: Double
  let latencyTime: Duration
  let asJSON: Bool

  static let page = CommandPage(
    "sluice bench", summary: "measure a running broker",
    options: [
      CommandOption(
        "size", value: "SIZE", help: "Bytes of payload of a record, 8 or more.", standard: "128B"),
      CommandOption(
        "records", value: "N", help: "Records to publish for throughput, by all publishers together.",
        standard: "1M"),
      CommandOption(
        "publishers", value: "N", help: "Publishers, each with a connection and a thread.", standard: "1"),
      CommandOption("subscribers", value: "N", help: "Subscribers, each with a connection.", standard: "1"),
      CommandOption(
        "demand", value: "N",
        help: "What a subscriber requests at first; then one more with each record. Or 'unlimited'.",
        standard: "unlimited", choices: ["unlimited"]),
      CommandOption("rate", value: "N", help: "Records a second while latency is measured.", standard: "10k"),
      CommandOption(
        "for", value: "TIME", help: "How long latency is measured; 0 to leave it out.", standard: "3s"),
      CommandOption("json", help: "Print the figures as an object of JSON."),
    ],
    details: [
      """
      Publishes to a topic of its own and subscribes to it, checks that every subscriber gets every record in order, prints rates, and \
      then latency from publishing to receiving at a steady rate. The topic is deleted afterwards.
      """,
      """
      Everything runs in this process and on this machine, so the client's work is part of the figures. For the broker's own, and \
      for comparisons with other brokers, see sluice-bench and scripts/bench-peers.sh.
      """,
    ],
    examples: [
      .init("The usual.", "sluice bench"),
      .init("Fan-out of small records.", "sluice bench --size 16B --subscribers 100 --records 200k"),
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
    Threads.start {
      let result = benchmark.run()
      run.loop.execute {
        switch result {
        case .success(let report): run.report(.success(report)) { self.asJSON ? $0.json : $0.text }
        case .failure(.client(let error)): run.fail(error)
        case .failure(.said(let message)): run.finish(.failure, message)
        case .failure(.interrupted): run.finish(.interrupted)
        }
      }
    }
  }
}
