import Glibc
import SluiceStore

/// Brings mapped memory in from the disk, in one go, and finds out whether that can be done: by itself, a page that can't be read ends the process.
enum MappedPages {
  /// Linux 5.14 and later: MADV_POPULATE_READ, which the headers of older ones don't have.
  private static let populateRead: Int32 = 22
  private static let pageBytes = UInt(getpagesize())

  /// Whether all of those bytes are there to be read now. Taken for granted by a kernel that can't tell.
  static func load(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let base = bytes.baseAddress, bytes.count > 0 else { return true }
    let start = UInt(bitPattern: base) & ~(pageBytes - 1)
    let length = Int(UInt(bitPattern: base) - start) + bytes.count
    while unsafe madvise(UnsafeMutableRawPointer(bitPattern: start), length, populateRead) != 0 {
      switch errno {
      case EAGAIN, EINTR: continue
      case EINVAL: return true
      default: return false
      }
    }
    return true
  }
}
