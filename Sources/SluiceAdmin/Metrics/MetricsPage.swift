import SluiceBroker

/// All metrics.
enum MetricsPage {
  static func text(
    _ snapshot: BrokerSnapshot, _ selection: inout TopicSelection, _ program: ProgramNumbers,
    _ process: ProcessNumbers, version: String, _ format: MetricsFormat
  ) -> String {
    var text = MetricsText(format)
    text.family("sluice_build_info", .gauge, "1, with the version as a label.")
    text.sample(1 as UInt64, ["version": version])
    text.family("sluice_uptime_seconds", .gauge, unit: "seconds", "Since the broker has started.")
    text.sample(Double(snapshot.uptime) / 1000)
    BrokerMetricsText.write(snapshot.metrics, to: &text)
    if let storage = snapshot.storage { StorageMetrics.write(storage, to: &text) }
    let topics = selection.select(snapshot.topics)
    TopicMetrics.write(topics.own, topics.others, to: &text)
    write(snapshot.loops, to: &text)
    text.histogram(
      "sluice_delivery_latency_seconds",
      "How long records took from being published to being handed to the socket of somebody who had asked for them; sampled.",
      bounds: bounds, counts: snapshot.latency.counts, sum: snapshot.latency.sum)
    program.write(to: &text)
    write(process, to: &text)
    text.end()
    return text.text
  }

  private static var bounds: [UInt64] { (0..<Histogram.buckets).map { Histogram.bound(of: $0) } }

  private static func write(_ loops: [LoopSnapshot], to text: inout MetricsText) {
    text.family("sluice_loops", .gauge, "Event loops.")
    text.sample(UInt64(loops.count))
    var turns = Histogram()
    for loop in loops { turns.add(loop.turns) }
    text.histogram(
      "sluice_loop_latency_seconds", "How long event loops worked before they looked for events again.",
      bounds: bounds, counts: turns.counts, sum: turns.sum)
  }

  /// Under the names that everybody uses for them.
  private static func write(_ process: ProcessNumbers, to text: inout MetricsText) {
    text.family("process_cpu_seconds", .counter, unit: "seconds", "CPU time of the process.")
    text.sample(process.cpuSeconds)
    text.family("process_resident_memory_bytes", .gauge, unit: "bytes", "Memory of the process.")
    text.sample(process.residentBytes)
    text.family("process_open_fds", .gauge, "Open file descriptors.")
    text.sample(UInt64(process.openDescriptors))
    text.family("process_max_fds", .gauge, "File descriptors that the process may have open.")
    text.sample(process.maximumDescriptors)
    text.family(
      "process_start_time_seconds", .gauge, unit: "seconds", "When the process was started, since 1970.")
    text.sample(process.startTime)
  }
}
