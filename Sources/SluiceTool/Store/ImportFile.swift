import Glibc
import SluiceStore

/// Where an export comes from. Used by one thread.
final class ImportFile {
  /// How often it is looked whether anybody still waits for the end.
  private static let interval: Int32 = 200

  private let path: String?
  private let descriptor: Int32
  private let job: StoreJob

  /// - Parameter path: nil for standard input.
  init(_ path: String?, _ job: StoreJob) throws(StoreError) {
    self.path = path
    self.job = job
    guard let path else {
      descriptor = STDIN_FILENO
      return
    }
    descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw StoreError(.failed, unsafe "cannot open \(path): \(String(cString: strerror(errno)))")
    }
  }

  deinit {
    if path != nil { close(descriptor) }
  }

  /// Its bytes, if it is a file.
  var size: UInt64? {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return UInt64(status.st_size)
  }

  func read(_ target: UnsafeMutableRawBufferPointer) -> Result<Int, StoreError> {
    while true {
      var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let isReady = unsafe poll(&waiting, 1, Self.interval)
      if job.isStopped { return .failure(StoreError(.failed, "it was stopped")) }
      if isReady == 0 || (isReady < 0 && errno == EINTR) { continue }
      let count = unsafe Glibc.read(descriptor, target.baseAddress, target.count)
      if count >= 0 { return .success(count) }
      guard errno == EINTR || errno == EAGAIN else {
        return .failure(
          StoreError(
            .failed, unsafe "cannot read \(path ?? "standard input"): \(String(cString: strerror(errno)))"))
      }
    }
  }
}
