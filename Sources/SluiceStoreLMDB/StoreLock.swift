import Glibc
import SluiceStore

/// Keeps a store to one process, and to one place in it, until it is released or goes away.
// @unchecked: released once, by the closing of the store.
final class StoreLock: @unchecked Sendable {
  private var descriptor: Int32

  /// - Parameter isShared: Others may hold it that share it, too.
  /// - Throws: ``StoreError/Kind/inUse``.
  init(_ directory: String, isShared: Bool) throws(StoreError) {
    let path = "\(directory)/\(StoreDirectory.lockName)"
    var descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    if descriptor < 0, isShared {
      let code = errno
      descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
      if descriptor < 0, errno == ENOENT, code == EROFS {
        // Nothing can be written there, so there is no process to keep out.
        self.descriptor = -1
        return
      }
      if errno == ENOENT { errno = code }
    }
    guard descriptor >= 0 else { throw StoreError(errno: errno, "open", path) }
    guard flock(descriptor, (isShared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0 else {
      let code = errno
      defer { close(descriptor) }
      guard code == EWOULDBLOCK else { throw StoreError(errno: code, "lock", path) }
      let holder = Self.holder(descriptor).map { "process \($0)" } ?? "another process"
      throw StoreError(
        .inUse, "the store at \(directory) is in use by \(holder); stop that, or name another directory")
    }
    self.descriptor = descriptor
    // Always of the same length, so that it needs no more space on a full disk. Its readers can do without.
    let digits = Array(String(getpid()).utf8)
    let text =
      digits + Array(repeating: UInt8(ascii: " "), count: max(0, 15 - digits.count)) + [UInt8(ascii: "\n")]
    _ = unsafe text.withUnsafeBytes { unsafe pwrite(descriptor, $0.baseAddress, $0.count, 0) }
  }

  deinit {
    release()
  }

  func release() {
    guard descriptor >= 0 else { return }
    // A child process that is just being started has the descriptor as well, until it runs its program.
    flock(descriptor, LOCK_UN)
    close(descriptor)
    descriptor = -1
  }

  private static func holder(_ descriptor: Int32) -> Int? {
    var text = [UInt8](repeating: 0, count: 16)
    let count = unsafe text.withUnsafeMutableBytes { unsafe pread(descriptor, $0.baseAddress, $0.count, 0) }
    guard count > 0 else { return nil }
    return Int(String(decoding: text[..<count].prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self))
  }
}
