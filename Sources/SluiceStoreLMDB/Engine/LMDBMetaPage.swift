import Glibc
import SluiceStore

/// The two pages at the front of LMDB's file: the one with the larger number says what was committed last.
///
/// All that a commit changes of them is in the first 152 bytes of a page, so within a sector: when the power fails the disk has it, or not.
enum LMDBMetaPage {
  /// The version of the file's format, which LMDB 0.9 writes and this knows. An LMDB that writes another one is a newer one.
  static let formatVersion: UInt32 = 1

  /// Where a page has its magic number, the version of the file's format, the number of its commit, and the size of all pages, as LMDB 0.9 lays it
  /// out for machines with 64 bits.
  static let magicPosition = 16
  static let versionPosition = 20
  static let numberPosition = 144
  static let pageSizePosition = 40
  static let magic: UInt32 = 0xBEEF_C0DE

  /// Checks that the pages of an open file have the layout that this type assumes: its values must match LMDB's.
  ///
  /// When a sync fails, a failed commit is rolled back in these pages. With another layout that can't be done, so nothing may be written then;
  /// reading needs none of it.
  ///
  /// - Parameters:
  ///   - lastCommit: the number of the last commit, as LMDB says.
  ///   - pageSize: the size of pages, as LMDB says.
  ///   - library: the version of LMDB that this process uses.
  /// - Throws: `StoreError.Kind.newer` when the layout is another one.
  static func check(
    _ path: String, lastCommit: Int, pageSize: Int, library: String = LMDBEnvironment.libraryVersion
  ) throws(StoreError) {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw StoreError(errno: errno, "open", path) }
    defer { close(file) }
    var commits: [UInt64] = []
    var isKnown = true
    for page in 0..<2 {
      let start = page * pageSize
      let foundMagic = try number(file, path, start + magicPosition, as: UInt32.self)
      let foundVersion = try number(file, path, start + versionPosition, as: UInt32.self)
      let foundSize = try number(file, path, start + pageSizePosition, as: UInt32.self)
      isKnown =
        isKnown && foundMagic == magic && foundVersion == formatVersion && Int(foundSize) == pageSize
      commits.append(try number(file, path, start + numberPosition, as: UInt64.self))
    }
    guard isKnown, commits.max() == UInt64(lastCommit) else {
      throw StoreError(
        .newer,
        """
        won't write to \(path): this process uses \(library), whose files begin with other pages than those of LMDB 0.9, and a failed commit couldn't be undone. \
        Reading works: sluice store export, verify and stat. To write, run with LMDB 0.9, or export the topics and import them with a version of Sluice for \
        that LMDB
        """)
    }
  }

  /// Makes commits unseen that came after the one with that number.
  ///
  /// When writing such a page fails, LMDB writes the older number over it. If that fails as well, the next process that opens the file would find
  /// a commit that was reported as failed. The disk may have written it in any case: before its pages are reused, call this with `forDisk`, and
  /// sync. Repeat both if the sync fails, since the system then treats unwritten pages as written.
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

/// Brings mapped memory in from the disk, in one go, and finds out whether that can be done: by itself, a page that can't be read ends the process.
enum MappedPages {
  /// Linux 5.14 and later: MADV_POPULATE_READ, which the headers of older ones don't have.
  private static let populateRead: Int32 = 22
  private static let pageBytes = UInt(getpagesize())

  /// Whether all of those bytes can be read now. True if the kernel can't report it.
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
