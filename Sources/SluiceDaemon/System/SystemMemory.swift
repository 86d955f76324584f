import SluiceCommand

/// How much memory there is for this process.
enum SystemMemory {
  /// The machine's memory or, if that is less, what the process's control group may have, in bytes; nil where neither is told.
  ///
  /// - Parameter read: the text of a file; nil if it can't be read.
  static func available(_ read: (String) -> String? = SystemFile.text) -> UInt64? {
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

  /// Files that may hold a limit: of the process's group and of those around it, in either version of control groups.
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

  /// Nil for `max`, which is none.
  private static func number(_ text: String?) -> UInt64? {
    text.flatMap { UInt64($0.prefix { $0.isNumber }) }
  }
}
