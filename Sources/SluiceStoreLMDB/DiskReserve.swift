import Glibc
import SluiceStore

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
