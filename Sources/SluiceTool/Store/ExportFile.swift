import Glibc
import SluiceCommand
import SluiceStore

/// Where an export goes. Used by one thread.
final class ExportFile {
  private let path: String?
  private let descriptor: Int32
  /// That whoever reads wants no more.
  private(set) var isUnwanted = false

  /// - Parameter path: of a file that isn't there yet; nil for standard output.
  init(_ path: String?) throws(StoreError) {
    self.path = path
    guard let path else {
      descriptor = STDOUT_FILENO
      return
    }
    descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw StoreError(
        .failed,
        errno == EEXIST
          ? "\(path) is there already; remove it, or name another file"
          : unsafe "cannot make \(path): \(String(cString: strerror(errno)))")
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> StoreError? {
    let code = unsafe Descriptor.writeAll(bytes, to: descriptor)
    if code == 0 { return nil }
    isUnwanted = code == EPIPE
    return fault(code)
  }

  /// All is written: has it on disk.
  func finish() throws(StoreError) {
    guard path != nil else { return }
    guard fsync(descriptor) == 0, close(descriptor) == 0 else { throw fault(errno) }
  }

  /// Removes a file that isn't whole.
  func discard() {
    if let path { unsafe unlink(path) }
  }

  private func fault(_ code: Int32) -> StoreError {
    StoreError(
      code == ENOSPC || code == EDQUOT ? .full : .failed,
      unsafe "cannot write to \(path ?? "standard output"): \(String(cString: strerror(code)))")
  }
}
