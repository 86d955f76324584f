import Glibc
import SluiceTLS

/// Puts a new file in the place of another: at each moment there is the one or the other, whole.
package enum FileReplacement {
  /// - Parameter owner: whose it is to be, if not this user's.
  package static func replace(
    _ path: String, with bytes: [UInt8], mode: mode_t, owner: (user: uid_t, group: gid_t)?
  ) throws(AccessFileError) {
    func failure(_ what: String) -> AccessFileError { AccessFileError(path, failing: what) }
    let number = secureRandomBytes(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    let temporary = "\(path).\(String(number, radix: 36))"
    let descriptor = unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw failure("cannot make a new file beside it") }
    do throws(AccessFileError) {
      defer { close(descriptor) }
      if let owner, owner != (geteuid(), getegid()), fchown(descriptor, owner.user, owner.group) != 0 {
        throw failure("belongs to another user, and a new file can't be given to that user")
      }
      guard fchmod(descriptor, mode) == 0, write(bytes, to: descriptor), fsync(descriptor) == 0 else {
        throw failure("cannot write a new file beside it")
      }
      guard unsafe rename(temporary, path) == 0 else { throw failure("cannot be replaced") }
    } catch {
      unsafe unlink(temporary)
      throw error
    }
    syncDirectory(of: path)
  }

  /// Finds the file itself, behind any links: its replacement mustn't replace a link.
  ///
  /// - Parameter making: whether a file that isn't there has a place, too.
  package static func place(
    of path: String, making: Bool
  ) throws(AccessFileError) -> (place: String, wasThere: Bool) {
    var code: Int32 = 0
    // Another process may create it between the two calls, and then the second attempt finds it.
    for _ in 0..<2 {
      if let real = unsafe realpath(path, nil) {
        defer { unsafe free(real) }
        return unsafe (String(cString: real), true)
      }
      code = errno
      var status = stat()
      if making, code == ENOENT, unsafe lstat(path, &status) != 0 { return (path, false) }
    }
    throw AccessFileError(path, failing: "cannot be opened", code: code)
  }

  /// How long another process's change is waited for, in steps of a twentieth of a second.
  static let patience = 600

  /// Runs `body` while no other process is between reading and replacing a file of the same directory in this way.
  ///
  /// The lock is the directory's: the file itself is another one after each change. Blocks.
  package static func locking<Result>(
    directoryOf path: String, _ body: () throws -> Result
  ) throws -> Result {
    let descriptor = unsafe open(directory(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw AccessFileError(path, failing: "cannot be locked") }
    defer { close(descriptor) }
    for _ in 0..<patience {
      if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return try body() }
      guard errno == EWOULDBLOCK || errno == EINTR else {
        throw AccessFileError(path, failing: "cannot be locked")
      }
      usleep(50_000)
    }
    throw AccessFileError(path, "another process is changing it; try again when it is done")
  }

  /// Returns false, with `errno`, when not all could be written.
  static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  package static func directory(of path: String) -> String {
    let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    return slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
  }

  /// So that the new name survives a crash; if that isn't possible, the old file does.
  private static func syncDirectory(of path: String) {
    let descriptor = unsafe open(directory(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fsync(descriptor)
    close(descriptor)
  }
}
