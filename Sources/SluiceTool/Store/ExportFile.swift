import Glibc
import SluiceCommand
import SluiceStore

/// The output of an export. Used by one thread.
final class ExportFile {
  private enum Place {
    case standardOutput
    case file(String)
    /// A file that gets its name when it is complete.
    case partial(PartialFile)
  }

  private let place: Place
  private let descriptor: Int32
  private var size: UInt64 = 0
  /// Whether the pipe has no reader any more.
  private(set) var isUnwanted = false

  /// - Parameters:
  ///   - path: a file that must not exist; nil for standard output.
  ///   - isNamedWhenWhole: whether the file has another name until it is complete.
  init(_ path: String?, isNamedWhenWhole: Bool = false) throws(StoreError) {
    guard let path else {
      (place, descriptor) = (.standardOutput, STDOUT_FILENO)
      return
    }
    let target = ExportPath(path)
    if isNamedWhenWhole {
      let partial = try PartialFile(target)
      (place, descriptor) = (.partial(partial), partial.descriptor)
      return
    }
    place = .file(path)
    descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw errno == EEXIST
        ? target.isThere : StoreError(.failed, "cannot create \(path): \(Descriptor.reason())")
    }
  }

  private var path: String? {
    switch place {
    case .standardOutput: nil
    case .file(let path): path
    case .partial(let file): file.path
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> StoreError? {
    let code = unsafe Descriptor.writeAll(bytes, to: descriptor)
    size += UInt64(bytes.count)
    if code == 0 { return nil }
    isUnwanted = code == EPIPE
    return fault(code)
  }

  /// Syncs the file, gives it its name and closes it.
  func finish() throws(StoreError) {
    guard path != nil else { return }
    guard fsync(descriptor) == 0 else { throw fault(errno) }
    if case .partial(let file) = place { try file.finish(size) }
    guard close(descriptor) == 0 else { throw fault(errno) }
  }

  /// Removes the incomplete file.
  func discard() {
    if let path { unsafe unlink(path) }
  }

  private func fault(_ code: Int32) -> StoreError {
    StoreError(
      code == ENOSPC || code == EDQUOT ? .full : .failed,
      "cannot write to \(path ?? "standard output"): \(Descriptor.reason(code))")
  }
}
