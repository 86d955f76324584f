import CLMDB
import Glibc
import SluiceStore

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
