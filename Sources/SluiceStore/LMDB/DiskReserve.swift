import Glibc

/// A file that only takes space, so that there is some to be had when the disk is full: to a copy-on-write tree even giving back takes space first.
struct DiskReserve {
  private static let bytes = 1 << 20
  private static let leastBytes = 64 << 10

  let path: String

  /// Takes as much as there is, up to 1 MiB. Does nothing when it has it already.
  func take() {
    let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard file >= 0 else { return }
    defer { close(file) }
    var bytes = Self.bytes
    while bytes >= Self.leastBytes {
      if posix_fallocate(file, 0, bytes) == 0 { return }
      ftruncate(file, 0)
      bytes /= 2
    }
  }

  func giveBack() {
    let file = open(path, O_RDWR | O_CLOEXEC)
    guard file >= 0 else { return }
    ftruncate(file, 0)
    close(file)
  }
}
