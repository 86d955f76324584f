import SluiceStore

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
    guard let flags: UInt16 = bytes.number(at: position + 4),
      let depth: UInt16 = bytes.number(at: position + 6),
      let branches: UInt64 = bytes.number(at: position + 8),
      let leaves: UInt64 = bytes.number(at: position + 16),
      let overflows: UInt64 = bytes.number(at: position + 24),
      let entries: UInt64 = bytes.number(at: position + 32),
      let root: UInt64 = bytes.number(at: position + 40)
    else { return nil }
    self.flags = flags
    self.depth = depth
    self.branches = branches
    self.leaves = leaves
    self.overflows = overflows
    self.entries = entries
    self.root = root
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

  /// Both, where they are in order, the one that was written last in front.
  static func all(of file: PageFile) -> [PageMeta] {
    let first = PageMeta(file, at: 0, number: 0)
    let sizes = first.map { [$0.pageSize] } ?? pageSizes
    let second = sizes.lazy.compactMap { size in
      PageMeta(file, at: size, number: 1).flatMap { $0.pageSize == size ? $0 : nil }
    }.first
    return [first, second].compactMap { $0 }.sorted { $0.commit > $1.commit }
  }
}
