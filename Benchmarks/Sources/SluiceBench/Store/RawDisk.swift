import Glibc

/// A plain file that is written and read like a log, as the limit of the disk's speed.
struct RawDisk {
  struct Result {
    var write: SyncedWrites
    /// MB/s of reading data that isn't in memory.
    var cold: Double
  }

  let path: String

  /// - Parameter group: the bytes between two syncs.
  func run(bytes: Int, group: Int) throws -> Result {
    let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw BenchError("couldn't make \(path): \(String(cString: strerror(errno)))") }
    defer {
      close(file)
      unlink(path)
    }
    var write = SyncedWrites()
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(group, 1 << 20), alignment: 4096)
    defer { buffer.deallocate() }
    for index in buffer.indices { buffer[index] = UInt8(truncatingIfNeeded: index &* 31) }
    while write.bytes < bytes {
      let start = monotonicNanoseconds()
      guard pwrite(file, buffer.baseAddress, group, write.bytes) == group, fdatasync(file) == 0 else {
        throw BenchError("couldn't write to \(path): \(String(cString: strerror(errno)))")
      }
      write.add(bytes: group, duration: monotonicNanoseconds() - start)
    }
    try RawDisk.forget(path)
    let start = monotonicNanoseconds()
    var position = 0
    while position < write.bytes {
      let count = pread(file, buffer.baseAddress, 1 << 20, position)
      guard count > 0 else { throw BenchError("couldn't read from \(path)") }
      position += count
    }
    return Result(write: write, cold: Double(position) / Double(monotonicNanoseconds() - start) * 1e3)
  }

  /// Drops the system's cached pages of a file. The file must not be mapped.
  static func forget(_ path: String) throws {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    defer { close(file) }
    guard file >= 0, fdatasync(file) == 0, posix_fadvise(file, 0, 0, Int32(POSIX_FADV_DONTNEED)) == 0 else {
      throw BenchError("couldn't have \(path) read from the disk")
    }
  }
}
