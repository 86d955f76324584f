import SluiceStore

/// Goes through the pages of a table in the order of its keys, and checks everything that LMDB takes for granted. Reads on behind what is damaged.
struct PageWalk {
  /// An entry of a leaf.
  struct Entry {
    var key: [UInt8]
    /// The description of another table.
    var isTable: Bool
    var value: Value

    enum Value {
      case here([UInt8])
      /// In pages of its own, from that position of the file on.
      case pages(at: Int, count: Int)
    }

    /// All of the value; nil when it can't be read.
    func bytes(in file: PageFile) -> [UInt8]? {
      switch value {
      case .here(let bytes): bytes
      case .pages(let position, let count): file.bytes(at: position, count: count)
      }
    }
  }

  private enum Flag {
    static let branch: UInt16 = 0x01
    static let leaf: UInt16 = 0x02
    static let overflow: UInt16 = 0x04
    /// Of pages in memory; it means nothing in the file.
    static let dirty: UInt16 = 0x10
    static let bigValue: UInt16 = 0x01
    static let table: UInt16 = 0x02
  }

  static let headerSize = 16
  private static let nodeSize = 8
  private static let longestKey = 511
  private static let deepest = 32

  let file: PageFile
  let pageSize: Int
  let lastPage: UInt64
  /// Pages that were gone through, of all tables: each may be there once.
  var seen: PageSet
  /// The damage, one line each.
  private(set) var faults: [String] = []
  /// So many more faults there are than ``faults`` has.
  private(set) var moreFaults = 0
  /// Pages in use.
  private(set) var used: UInt64 = 2

  /// Called with the number of pages so far, at each page of a tree; returns whether to continue.
  var progress: (UInt64) -> Bool = { _ in true }
  /// Whether ``progress`` has stopped the walk.
  private(set) var isStopped = false

  private var table = ""
  private var counts = (branches: UInt64(0), leaves: UInt64(0), overflows: UInt64(0), entries: UInt64(0))
  private var before: [UInt8]?
  private var isOrdered = true
  /// The least key that the next leaf may begin with, as the page above says.
  private var least: [UInt8]?

  init(_ file: PageFile, _ meta: PageMeta) {
    self.file = file
    pageSize = meta.pageSize
    lastPage = meta.lastPage
    seen = PageSet(pages: file.size / meta.pageSize + 1)
    _ = seen.insert(0)
    _ = seen.insert(1)
  }

  var isSound: Bool { faults.isEmpty }

  mutating func note(_ fault: String) {
    if faults.count < 1000 { faults.append(fault) } else { moreFaults += 1 }
  }

  /// Goes through a table.
  ///
  /// - Parameters:
  ///   - name: the tree's name in reports of damage.
  ///   - flags: those that the table has to have.
  ///   - isOrderedByBytes: false for keys that are numbers.
  ///   - body: is given each entry that can be read.
  mutating func walk(
    _ tree: PageTree, _ name: String, flags: UInt16 = 0, isOrderedByBytes: Bool = true,
    _ body: (Entry) -> Void
  ) {
    table = name
    counts = (0, 0, 0, 0)
    before = nil
    least = nil
    isOrdered = isOrderedByBytes
    // With the table of free pages the flags of the whole file are kept, above the seven bits of a kind.
    if tree.flags & 0x7F != flags { note("table \(name): its kind is \(tree.flags), where \(flags) is due") }
    if tree.root != PageTree.none { visit(tree.root, depth: 1, tree, body) }
    let isCounted =
      counts.branches == tree.branches && counts.leaves == tree.leaves && counts.overflows == tree.overflows
      && counts.entries == tree.entries
    if !isCounted { note("table \(name): it has other numbers of pages or entries than it says") }
  }

  private mutating func visit(_ number: UInt64, depth: Int, _ tree: PageTree, _ body: (Entry) -> Void) {
    if !isStopped, !progress(used) { isStopped = true }
    guard !isStopped, depth <= Self.deepest, take(number, 1), let page = page(number) else { return }
    let lower = Int(page.number(at: 12, as: UInt16.self) ?? 0)
    let upper = Int(page.number(at: 14, as: UInt16.self) ?? 0)
    let flags = (page.number(at: 10, as: UInt16.self) ?? 0) & ~Flag.dirty
    guard page.number(at: 0, as: UInt64.self) == number, flags == Flag.leaf || flags == Flag.branch,
      (Self.headerSize...pageSize).contains(lower), lower <= upper, upper <= pageSize,
      (lower - Self.headerSize) % 2 == 0
    else { return note("table \(table): page \(number) is no page of a table") }
    let nodes = (lower - Self.headerSize) / 2
    if flags == Flag.branch {
      counts.branches += 1
      if nodes < 2 {
        note("table \(table): page \(number) leads to \(nodes) pages, where at least 2 are due")
      }
      if depth >= Int(tree.depth) {
        note("table \(table): page \(number) is deeper than the table says that it is")
      }
    } else {
      counts.leaves += 1
      if nodes == 0 { note("table \(table): page \(number) has no entries") }
      if depth != Int(tree.depth) {
        note("table \(table): page \(number) has entries at another depth than the table says")
      }
    }
    for index in 0..<nodes {
      guard let start = page.number(at: Self.headerSize + 2 * index, as: UInt16.self).map({ Int($0) }),
        start >= upper, let low: UInt16 = page.number(at: start),
        let high: UInt16 = page.number(at: start + 2),
        let nodeFlags: UInt16 = page.number(at: start + 4), let keySize: UInt16 = page.number(at: start + 6),
        start + Self.nodeSize + Int(keySize) <= pageSize
      else {
        note("table \(table): entry \(index) of page \(number) leads out of the page")
        continue
      }
      let key = Array(page[(start + Self.nodeSize)..<(start + Self.nodeSize + Int(keySize))])
      let size = UInt64(low) | UInt64(high) << 16
      if flags == Flag.branch {
        if index > 0, isOrdered {
          if let before, !before.lexicographicallyPrecedes(key) {
            note("table \(table): page \(number) leads to keys that are elsewhere")
          }
          least = key
        }
        visit(size | UInt64(nodeFlags) << 32, depth: depth + 1, tree, body)
      } else {
        take(key, size: Int(size), nodeFlags, page, at: start + Self.nodeSize + Int(keySize), body)
      }
    }
  }

  private mutating func take(
    _ key: [UInt8], size: Int, _ flags: UInt16, _ page: [UInt8], at start: Int, _ body: (Entry) -> Void
  ) {
    counts.entries += 1
    guard 1...Self.longestKey ~= key.count else {
      return note("table \(table): a key has \(key.count) bytes")
    }
    if isOrdered, let before, !before.lexicographicallyPrecedes(key) {
      note("table \(table): its keys aren't in order")
    }
    if let least = least.take(), isOrdered, key.lexicographicallyPrecedes(least) {
      note("table \(table): keys are smaller than the page above states")
    }
    before = key
    let isTable = flags == Flag.table
    guard flags == 0 || isTable || flags == Flag.bigValue else {
      return note("table \(table): an entry is of kind \(flags)")
    }
    guard flags == Flag.bigValue else {
      guard start + size <= pageSize else {
        return note("table \(table): a value leads out of its page")
      }
      return body(Entry(key: key, isTable: isTable, value: .here(Array(page[start..<start + size]))))
    }
    guard let first: UInt64 = page.number(at: start), start + 8 <= pageSize else {
      return note("table \(table): a value leads out of its page")
    }
    let pages = (Self.headerSize - 1 + size) / pageSize + 1
    guard take(first, pages) else { return }
    counts.overflows += UInt64(pages)
    let header = self.page(first)
    let isSound =
      header?.number(at: 0, as: UInt64.self) == first
      && header?.number(at: 10, as: UInt16.self).map { $0 & ~Flag.dirty } == Flag.overflow
      && header?.number(at: 12, as: UInt32.self) == UInt32(pages)
    if header != nil, !isSound { note("table \(table): page \(first) isn't the first of a value's") }
    let value = Entry.Value.pages(at: Int(first) * pageSize + Self.headerSize, count: size)
    body(Entry(key: key, isTable: false, value: value))
  }

  /// Whether those pages may be used here: they are in the file, and nowhere else in use.
  private mutating func take(_ first: UInt64, _ count: Int) -> Bool {
    guard first <= lastPage, UInt64(count) <= lastPage - first + 1 else {
      note("table \(table): page \(first) is behind the last page")
      return false
    }
    // A value with too many pages for the file isn't gone through page by page.
    guard (Int(first) + count) <= (file.size + pageSize - 1) / pageSize else {
      note("table \(table): page \(first) is cut off")
      return false
    }
    for page in first..<first + UInt64(count) {
      guard seen.insert(page) else {
        note("table \(table): page \(page) is in use twice")
        return false
      }
    }
    used += UInt64(count)
    return true
  }

  private mutating func page(_ number: UInt64) -> [UInt8]? {
    if let page = file.bytes(at: Int(number) * pageSize, count: pageSize) { return page }
    note("table \(table): page \(number) can't be read")
    return nil
  }
}
