import CLinux
import Foundation
import Glibc

/// CLOCK_MONOTONIC in nanoseconds.
@inline(__always)
func monotonicNanoseconds() -> UInt64 {
  Stopwatch.nanoseconds(of: CLOCK_MONOTONIC)
}

/// The CPU time of all threads of this process, in seconds.
func processCPUSeconds() -> Double {
  Double(Stopwatch.nanoseconds(of: CLOCK_PROCESS_CPUTIME_ID)) / 1e9
}

/// The machine of a measurement.
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

extension Encodable {
  /// The value as JSON, its members sorted by name.
  func json(_ more: JSONEncoder.OutputFormatting = []) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, more]
    return try encoder.encode(self)
  }
}

/// Medians and percentiles of small sets of measurements.
enum Statistics {
  /// The middle value, or the mean of the two in the middle. Nil for an empty set.
  static func median(_ values: [Double]) -> Double? {
    guard !values.isEmpty else { return nil }
    let sorted = values.sorted()
    let middle = sorted.count / 2
    return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
  }

  /// The smallest of `sorted` that isn't exceeded by at least `share` (0...1) of all values: nearest rank.
  static func percentile<Value>(_ share: Double, ofSorted sorted: [Value]) -> Value? {
    guard !sorted.isEmpty else { return nil }
    let rank = (share * Double(sorted.count)).rounded(.up)
    return sorted[min(max(Int(rank) - 1, 0), sorted.count - 1)]
  }
}

/// A block of raw memory with a fixed address, for reading from and writing to sockets.
///
/// Page-aligned and zeroed. Not thread-safe: used only by its loop.
final class PinnedBuffer {
  let base: UnsafeMutableRawPointer
  let count: Int

  init(count: Int) {
    self.count = count
    base = .allocate(byteCount: count, alignment: 4096)
    base.initializeMemory(as: UInt8.self, repeating: 0, count: count)
  }

  deinit {
    base.deallocate()
  }
}
