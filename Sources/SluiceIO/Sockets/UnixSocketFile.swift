import Glibc

/// The file that stands for a listening Unix socket.
struct UnixSocketFile: Sendable {
  let path: String
  private let device: dev_t
  private let number: ino_t

  /// The file at `path`, made by `bind` just now; nil if there is none.
  init?(path: String) {
    var status = stat()
    guard unsafe lstat(path, &status) == 0 else { return nil }
    self.path = path
    device = status.st_dev
    number = status.st_ino
  }

  /// Removes the file, unless another one has taken its place.
  func remove() {
    var status = stat()
    guard unsafe lstat(path, &status) == 0, status.st_dev == device, status.st_ino == number else { return }
    _ = unsafe unlink(path)
  }

  /// Removes the socket file that a killed process has left at `path`: one at which no process answers.
  ///
  /// Returns false, and removes nothing, if a process answers or the file isn't a socket.
  static func removeStale(at path: String) -> Bool {
    var status = stat()
    guard unsafe lstat(path, &status) == 0 else { return errno == ENOENT }
    guard status.st_mode & S_IFMT == S_IFSOCK, let address = RawAddress(unixPath: path) else { return false }
    let descriptor = Socket.open(AF_UNIX)
    guard descriptor >= 0 else { return false }
    defer { _ = Glibc.close(descriptor) }
    guard Socket.connect(descriptor, to: address) == ECONNREFUSED else { return false }
    return unsafe unlink(path) == 0
  }
}
