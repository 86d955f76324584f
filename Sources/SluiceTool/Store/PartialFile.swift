import Glibc
import SluiceCommand
import SluiceStore

/// A file that gets its name only when it is complete.
///
/// ```
/// X.1234-89abcdef.partial   while process 1234 writes it, with a lock on it
/// X                         when it is complete
/// ```
///
/// A process chooses itself as the writer of X with the directory locked. A partial file without a lock was left by a killed process.
struct PartialFile {
  /// In seconds. An unlocked partial file that was written more recently may be in use by another version, which takes no lock.
  private static let patience = 3_600

  private static let suffix = ".partial"

  let target: ExportPath
  private let name: String
  let descriptor: Int32

  var path: String { target.directory.path(of: name) }

  /// Creates the file and locks it.
  ///
  /// - Throws: ``StoreError`` if the target exists, or if another process is writing it.
  init(_ target: ExportPath) throws(StoreError) {
    self.target = target
    let lock = try DirectoryLock(target.directory.path)
    defer { lock.release() }
    guard unsafe access(target.path, F_OK) != 0 else { throw target.isThere }
    for other in target.directory.names where Self.target(of: other) == target.name {
      guard let writer = Self.writer(of: target.directory.path(of: other)) else { continue }
      throw StoreError(
        .failed,
        "\(target.path) is being written by another export (\(writer)); wait for it, or name another file"
      )
    }
    name = "\(target.name).\(getpid())-\(String(UInt32.random(in: 0 ... .max), radix: 16))\(Self.suffix)"
    let path = target.directory.path(of: name)
    descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw StoreError(.failed, "cannot create \(path): \(Descriptor.reason())")
    }
    _ = flock(descriptor, LOCK_EX | LOCK_NB)
  }

  /// Gives the file its name, and syncs the directory.
  ///
  /// - Parameter size: how many bytes were written.
  func finish(_ size: UInt64) throws(StoreError) {
    let lock = try DirectoryLock(target.directory.path)
    defer { lock.release() }
    var (opened, named) = (stat(), stat())
    guard unsafe fstat(descriptor, &opened) == 0, unsafe stat(path, &named) == 0,
      opened.st_ino == named.st_ino, opened.st_dev == named.st_dev, UInt64(opened.st_size) == size
    else {
      throw StoreError(
        .failed, "\(path) was removed or changed while it was written; export again, to another name")
    }
    guard unsafe access(target.path, F_OK) != 0 else { throw target.isThere }
    guard unsafe rename(path, target.path) == 0 else {
      throw StoreError(.failed, "cannot rename \(path) to \(target.path): \(Descriptor.reason())")
    }
    guard lock.sync() else {
      throw StoreError(.failed, "cannot sync \(target.directory.path): \(Descriptor.reason())")
    }
  }

  // MARK: Abandoned files

  /// Removes partial files of killed exports.
  ///
  /// - Parameter isWanted: whether exports of the same kind can get a name.
  static func removeAbandoned(in directory: ExportDirectory, where isWanted: (Substring) -> Bool) {
    guard let lock = try? DirectoryLock(directory.path) else { return }
    defer { lock.release() }
    for name in directory.names {
      guard let target = target(of: name), isWanted(target) else { continue }
      let path = directory.path(of: name)
      guard writer(of: path) == nil, hasLock(name) || isOld(path) else { continue }
      unsafe unlink(path)
    }
  }

  /// The name that a file gets when it is complete; nil if it isn't a partial export. Names of earlier versions don't contain a process.
  private static func target(of name: String) -> Substring? {
    guard name.hasSuffix(suffix) else { return nil }
    let stem = name.dropLast(suffix.count)
    guard let dot = stem.lastIndex(of: "."), isProcess(stem[stem.index(after: dot)...]) else { return stem }
    return stem[..<dot]
  }

  /// Whether the file's writer locks it, as its name shows.
  private static func hasLock(_ name: String) -> Bool { target(of: name) != name.dropLast(suffix.count) }

  /// Whether it is "1234-89abcdef".
  private static func isProcess(_ text: Substring) -> Bool {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    return parts.count == 2 && Int32(parts[0]) != nil && UInt32(parts[1], radix: 16) != nil
  }

  /// The process that writes the file; nil if none does, or if it isn't a regular file.
  private static func writer(of path: String) -> String? {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard file >= 0 else { return nil }
    defer { close(file) }
    guard flock(file, LOCK_SH | LOCK_NB) != 0, errno == EWOULDBLOCK else { return nil }
    let process = path.dropLast(suffix.count).split(separator: ".").last?.prefix { $0 != "-" }
    return process.map { "process \($0)" } ?? "another process"
  }

  private static func isOld(_ path: String) -> Bool {
    var status = stat()
    guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
    return time(nil) - status.st_mtim.tv_sec > patience
  }
}

/// The path of an export: a directory and a name.
struct ExportPath {
  let path: String
  let directory: ExportDirectory
  let name: Substring

  init(_ path: String) {
    self.path = path
    let slash = path.lastIndex(of: "/")
    directory = ExportDirectory(path: slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? ".")
    name = slash.map { path[path.index(after: $0)...] } ?? path[...]
  }

  var isThere: StoreError {
    StoreError(.failed, "\(path) exists already; remove it, or name another file")
  }
}

struct ExportDirectory {
  let path: String

  func path(of name: some StringProtocol) -> String { path == "/" ? "/\(name)" : "\(path)/\(name)" }

  /// The names of its entries; empty if it can't be read.
  var names: [String] {
    guard let opened = unsafe opendir(path) else { return [] }
    defer { unsafe closedir(opened) }
    var names: [String] = []
    while let entry = unsafe readdir(opened) {
      unsafe withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        unsafe names.append(String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self))
      }
    }
    return names
  }

  func isFile(_ name: String) -> Bool {
    var status = stat()
    return unsafe lstat(path(of: name), &status) == 0 && status.st_mode & S_IFMT == S_IFREG
  }
}

/// A lock on a directory, under which exports compare and change names.
private struct DirectoryLock {
  private let descriptor: Int32

  init(_ path: String) throws(StoreError) {
    descriptor = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw StoreError(.failed, "cannot open \(path): \(Descriptor.reason())")
    }
    while flock(descriptor, LOCK_EX) != 0, errno == EINTR {}
  }

  func sync() -> Bool { fsync(descriptor) == 0 }

  func release() { close(descriptor) }
}
