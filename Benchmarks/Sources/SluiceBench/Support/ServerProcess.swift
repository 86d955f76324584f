import CLinux
import Glibc

/// A server's figures in /proc: those of a process and of all its descendants.
struct ServerProcess {
  let pid: Int32

  /// The CPU time so far, user and system, of all threads, in seconds with a resolution of nanoseconds. Children that have ended aren't counted.
  func cpuSeconds() -> Double {
    tree().reduce(0) { sum, pid in
      var clock = clockid_t()
      guard clock_getcpuclockid(pid, &clock) == 0 else { return sum }
      return sum + Double(Stopwatch.nanoseconds(of: clock)) / 1e9
    }
  }

  /// Resident memory in bytes.
  func residentBytes() -> Int {
    tree().reduce(0) { sum, pid in
      let fields = Self.contents("/proc/\(pid)/statm").split(separator: " ")
      return sum + (fields.count > 1 ? (Int(fields[1]) ?? 0) * Int(getpagesize()) : 0)
    }
  }

  /// The process and its descendants.
  private func tree() -> [Int32] {
    guard let directory = opendir("/proc") else { return [pid] }
    defer { closedir(directory) }
    var children: [Int32: [Int32]] = [:]
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard let process = Int32(name), let fields = Self.statFields(process), fields.count > 1,
        let parent = Int32(fields[1])
      else { continue }
      children[parent, default: []].append(process)
    }
    var all = [pid]
    var next = 0
    while next < all.count {
      all += children[all[next]] ?? []
      next += 1
    }
    return all
  }

  /// The fields of /proc/PID/stat from the third (state) on. The command's name may contain any characters.
  private static func statFields(_ pid: Int32) -> [Substring]? {
    let text = contents("/proc/\(pid)/stat")
    guard let end = text.lastIndex(of: ")") else { return nil }
    return text[text.index(after: end)...].split(separator: " ")
  }

  private static func contents(_ path: String) -> String {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return "" }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = bytes.withUnsafeMutableBytes { read(file, $0.baseAddress!, $0.count) }
    return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
  }
}
