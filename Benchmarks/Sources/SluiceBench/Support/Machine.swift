import Foundation

/// On what a measurement was made.
struct Machine: Codable, CustomStringConvertible {
  var processor: String
  var cores: Int
  var kernel: String
  var time: String

  init() {
    let info = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
    let line = info.split(separator: "\n").first { $0.hasPrefix("model name") }
    processor = line?.split(separator: ":").last.map { $0.trimmingCharacters(in: .whitespaces) } ?? "unknown"
    cores = ProcessInfo.processInfo.activeProcessorCount
    let release = try? String(contentsOfFile: "/proc/sys/kernel/osrelease", encoding: .utf8)
    kernel = release?.trimmingCharacters(in: .whitespacesAndNewlines) ?? "unknown"
    time = ISO8601DateFormatter().string(from: Date())
  }

  var description: String {
    "\(processor), \(cores) cores, Linux \(kernel), \(time)"
  }
}
