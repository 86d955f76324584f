import Glibc

/// The two pages at the front of LMDB's file: the one with the larger number says what was committed last.
///
/// All that a commit changes of them is in the first 152 bytes of a page, so within a sector: when the power fails the disk has it, or not.
enum LMDBMetaPage {
  /// Where a page has the number of its commit, and the size of all pages, as LMDB 0.9 lays it out for machines with 64 bits.
  private static let numberPosition = 144
  private static let pageSizePosition = 40

  /// Makes commits unseen that came after the one with that number.
  ///
  /// When writing such a page fails LMDB writes the older number over it; and when that fails as well, the next to open the file would find a
  /// commit that was said to have failed. The disk may have got it in any case: before its pages are used again this must be called `forDisk`, and
  /// synced; and both again when the sync fails, since the system takes what it couldn't write for written then.
  ///
  /// - Parameter forDisk: Writes what covers such a commit once more, even if nothing is seen of it.
  static func forgetCommits(after last: Int, in path: String, forDisk: Bool) throws(StoreError) {
    let file = unsafe open(path, O_RDWR | O_CLOEXEC)
    guard file >= 0 else { throw StoreError(errno: errno, "open", path) }
    defer { close(file) }
    let pageSize = try number(file, path, pageSizePosition, as: UInt32.self)
    for page in 0..<2 {
      let position = page * Int(pageSize) + numberPosition
      let found = try number(file, path, position, as: UInt64.self)
      guard forDisk ? found != UInt64(last) : found > UInt64(last) else { continue }
      var older = (found < UInt64(last) ? found : UInt64(max(last - 1, 0))).littleEndian
      let written = unsafe pwrite(file, &older, 8, position)
      guard written == 8 else { throw StoreError(errno: written < 0 ? errno : EIO, "write to", path) }
    }
  }

  private static func number<Number: FixedWidthInteger>(
    _ file: Int32, _ path: String, _ position: Int, as: Number.Type
  ) throws(StoreError) -> Number {
    var number: Number = 0
    let size = MemoryLayout<Number>.size
    let found = unsafe pread(file, &number, size, position)
    guard found == size else { throw StoreError(errno: found < 0 ? errno : EIO, "read from", path) }
    return Number(littleEndian: number)
  }
}
