import CLMDB
import Glibc
import SluiceStore

extension StoreError {
  /// - Parameters:
  ///   - code: LMDB's, or the system's.
  ///   - attempt: what failed, as in "write to".
  init(lmdb code: Int32, _ attempt: String, _ path: String) {
    let what = "couldn't \(attempt) \(path): "
    switch code {
    case MDB_MAP_FULL:
      self.init(
        .full, what + "the store has reached its limit; drop topics, let them keep less, or raise the limit")
    case ENOSPC:
      self.init(.full, what + "the disk is full; make room on it")
    case EDQUOT:
      self.init(.full, what + "the disk quota is used up; make room or raise it")
    case MDB_CORRUPTED, MDB_PAGE_NOTFOUND:
      self.init(.damaged, what + "the file is damaged (\(Self.text(code))); put a backup in its place")
    case MDB_INVALID:
      self.init(
        .damaged, what + "it isn't a store's file, or its first pages are damaged; put a backup in its place")
    case MDB_VERSION_MISMATCH:
      self.init(
        .newer,
        what
          + "a newer LMDB wrote the file, in a format that \(LMDBEnvironment.libraryVersion) can't read; nothing of it can be used here: export its topics with the software that wrote it (sluice store export), and import them here"
      )
    default:
      self.init(.failed, what + Self.text(code))
    }
  }

  private static func text(_ code: Int32) -> String { unsafe String(cString: mdb_strerror(code)) }

  /// For the system call that has just failed.
  init(errno code: Int32, _ attempt: String, _ path: String) {
    self.init(lmdb: code, attempt, path)
  }
}

/// The file in which LMDB keeps account of readers, by way of memory.
enum LMDBLockFile {
  static func path(beside path: String) -> String { path + "-lock" }

  /// Gives the file its space before LMDB maps it: a page of it that is first touched when the disk is full would end the process.
  static func allocate(beside data: String) throws(StoreError) {
    let path = path(beside: data)
    let file = unsafe Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw StoreError(errno: errno, "open", path) }
    defer { Glibc.close(file) }
    // LMDB takes as many readers as there is room for: 64 bytes for each, and its own header.
    let code = posix_fallocate(file, 0, (LMDBEnvironment.maximumReaders + 2) * 64)
    guard code == 0 else { throw StoreError(errno: code, "reserve space for", path) }
  }
}
