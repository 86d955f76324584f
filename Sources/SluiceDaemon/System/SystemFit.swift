import Glibc
import SluiceAdmin
import SluiceBroker
import SluiceCommand
import SluiceIO

/// The daemon's settings, adapted to the limits of this system.
struct SystemFit {
  /// A change of a setting, for the log.
  struct Note: Hashable {
    var message: String
    var wanted: Int
    var possible: Int
  }

  private(set) var limits: BrokerLimits
  private(set) var notes: [Note] = []

  /// - Parameters:
  ///   - descriptors: how many files the process may have open; 0 if that isn't known.
  ///   - memory: the memory of the system in bytes; nil if that isn't known.
  /// - Throws: `UsageError` when the system has too little for an explicit setting.
  init(_ settings: DaemonSettings, descriptors: UInt64, memory: UInt64?) throws(UsageError) {
    limits = settings.broker.limits
    limits.memory = settings.memory.bytes(of: memory)
    try fitConnections(settings, Int(clamping: descriptors))
  }

  private mutating func fitConnections(_ settings: DaemonSettings, _ descriptors: Int) throws(UsageError) {
    guard descriptors > 0 else { return }
    let loops = settings.broker.loops ?? LoopGroup.availableCores
    // Each loop has three; addresses have one or, for names, a few. The others are for the store, the standard streams, the admin listener's connections,
    // and files that are read occasionally.
    let others =
      loops * 3 + settings.broker.listen.count * 2 + 48 + BrokerLimits.closingConnections
      + (settings.admin.address == nil ? 0 : settings.admin.limits.connections + 8)
    let possible = descriptors - others
    guard limits.connections > possible else { return }
    let advice =
      "raise the limit on open files, which is \(descriptors) (ulimit -n, or LimitNOFILE= of a service)"
    guard possible >= 1 else {
      throw UsageError("\(others) open files are needed besides connections; \(advice)")
    }
    guard !settings.isConnectionLimitGiven else {
      throw UsageError(
        "--max-connections: \(limits.connections) connections need \(limits.connections + others) open files; \(advice), or set --max-connections \(possible)"
      )
    }
    notes.append(
      Note(
        message: "the limit on connections was lowered: \(advice)", wanted: limits.connections,
        possible: possible))
    limits.connections = possible
  }
}

/// The memory that this process may use.
enum SystemMemory {
  /// The machine's memory or, if that is less, the limit of the process's control group, in bytes; nil if neither is known.
  ///
  /// - Parameter read: the text of a file; nil if it can't be read.
  static func available(_ read: (String) -> String? = FileBytes.system) -> UInt64? {
    let limits = [machine(read)] + groups(read).map { Self.number(read($0)) }
    return limits.compactMap { $0 }.min()
  }

  private static func machine(_ read: (String) -> String?) -> UInt64? {
    guard
      let line = read("/proc/meminfo")?.split(separator: "\n").first(where: { $0.hasPrefix("MemTotal:") }),
      let kibibytes = line.split(separator: " ").dropFirst().first.flatMap({ UInt64($0) })
    else { return nil }
    let bytes = kibibytes.multipliedReportingOverflow(by: 1024)
    return bytes.overflow ? nil : bytes.partialValue
  }

  /// The files that may contain a limit: those of the process's group and of its parents, in either version of control groups.
  private static func groups(_ read: (String) -> String?) -> [String] {
    var files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
    for line in read("/proc/self/cgroup")?.split(separator: "\n") ?? [] {
      let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3 else { continue }
      let isSecond = parts[0] == "0" && parts[1].isEmpty
      guard isSecond || parts[1].split(separator: ",").contains("memory") else { continue }
      var path = ""
      for part in parts[2].split(separator: "/") {
        path += "/" + part
        files.append(
          isSecond
            ? "/sys/fs/cgroup\(path)/memory.max" : "/sys/fs/cgroup/memory\(path)/memory.limit_in_bytes")
      }
    }
    return files
  }

  /// Nil for `max`, which means no limit.
  private static func number(_ text: String?) -> UInt64? {
    text.flatMap { UInt64($0.prefix { $0.isNumber }) }
  }
}

/// The process's limit on open files: a connection is one.
enum Descriptors {
  /// Raises the soft limit to the hard one. Returns the resulting soft limit.
  static func raiseLimit() -> UInt64 {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard unsafe getrlimit(resource, &limit) == 0 else { return 0 }
    if limit.rlim_cur < limit.rlim_max {
      var raised = rlimit(rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max)
      if unsafe setrlimit(resource, &raised) == 0 { limit = raised }
    }
    return UInt64(limit.rlim_cur)
  }
}
