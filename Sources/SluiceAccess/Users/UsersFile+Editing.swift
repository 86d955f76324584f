import Glibc

extension UsersFile {
  /// Reads a file. Blocks.
  public static func read(_ path: String) throws(AccessFileError) -> UsersFile {
    try UsersFile(try AccessFile(path).contents(), path: path)
  }

  /// Changes a file, as a whole or not at all: the new one is beside it until it is on disk, and takes its place then, with its owner and mode. Waits
  /// for other processes that change it in this way. Blocks. A link is followed.
  ///
  /// - Parameters:
  ///   - path: the file's.
  ///   - making: whether a file that isn't there is begun, which only its owner may read.
  ///   - change: isn't called for a file that can't be read. When it throws, nothing has happened.
  /// - Returns: whether the file was made.
  @discardableResult
  public static func edit(
    _ path: String, making: Bool = false, _ change: (inout UsersFile) throws(AccessFileError) -> Void
  ) throws(AccessFileError) -> Bool {
    let (place, wasThere) = try FileReplacement.place(of: path, making: making)
    let file = try lock(place, making: making)
    let old = try file.contents()
    // Another's new file isn't empty once the lock is ours.
    let isNew = !wasThere && old.isEmpty
    var users = try UsersFile(old, path: path)
    do throws(AccessFileError) {
      try change(&users)
      try FileReplacement.replace(
        place, with: users.bytes, mode: file.status.st_mode & 0o777,
        owner: (file.status.st_uid, file.status.st_gid))
    } catch {
      if isNew { unsafe unlink(place) }
      throw error
    }
    return isNew
  }

  private static func lock(_ path: String, making: Bool) throws(AccessFileError) -> AccessFile {
    for _ in 0..<FileReplacement.patience {
      let file = try AccessFile(path, flags: O_RDWR | (making ? O_CREAT : 0))
      if flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 {
        // The process that had the lock may have put another file in its place.
        var status = stat()
        if unsafe stat(path, &status) == 0, status.st_ino == file.status.st_ino,
          status.st_dev == file.status.st_dev
        {
          return file
        }
        continue
      }
      guard errno == EWOULDBLOCK || errno == EINTR else {
        throw AccessFileError(path, failing: "cannot be locked")
      }
      usleep(50_000)
    }
    throw AccessFileError(path, "another process is changing it; try again when it is done")
  }
}
