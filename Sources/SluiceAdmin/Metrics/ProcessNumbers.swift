import Glibc
import SluiceCommand

/// What the system knows of this process.
struct ProcessNumbers: Hashable {
  /// In user and system mode.
  var cpuSeconds = 0.0
  var residentBytes: UInt64 = 0
  var openDescriptors = 0
  /// How many it may have.
  var maximumDescriptors: UInt64 = 0
  /// Seconds since 1970.
  var startTime = 0.0

  static var now: ProcessNumbers {
    var numbers = ProcessNumbers()
    numbers.read(stat: SystemFile.text("/proc/self/stat") ?? "", system: SystemFile.text("/proc/stat") ?? "")
    // Of statm the second number is what is resident, in pages.
    let pages = SystemFile.text("/proc/self/statm")?.split(separator: " ").dropFirst().first.flatMap {
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
  ///   - stat: `/proc/self/stat`. Its second field is the program's name, in parentheses, which may have anything in it.
  ///   - system: `/proc/stat`, which knows when the machine was started.
  mutating func read(
    stat: String, system: String, ticksPerSecond: Double = Double(max(sysconf(Int32(_SC_CLK_TCK)), 1))
  ) {
    guard let name = stat.lastIndex(of: ")") else { return }
    let fields = stat[stat.index(after: name)...].split(separator: " ")
    // Counted from 1; the first here is the third.
    func field(_ number: Int) -> Double { fields.count > number - 3 ? Double(fields[number - 3]) ?? 0 : 0 }
    cpuSeconds = (field(14) + field(15)) / ticksPerSecond
    let boot = system.split(separator: "\n").first { $0.hasPrefix("btime ") }?.dropFirst(6)
    startTime = (boot.flatMap { Double($0) } ?? 0) + field(22) / ticksPerSecond
  }

  /// How many there are in a directory, the one that is open for counting them not among them.
  private static func entries(_ path: String) -> Int {
    guard let directory = unsafe opendir(path) else { return 0 }
    defer { unsafe closedir(directory) }
    var count = 0
    while let entry = unsafe readdir(directory) {
      // Names are numbers; `.` and `..` aren't.
      if unsafe entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
    }
    return max(count - 1, 0)
  }
}
