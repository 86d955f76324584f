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
