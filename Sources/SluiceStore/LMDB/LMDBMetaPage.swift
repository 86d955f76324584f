import Glibc

/// The two pages at the front of LMDB's file: the one with the larger number says what was committed last.
enum LMDBMetaPage {
  /// Where a page has the number of its commit, and the size of all pages, as LMDB 0.9 lays it out for machines with 64 bits.
  private static let numberPosition = 144
  private static let pageSizePosition = 40

  /// Makes commits unseen that came after the one with that number. The disk has it when the file is synced.
  ///
  /// When writing such a page fails LMDB writes the older number over it; and when that fails as well, the next to open the file would find a
  /// commit that was said to have failed. The disk may have got it in any case: before its pages are used again this must be called, and synced.
  /// It must be called again when the sync fails, since the system takes what it couldn't write for written then.
  static func forgetCommits(after last: Int, in path: String) throws(StoreError) {
    let file = open(path, O_RDWR | O_CLOEXEC)
    guard file >= 0 else { throw StoreError(errno: errno, "open", path) }
    defer { close(file) }
    let pageSize = try number(file, path, pageSizePosition, as: UInt32.self)
    for page in 0..<2 {
      let position = page * Int(pageSize) + numberPosition
      let found = try number(file, path, position, as: UInt64.self)
      guard found != UInt64(last) else { continue }
      var older = (found < UInt64(last) ? found : UInt64(max(last - 1, 0))).littleEndian
      guard pwrite(file, &older, 8, position) == 8 else { throw StoreError(errno: errno, "write to", path) }
    }
  }

  private static func number<Number: FixedWidthInteger>(
    _ file: Int32, _ path: String, _ position: Int, as: Number.Type
  ) throws(StoreError) -> Number {
    var number: Number = 0
    let size = MemoryLayout<Number>.size
    guard pread(file, &number, size, position) == size else {
      throw StoreError(errno: errno, "read from", path)
    }
    return Number(littleEndian: number)
  }
}
