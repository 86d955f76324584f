import SluiceStore

/// Whether the pages of LMDB's file are in order: those of all tables, and the lists of free ones. Reads the pages of the trees, and one of each large
/// value.
///
/// LMDB can read, write and compact a file that passes. LMDB checks nothing itself: a damaged page could make it read elsewhere in memory, request any
/// amount of memory, or use pages that are in use.
struct PageCheck {
  static let tableNames = ["batches", "garbage", "meta", "states", "topics"]
  /// The kind of a table whose keys are numbers.
  static let numbered: UInt16 = 0x08

  /// The damage, one line each; empty if there is none.
  private(set) var faults: [String] = []

  /// - Parameter progress: called now and then with the number of processed bytes and with all bytes; returns whether to continue.
  /// - Throws: when the file can't be opened, or `progress` returned false.
  init(
    _ path: String, progress: @escaping (_ done: UInt64, _ total: UInt64) -> Bool = { _, _ in true }
  ) throws(StoreError) {
    let file = try PageFile(path)
    let metas = PageMeta.all(of: file)
    guard let meta = metas.first else {
      faults = ["neither of the first two pages is one of a store"]
      return
    }
    var walk = PageWalk(file, meta)
    if metas.count < 2 { walk.note("one of the first two pages is damaged") }
    guard meta.lastPage < UInt64(Int.max / meta.pageSize) else {
      walk.note("the first pages say that there are \(meta.lastPage) pages")
      faults = walk.faults
      return
    }
    let pageSize = UInt64(meta.pageSize)
    walk.progress = { progress($0 * pageSize, (meta.lastPage + 1) * pageSize) }
    let tables = walk.tables(meta)
    for name in Self.tableNames where tables[name] == nil { walk.note("there is no table \(name)") }
    for (name, tree) in tables.sorted(by: { $0.key < $1.key }) { walk.walk(tree, name) { _ in } }
    walk.checkFreePages(meta)
    if walk.isStopped { throw StoreError(.failed, "the check of \(path) was stopped before it was through") }
    faults = walk.faults
    if walk.moreFaults > 0 { faults.append("and \(walk.moreFaults) faults more") }
  }
}

extension PageWalk {
  /// The tables that the main one names.
  mutating func tables(_ meta: PageMeta) -> [String: PageTree] {
    var tables: [String: PageTree] = [:]
    var strange = 0
    walk(meta.main, "of tables") { entry in
      guard entry.isTable, case .here(let bytes) = entry.value, bytes.count == PageTree.descriptionSize,
        let name = String(validating: entry.key, as: UTF8.self), PageCheck.tableNames.contains(name)
      else { return strange += 1 }
      tables[name] = PageTree(bytes)
    }
    if strange > 0 { note("table of tables: it has entries that are none") }
    return tables
  }

  /// Each page is either in use or free, once.
  mutating func checkFreePages(_ meta: PageMeta) {
    var lists: [Entry] = []
    walk(meta.free, "of free pages", flags: PageCheck.numbered, isOrderedByBytes: false) { lists.append($0) }
    var free: UInt64 = 0
    for list in lists {
      guard let bytes = list.bytes(in: file), let count: UInt64 = bytes.number(at: 0),
        count <= UInt64(bytes.count / 8 - 1)
      else {
        note("a list of free pages can't be read")
        continue
      }
      for index in 0..<Int(count) {
        let page: UInt64 = bytes.number(at: 8 * (index + 1)) ?? 0
        guard page > 1, page <= lastPage, seen.insert(page) else {
          note("a list of free pages names page \(page), which isn't free")
          break
        }
        free += 1
      }
    }
    if isSound, used + free != lastPage + 1 {
      note("\(lastPage + 1 - min(used + free, lastPage + 1)) pages are neither in use nor free")
    }
  }
}
