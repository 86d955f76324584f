import Glibc
import SluiceStore

/// The directory that a store has for itself, and the lock that keeps others out of it.
///
/// ```
/// lock           held as long as the store is open; the holder's process id is in it
/// data.mdb       all there is
/// data.mdb-lock  LMDB's table of readers; has no meaning while no process has the store open
/// reserve        space to be had when the disk is full
/// new.mdb        a store that is being made
/// ```
struct StoreDirectory {
  static let lockName = "lock"
  static let dataName = "data.mdb"
  static let reserveName = "reserve"
  static let newName = "new.mdb"

  let path: String
  // Looked at before each commit.
  let data: String
  let lock: String

  var reserve: DiskReserve { DiskReserve(path: "\(path)/\(Self.reserveName)") }
  var new: String { "\(path)/\(Self.newName)" }

  /// - Throws: `StoreError.Kind.notAStore` when there is no directory, or one that isn't a store's.
  init(_ path: String, isCreating: Bool = false) throws(StoreError) {
    self.path = path
    data = "\(path)/\(Self.dataName)"
    lock = "\(path)/\(Self.lockName)"
    var isMade = false
    if isCreating {
      isMade = unsafe mkdir(path, 0o700) == 0
      guard isMade || errno == EEXIST else { throw StoreError(errno: errno, "make the directory", path) }
    }
    var status = stat()
    guard unsafe stat(path, &status) == 0 else {
      guard errno == ENOENT else { throw StoreError(errno: errno, "open", path) }
      throw StoreError(.notAStore, "there is no store at \(path): no such directory")
    }
    guard status.st_mode & S_IFMT == S_IFDIR else {
      throw StoreError(.notAStore, "there is no store at \(path): it isn't a directory")
    }
    if isMade { try sync(parent(of: path)) }
    try checkNames(isCreating: isCreating)
    try checkData()
    if isCreating { try tighten(status) }
  }

  /// LMDB would wait for a writer of a pipe, and make an environment of an empty file.
  private func checkData() throws(StoreError) {
    var status = stat()
    guard unsafe stat(data, &status) == 0 else {
      guard errno == ENOENT else { throw StoreError(errno: errno, "open", data) }
      return
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw StoreError(.notAStore, "there is no store at \(path): \(data) isn't a file")
    }
    guard status.st_size > 0 else {
      throw StoreError(
        .damaged, "\(data) is empty; put a backup in its place, or remove it to begin without any topics")
    }
  }

  private func checkNames(isCreating: Bool = false) throws(StoreError) {
    guard let directory = unsafe opendir(path) else { throw StoreError(errno: errno, "open", path) }
    defer { unsafe closedir(directory) }
    var stranger: String?
    var hasData = false
    while let entry = unsafe readdir(directory) {
      let name = unsafe withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      switch name {
      case Self.dataName: hasData = true
      // A file system of its own has a `lost+found`.
      case ".", "..", "lost+found", Self.lockName, Self.reserveName, Self.newName: break
      case LMDBLockFile.path(beside: Self.dataName), LMDBLockFile.path(beside: Self.newName): break
      default: stranger = name
      }
    }
    guard !hasData else { return }
    guard isCreating else {
      throw StoreError(.notAStore, "there is no store at \(path): it has no \(Self.dataName)")
    }
    if let stranger {
      throw StoreError(
        .notAStore,
        "won't make a store at \(path): something else is there (\(stranger)); name an empty directory")
    }
  }

  /// Keeps other users out. A directory that was made for the store by an installer, or as a mount point, often lets them in; one that is for
  /// all to write to was not meant for it.
  private func tighten(_ status: stat) throws(StoreError) {
    guard status.st_mode & 0o077 != 0 else { return }
    guard status.st_mode & S_ISVTX == 0 else {
      throw StoreError(
        .notAStore, "won't have a store at \(path): all users share that directory; name one of your own")
    }
    guard unsafe chmod(path, 0o700) == 0 else {
      throw StoreError(errno: errno, "keep other users out of", path)
    }
  }

  private func parent(of path: String) -> String { "\(path)/.." }

  private func sync(_ directory: String) throws(StoreError) {
    let descriptor = unsafe Glibc.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw StoreError(errno: errno, "open", directory) }
    defer { Glibc.close(descriptor) }
    guard fsync(descriptor) == 0 else { throw StoreError(errno: errno, "sync", directory) }
  }

  var hasData: Bool { unsafe access(data, F_OK) == 0 }

  /// Removes the remains of an unfinished store.
  func removeNew() {
    unsafe unlink(new)
    unsafe unlink(LMDBLockFile.path(beside: new))
  }

  /// Replaces the existing store by the new one, durably.
  func adoptNew() throws(StoreError) {
    unsafe unlink(LMDBLockFile.path(beside: new))
    guard unsafe rename(new, data) == 0 else { throw StoreError(errno: errno, "rename", new) }
    try sync(path)
  }
}

/// Keeps a store to one process, and to one place in it, until it is released or goes away.
// @unchecked: `descriptor` changes in ``release()`` only, which is called under the lock of the store that has it, or by its only owner.
final class StoreLock: @unchecked Sendable {
  private var descriptor: Int32

  /// - Parameter isShared: Others may hold it that share it, too.
  /// - Throws: `StoreError.Kind.inUse`.
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

  /// Whether another process has the store open for writing.
  ///
  /// - Parameter data: the store's file.
  static func isHeld(beside data: String) -> Bool {
    let directory = data.dropLast(StoreDirectory.dataName.utf8.count)
    let descriptor = unsafe open("\(directory)\(StoreDirectory.lockName)", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
  }

  /// Whether its file still has its name there.
  func isIn(_ directory: StoreDirectory) -> Bool {
    descriptor < 0 || directory.lock.names(descriptor)
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

extension String {
  /// Whether the path leads to the open file.
  func names(_ descriptor: Int32) -> Bool {
    var (here, there) = (stat(), stat())
    guard unsafe fstat(descriptor, &here) == 0, unsafe stat(self, &there) == 0 else { return false }
    return here.st_ino == there.st_ino && here.st_dev == there.st_dev
  }
}

/// A file that only takes space, so that there is some to be had when the disk is full: to a copy-on-write tree even giving back takes space first.
struct DiskReserve {
  static let bytes = 1 << 20

  let path: String

  /// Takes as much as there is, up to ``bytes``. Returns whether it has them all.
  func take() -> Bool {
    let file = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard file >= 0 else { return false }
    defer { close(file) }
    var bytes = Self.bytes
    while bytes > 0 {
      if posix_fallocate(file, 0, bytes) == 0 { return bytes == Self.bytes }
      ftruncate(file, 0)
      bytes -= Self.bytes / 16
    }
    return false
  }

  func giveBack() {
    let file = unsafe open(path, O_RDWR | O_CLOEXEC)
    guard file >= 0 else { return }
    ftruncate(file, 0)
    close(file)
  }
}
