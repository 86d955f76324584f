import Glibc
import SluiceCommand
import SluiceStore

/// A file that gets its name only once it is whole.
///
/// ```
/// X.1234-89abcdef.partial   while it is written, by process 1234, which holds a lock on it
/// X                         once it is whole
/// ```
///
/// Who writes X is decided with the directory locked. A file under the first name that no process has locked was left behind by one that was killed.
struct PartialFile {
  /// A file of this name without a lock that was written to so recently may be another version's, which takes no lock.
  private static let patience = 3_600

  private static let suffix = ".partial"

  let target: ExportPath
  private let name: String
  let descriptor: Int32

  var path: String { target.directory.path(of: name) }

  /// Makes the file and locks it.
  ///
  /// - Throws: when the target is there, or another process writes it at the moment.
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

  // MARK: What was left behind

  /// Removes files of exports that were killed.
  ///
  /// - Parameter isWanted: whether a name is one that exports of the same kind get.
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

  /// The name that a file gets once it is whole; nil for a file that isn't a part of an export. Earlier versions had no process in the name.
  private static func target(of name: String) -> Substring? {
    guard name.hasSuffix(suffix) else { return nil }
    let stem = name.dropLast(suffix.count)
    guard let dot = stem.lastIndex(of: "."), isProcess(stem[stem.index(after: dot)...]) else { return stem }
    return stem[..<dot]
  }

  /// Whether the file's writer has a lock on it while it writes.
  private static func hasLock(_ name: String) -> Bool { target(of: name) != name.dropLast(suffix.count) }

  /// Whether it is "1234-89abcdef".
  private static func isProcess(_ text: Substring) -> Bool {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    return parts.count == 2 && Int32(parts[0]) != nil && UInt32(parts[1], radix: 16) != nil
  }

  /// The process that writes the file; nil when none does, or it isn't a regular file.
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

/// Where an export goes: a name in a directory.
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

  /// The names of what is in it; none where it can't be read.
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

/// Keeps other exports from comparing and changing names in a directory meanwhile.
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
