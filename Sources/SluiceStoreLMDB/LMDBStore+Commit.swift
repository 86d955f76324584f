import CLMDB
import SluiceStore

extension LMDBStore {
  /// As ``TopicStore`` says. Of what is before ``TopicChange/truncateBefore`` so many batches are dropped as keep the commit short: at least twice as
  /// many as are added to the topic. The rest goes at the next time.
  public func commit(_ changes: [TopicChange]) throws(StoreError) {
    let takes = changes.contains { !$0.batches.isEmpty }
    let frees = changes.contains { $0.truncateBefore != nil }
    let bytes = changes.reduce(0) { $0 + $1.batches.reduce(0) { $0 + $1.bytes } }
    try write(!takes ? .frees : frees ? .takesAndFrees : .takes, bytes: bytes) {
      transaction, tables throws(StoreError) in
      var writer = try LMDBWriter(transaction, tables)
      for change in changes { try writer.apply(change) }
      try writer.finish(isMarkedOpen: isMarkedOpen)
    }
    isMarkedOpen = true
  }

  func markClosed() throws(StoreError) {
    try write(.frees) { transaction, tables throws(StoreError) in
      let closed: UInt8? = try transaction.number(tables.meta, .closed)
      if closed != 1 { try transaction.put(number: UInt8(1), tables.meta, .closed) }
    }
    isMarkedOpen = false
  }

  public func reclaim() throws(StoreError) -> Bool {
    let isEmpty = try read { reader throws(StoreError) in
      let cursor = try LMDBCursor(reader.tables.garbage, in: reader.transaction)
      defer { cursor.close() }
      return try unsafe cursor.last() == nil
    }
    if isEmpty { return false }
    return try write(.frees) { transaction, tables throws(StoreError) in
      let writer = try LMDBWriter(transaction, tables)
      return try writer.reclaim()
    }
  }
}
