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

/// Numbers of pages: a bit for each page of the file, and those behind its end one by one.
struct PageSet {
  private var bits: [UInt64]
  private var behind: Set<UInt64> = []

  /// - Parameter pages: how many the file has, by its size and not by what is in it.
  init(pages: Int) {
    bits = [UInt64](repeating: 0, count: (pages + 63) / 64)
  }

  /// Returns whether it wasn't there.
  mutating func insert(_ page: UInt64) -> Bool {
    guard page / 64 < UInt64(bits.count) else { return behind.insert(page).inserted }
    let index = Int(page / 64)
    let bit: UInt64 = 1 << (page % 64)
    defer { bits[index] |= bit }
    return bits[index] & bit == 0
  }
}

/// A table of LMDB's as its description says: 48 bytes, in the first pages or in the main table.
struct PageTree {
  static let descriptionSize = 48
  /// The root of a table that is empty.
  static let none = UInt64.max

  var flags: UInt16
  var depth: UInt16
  var branches: UInt64
  var leaves: UInt64
  var overflows: UInt64
  var entries: UInt64
  var root: UInt64

  /// Nil when the bytes aren't all there.
  init?(_ bytes: [UInt8], at position: Int = 0) {
    func field<Number: FixedWidthInteger>(_ offset: Int) -> Number {
      bytes.number(at: position + offset) ?? 0
    }
    guard position + Self.descriptionSize <= bytes.count else { return nil }
    flags = field(4)
    depth = field(6)
    branches = field(8)
    leaves = field(16)
    overflows = field(24)
    entries = field(32)
    root = field(40)
  }
}

/// One of the two pages at the front of the file.
struct PageMeta {
  var pageSize: Int
  var commit: UInt64
  var lastPage: UInt64
  var free: PageTree
  var main: PageTree

  private static let metaFlag: UInt16 = 0x08
  private static let pageSizes = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536]

  /// Nil when the page at that position isn't such a page.
  init?(_ file: PageFile, at position: Int, number: UInt64) {
    guard let bytes = file.bytes(at: position, count: 152), bytes.number(at: 0, as: UInt64.self) == number,
      let flags: UInt16 = bytes.number(at: 10), flags & Self.metaFlag != 0,
      bytes.number(at: LMDBMetaPage.magicPosition) == LMDBMetaPage.magic,
      bytes.number(at: LMDBMetaPage.versionPosition) == LMDBMetaPage.formatVersion,
      let pageSize: UInt32 = bytes.number(at: LMDBMetaPage.pageSizePosition),
      Self.pageSizes.contains(Int(pageSize)), let free = PageTree(bytes, at: 40),
      let main = PageTree(bytes, at: 88), let lastPage: UInt64 = bytes.number(at: 136),
      let commit: UInt64 = bytes.number(at: LMDBMetaPage.numberPosition)
    else { return nil }
    self.pageSize = Int(pageSize)
    self.commit = commit
    self.lastPage = lastPage
    self.free = free
    self.main = main
  }

  /// Both if they are valid, newest first.
  static func all(of file: PageFile) -> [PageMeta] {
    let first = PageMeta(file, at: 0, number: 0)
    let sizes = first.map { [$0.pageSize] } ?? pageSizes
    let second = sizes.lazy.compactMap { size in
      PageMeta(file, at: size, number: 1).flatMap { $0.pageSize == size ? $0 : nil }
    }.first
    return [first, second].compactMap { $0 }.sorted { $0.commit > $1.commit }
  }
}
