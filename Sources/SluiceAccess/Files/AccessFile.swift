import Glibc

/// A file or directory with access rules, opened and checked: only its owner may be able to change it.
final class AccessFile {
  /// The most that is read of one, in bytes.
  static let limit = 16 << 20

  let path: String
  let descriptor: Int32
  let status: stat

  enum Kind {
    case file
    case directory
  }

  /// - Parameter flags: for `open`; only the user may read the files that it creates.
  init(_ path: String, _ kind: Kind = .file, flags: Int32 = O_RDONLY) throws(AccessFileError) {
    self.path = path
    // A pipe without a writer would be waited for.
    descriptor = unsafe open(path, flags | O_CLOEXEC | O_NONBLOCK, 0o600)
    guard descriptor >= 0 else {
      throw AccessFileError(path, failing: "cannot be opened")
    }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else {
      close(descriptor)
      throw AccessFileError(path, failing: "cannot be looked at")
    }
    self.status = status
    try check(kind)
  }

  deinit { close(descriptor) }

  private func check(_ kind: Kind) throws(AccessFileError) {
    let type = status.st_mode & S_IFMT
    switch kind {
    case .file: if type != S_IFREG { throw AccessFileError(path, "isn't a file") }
    case .directory: if type != S_IFDIR { throw AccessFileError(path, "isn't a directory") }
    }
    if status.st_mode & S_IWOTH != 0, !isReadOnly {
      throw AccessFileError(
        path,
        "every user of this machine may change it, and with it the broker's permissions; chmod o-w '\(path)' helps"
      )
    }
  }

  /// Whether it can't be written because its file system is mounted read-only.
  private var isReadOnly: Bool {
    var system = statvfs()
    return unsafe fstatvfs(descriptor, &system) == 0 && system.f_flag & UInt(ST_RDONLY) != 0
  }

  /// The directory that it is in, if every user may put another file in its place there. A directory in which other users may only add
  /// files, such as /tmp, isn't one.
  var replaceableIn: String? {
    let directory = FileReplacement.directory(of: path)
    var status = stat()
    let isReplaceable =
      unsafe stat(directory, &status) == 0 && status.st_mode & S_IWOTH != 0 && status.st_mode & S_ISVTX == 0
    return isReplaceable ? directory : nil
  }

  /// Whether users of other groups may read it.
  var isReadByOthers: Bool { status.st_mode & S_IROTH != 0 }

  /// All that is in it.
  func contents(limit: Int = AccessFile.limit) throws(AccessFileError) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = unsafe Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else {
        throw AccessFileError(path, failing: "cannot be read")
      }
      guard count > 0 else { return bytes }
      bytes += chunk[..<count]
      guard bytes.count <= limit else {
        throw AccessFileError(path, "is longer than \(limit) bytes, which is the limit")
      }
    }
  }
}
