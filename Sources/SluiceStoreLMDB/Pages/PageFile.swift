import Glibc
import SluiceStore

/// LMDB's file read page by page, without LMDB and without a map: for a file whose pages may say anything.
///
/// All sizes and positions that come from the file go through ``bytes(at:count:)``, which refuses what isn't in the file before it takes memory.
final class PageFile {
  let path: String
  /// Bytes of the file.
  let size: Int
  private let descriptor: Int32

  init(_ path: String) throws(StoreError) {
    self.path = path
    descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw StoreError(errno: errno, "open", path) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else {
      let code = errno
      close(descriptor)
      throw StoreError(errno: code, "look at", path)
    }
    size = Int(status.st_size)
  }

  deinit {
    close(descriptor)
  }

  /// So many bytes from there on; nil when they aren't all in the file, or the disk can't read them.
  func bytes(at position: Int, count: Int) -> [UInt8]? {
    guard position >= 0, count >= 0, position <= size, count <= size - position else { return nil }
    var bytes = [UInt8](repeating: 0, count: count)
    var filled = 0
    while filled < count {
      let read = unsafe bytes.withUnsafeMutableBytes { buffer in
        unsafe pread(descriptor, buffer.baseAddress! + filled, count - filled, position + filled)
      }
      if read < 0, errno == EINTR { continue }
      guard read > 0 else { return nil }
      filled += read
    }
    return bytes
  }
}

extension Array<UInt8> {
  /// The little-endian number there; nil when it isn't all there.
  func number<Number: FixedWidthInteger>(at position: Int, as: Number.Type = Number.self) -> Number? {
    let size = MemoryLayout<Number>.size
    guard position >= 0, position <= count - size else { return nil }
    var number: Number = 0
    for index in (0..<size).reversed() {
      number = number << 8 | Number(truncatingIfNeeded: self[position + index])
    }
    return number
  }
}
