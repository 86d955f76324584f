import SluiceCommand

/// What `sluice bench` found.
struct BenchReport: Sendable {
  struct Throughput: Sendable {
    var records: UInt64
    /// Seconds until all was acknowledged, and until all had arrived.
    var publishing: Double
    var delivering: Double
  }

  struct Latency: Sendable {
    /// Records a second in fact published, and for how long.
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

  var text: String {
    let published = Double(throughput.records) / throughput.publishing
    let delivered = Double(throughput.records) * Double(subscribers) / throughput.delivering
    var rows = [
      ["broker", server],
      [
        "load",
        "\(Magnitude.grouped(throughput.records)) records of \(ByteSize.exact(UInt64(size))), \(publishers) × \(subscribers)",
      ],
      ["published", rate(published)],
      ["delivered", rate(delivered)],
    ]
    if let latency {
      let times = Self.percentiles.map { "\($0.0) \(time(latency.histogram.percentile($0.1)))" }
      rows.append([
        "latency",
        times.joined(separator: ", ")
          + ", most \(time(latency.histogram.largest)), at \(Magnitude.rounded(latency.rate))/s",
      ])
    }
    return TextTable.render(rows, leftColumns: 2)
  }

  var json: String {
    var object = JSONObject()
    object.add("broker", server)
    object.add("size", UInt64(size))
    object.add("publishers", UInt64(publishers))
    object.add("subscribers", UInt64(subscribers))
    object.add("records", throughput.records)
    object.add("published_per_second", Double(throughput.records) / throughput.publishing, decimals: 0)
    object.add(
      "delivered_per_second", Double(throughput.records) * Double(subscribers) / throughput.delivering,
      decimals: 0)
    if let latency {
      var times = JSONObject()
      times.add("rate", latency.rate, decimals: 0)
      times.add("seconds", latency.seconds, decimals: 3)
      for (name, share) in Self.percentiles { times.add("\(name)_ns", latency.histogram.percentile(share)) }
      times.add("max_ns", latency.histogram.largest)
      object.add("latency", times)
    }
    return object.text + "\n"
  }

  private func rate(_ records: Double) -> String {
    "\(Magnitude.rounded(records)) records/s, \(ByteSize.rounded(UInt64(records * Double(size))))/s"
  }

  private func time(_ nanoseconds: UInt64) -> String {
    TimeSpan.rounded(.nanoseconds(Int64(clamping: nanoseconds)))
  }
}
