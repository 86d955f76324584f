import Glibc

/// What this process takes of the machine.
struct ProcessUsage: Hashable {
  /// Time on processors, in user and in kernel mode, of all threads.
  var processorSeconds: Double
  /// Bytes of memory that it has at present.
  var residentBytes: UInt64
  /// Files that it has open, connections among them.
  var openDescriptors: Int

  /// As it is now. What the system doesn't tell is 0.
  static func now() -> ProcessUsage {
    var usage = rusage()
    _ = unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return ProcessUsage(
      processorSeconds: seconds(usage.ru_utime) + seconds(usage.ru_stime), residentBytes: resident(),
      openDescriptors: descriptors())
  }

  private static func seconds(_ time: timeval) -> Double {
    Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000
  }

  /// From `/proc/self/statm`: pages in all, pages in memory, and others.
  private static func resident() -> UInt64 {
    let fields = SystemFile.text("/proc/self/statm")?.split(separator: " ") ?? []
    guard fields.count > 1, let pages = UInt64(fields[1]) else { return 0 }
    return pages &* UInt64(sysconf(Int32(_SC_PAGESIZE)))
  }

  private static func descriptors() -> Int {
    guard let directory = unsafe opendir("/proc/self/fd") else { return 0 }
    defer { unsafe closedir(directory) }
    var count = 0
    while let entry = unsafe readdir(directory) {
      // Not "." and "..", which begin with a dot.
      if unsafe entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
    }
    // The directory itself is one.
    return max(count - 1, 0)
  }
}
