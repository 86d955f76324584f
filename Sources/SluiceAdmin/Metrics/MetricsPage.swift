import Glibc
import SluiceBroker
import SluiceCommand
import SluiceWire

/// The page with all metrics.
enum MetricsPage {
  static func text(
    _ snapshot: BrokerSnapshot, _ selection: inout TopicSelection,
    _ consumers: inout ConsumerSelection,
    _ program: ProgramNumbers,
    _ process: ProcessNumbers, version: String, _ format: MetricsFormat,
    cluster: ClusterSnapshot? = nil
  ) -> String {
    var text = MetricsText(format)
    text.family("sluice_build_info", .gauge, "1, with the version as a label.")
    text.sample(1 as UInt64, ["version": version])
    text.single(
      "sluice_uptime_seconds", .gauge, unit: "seconds", "Since the broker has started.",
      Double(snapshot.uptime) / 1000)
    BrokerMetricsText.write(snapshot.metrics, to: &text)
    text.family(
      "sluice_connections", .gauge, "Connections of clients at present, by the protocol that they speak.")
    for door in DoorName.allCases {
      text.sample(UInt64(snapshot.doors[door] ?? 0), ["door": door.rawValue])
    }
    text.single(
      "sluice_own_connections", .gauge,
      "Connections of the broker's own parts, such as the store of MQTT sessions; no limit applies to them.",
      UInt64(snapshot.ownConnections))
    if let storage = snapshot.storage { StorageMetrics.write(storage, to: &text) }
    if let cluster { ClusterMetrics.write(cluster, to: &text) }
    let topics = selection.select(snapshot.topics)
    TopicMetrics.write(topics.own, topics.others, to: &text)
    ConsumerMetrics.write(topics.own, topics.others.topics, to: &text)
    ConsumerMetrics.write(consumers.select(snapshot.topics), to: &text)
    write(snapshot.loops, to: &text)
    text.histogram(
      "sluice_delivery_latency_seconds",
      "How long records took from being published to being handed to the socket of a subscriber with demand; sampled.",
      bounds: bounds, counts: snapshot.latency.counts, sum: snapshot.latency.sum)
    program.write(to: &text)
    write(process, to: &text)
    text.end()
    return text.text
  }

  private static var bounds: [UInt64] { (0..<Histogram.buckets).map { Histogram.bound(of: $0) } }

  private static func write(_ loops: [LoopSnapshot], to text: inout MetricsText) {
    text.single("sluice_loops", .gauge, "Event loops.", UInt64(loops.count))
    var turns = Histogram()
    for loop in loops { turns.add(loop.turns) }
    text.histogram(
      "sluice_loop_latency_seconds", "How long event loops worked before they looked for events again.",
      bounds: bounds, counts: turns.counts, sum: turns.sum)
  }

  /// Writes the process's figures under the names that Prometheus' client libraries use.
  private static func write(_ process: ProcessNumbers, to text: inout MetricsText) {
    text.single(
      "process_cpu_seconds", .counter, unit: "seconds", "CPU time of the process.", process.cpuSeconds)
    text.single(
      "process_resident_memory_bytes", .gauge, unit: "bytes", "Memory of the process.", process.residentBytes)
    text.single("process_open_fds", .gauge, "Open file descriptors.", UInt64(process.openDescriptors))
    text.single(
      "process_max_fds", .gauge, "File descriptors that the process may have open.",
      process.maximumDescriptors)
    text.single(
      "process_start_time_seconds", .gauge, unit: "seconds", "When the process was started, since 1970.",
      process.startTime)
  }
}

/// The metrics of the broker's store. A broker without durable topics has none of them.
enum StorageMetrics {
  static func write(_ storage: StoreSnapshot, to text: inout MetricsText) {
    text.single(
      "sluice_storage_limit_bytes", .gauge, unit: "bytes",
      "Bytes that the store may take; +Inf for no limit.", storage.limit.map { Double($0) } ?? .infinity)
    text.single(
      "sluice_storage_used_bytes", .gauge, unit: "bytes", "Bytes of the store's files that are in use.",
      storage.usedBytes)
    text.single(
      "sluice_storage_file_bytes", .gauge, unit: "bytes", "Bytes of the store's files.", storage.fileBytes)
    if let available = storage.availableBytes {
      text.single(
        "sluice_storage_disk_available_bytes", .gauge, unit: "bytes",
        "Bytes that the store's file system has left.", available)
    }
    text.single(
      "sluice_storage_fullness_ratio", .gauge,
      "The share of what the store's limit and its disk allow that is in use, from 0 to 1.",
      storage.fullness ?? 0)
    text.single(
      "sluice_storage_full", .gauge,
      "1 while the store, or its disk, has no room and publishers of durable topics wait; 0 otherwise.",
      storage.state == .full ? 1 as UInt64 : 0)
    text.single(
      "sluice_storage_failing", .gauge,
      "1 while the store's disk reports errors and publishers of durable topics wait; 0 otherwise.",
      storage.state == .failing ? 1 as UInt64 : 0)
    text.single(
      "sluice_storage_trouble_seconds", .gauge, unit: "seconds",
      "For how long the store has been full or failing; 0 while it takes records.",
      Double(storage.since) / 1000)
    text.single(
      "sluice_storage_waiting_publishers", .gauge,
      "Publishers that the broker has refused until the store takes records again.", UInt64(storage.waiting))
  }
}

/// The program's counters besides those of its broker.
struct ProgramNumbers: Hashable {
  var droppedLogLines = 0
  /// The number of watchers of the events that were rejected because there were too many.
  var refusedWatchers = 0

  func write(to text: inout MetricsText) {
    text.single(
      "sluice_log_dropped_lines", .counter,
      "Lines that were left out of the log because its reader was too slow.", UInt64(droppedLogLines))
    text.single(
      "sluice_admin_refused_watchers", .counter,
      "Visitors that were refused the events because there were too many.", UInt64(refusedWatchers))
  }
}

/// The system's figures of this process.
struct ProcessNumbers: Hashable {
  /// In user and system mode.
  var cpuSeconds = 0.0
  var residentBytes: UInt64 = 0
  var openDescriptors = 0
  /// The limit of open descriptors.
  var maximumDescriptors: UInt64 = 0
  /// Seconds since 1970.
  var startTime = 0.0

  static var now: ProcessNumbers {
    var numbers = ProcessNumbers()
    numbers.read(
      stat: FileBytes.system("/proc/self/stat") ?? "", system: FileBytes.system("/proc/stat") ?? "")
    // The second number in statm is the resident memory in pages.
    let pages = FileBytes.system("/proc/self/statm")?.split(separator: " ").dropFirst().first.flatMap {
      UInt64($0)
    }
    numbers.residentBytes = (pages ?? 0) * UInt64(max(sysconf(Int32(_SC_PAGESIZE)), 0))
    numbers.openDescriptors = entries("/proc/self/fd")
    var limit = rlimit()
    if unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
      numbers.maximumDescriptors = UInt64(limit.rlim_cur)
    }
    return numbers
  }

  /// - Parameters:
  ///   - stat: `/proc/self/stat`. Its second field is the program's name in parentheses, which may contain any characters.
  ///   - system: `/proc/stat`, which contains the boot time.
  mutating func read(
    stat: String, system: String, ticksPerSecond: Double = Double(max(sysconf(Int32(_SC_CLK_TCK)), 1))
  ) {
    guard let name = stat.lastIndex(of: ")") else { return }
    let fields = stat[stat.index(after: name)...].split(separator: " ")
    // Fields are counted from 1; the first one here is field 3.
    func field(_ number: Int) -> Double { fields.count > number - 3 ? Double(fields[number - 3]) ?? 0 : 0 }
    cpuSeconds = (field(14) + field(15)) / ticksPerSecond
    let boot = system.split(separator: "\n").first { $0.hasPrefix("btime ") }?.dropFirst(6)
    startTime = (boot.flatMap { Double($0) } ?? 0) + field(22) / ticksPerSecond
  }

  /// The number of open descriptors in a directory of `/proc`, except for the descriptor that reads it.
  private static func entries(_ path: String) -> Int {
    guard let directory = unsafe opendir(path) else { return 0 }
    defer { unsafe closedir(directory) }
    var count = 0
    while let entry = unsafe readdir(directory) {
      // Descriptors have numbers as names, unlike `.` and `..`.
      if unsafe entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
    }
    return max(count - 1, 0)
  }
}
