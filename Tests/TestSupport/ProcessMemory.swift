import Glibc

/// A process's memory as reported by Linux. All values are 0 under a sanitizer, which uses several times as much and keeps freed memory.
public struct ProcessMemory: Sendable {
  /// `VmRSS`: the present resident memory in bytes.
  public var resident: Int
  /// `RssAnon`: the part of it that isn't backed by files, in bytes.
  public var anonymous: Int
  /// `VmHWM`: the highest resident memory so far, in bytes.
  public var peak: Int

  public init(of pid: pid_t) throws {
    guard getenv("SLUICE_SANITIZER") == nil else {
      (resident, anonymous, peak) = (0, 0, 0)
      return
    }
    let text = try String(decoding: readFile("/proc/\(pid)/status"), as: UTF8.self)
    func field(_ name: String) throws -> Int {
      guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix(name) }),
        let kibibytes = line.split(whereSeparator: { !$0.isNumber }).first.flatMap({ Int($0) })
      else { throw TestFailure("/proc/\(pid)/status has no \(name)") }
      return kibibytes * 1024
    }
    resident = try field("VmRSS:")
    anonymous = try field("RssAnon:")
    peak = try field("VmHWM:")
  }
}

/// Reads a whole file.
public func readFile(_ path: String) throws -> [UInt8] {
  let descriptor = open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { throw TestFailure("open \(path): error \(errno)") }
  defer { close(descriptor) }
  var bytes: [UInt8] = []
  var chunk = [UInt8](repeating: 0, count: 1 << 16)
  while true {
    let count = read(descriptor, &chunk, chunk.count)
    guard count >= 0 else { throw TestFailure("read \(path): error \(errno)") }
    if count == 0 { return bytes }
    bytes += chunk[..<count]
  }
}

public func writeFile(_ path: String, _ bytes: [UInt8]) throws {
  let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
  guard descriptor >= 0 else { throw TestFailure("create \(path): error \(errno)") }
  defer { close(descriptor) }
  var written = 0
  while written < bytes.count {
    let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress! + written, bytes.count - written) }
    guard count > 0 else { throw TestFailure("write \(path): error \(errno)") }
    written += count
  }
}
