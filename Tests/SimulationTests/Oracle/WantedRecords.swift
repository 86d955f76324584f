import SluiceLog
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

extension RecordFilter {
  /// Whether the filter passes a record, evaluated condition by condition.
  func wants(_ record: BatchIterator.Record) -> Bool {
    if isEmpty { return true }
    guard record.isAttributed, let attributes = try? RecordAttributes(record.body) else { return false }
    var headers: [(name: [UInt8], value: [UInt8])] = []
    attributes.forEachHeader { headers.append((Array($0), Array($1))) }
    return wants(key: attributes.key.map { Array($0) }, headers: headers)
  }

  func wants(key: [UInt8]?, headers: [(name: [UInt8], value: [UInt8])]) -> Bool {
    conditions.allSatisfy { condition in
      switch condition.subject {
      case .key: key.map(condition.test.holds) ?? false
      case .header(let name):
        headers.contains { $0.name == Array(name.utf8) && condition.test.holds($0.value) }
      }
    }
  }
}

extension RecordFilter.Test {
  fileprivate func holds(_ value: [UInt8]) -> Bool {
    switch self {
    case .exists: true
    case .equals(let wanted): value == wanted
    case .hasPrefix(let prefix): value.starts(with: prefix)
    }
  }
}

extension TopicEpoch {
  /// Whether a filter passes any record from `offset` on, including records dropped since; nil if that depends on an unknown record.
  func wants(_ filter: RecordFilter, from offset: UInt64) -> Bool? {
    guard let head else { return nil }
    readLog()
    let answers = (offset..<max(offset, head)).map { wants(filter, at: $0) }
    return answers.contains(true) ? true : answers.contains(nil) ? nil : false
  }

  /// The first record from `offset` on that a filter passes, among those the broker still has; nil if there is none.
  func firstWanted(by filter: RecordFilter, from offset: UInt64) -> UInt64? {
    guard let log = topic?.log else { return nil }
    var (cursor, _) = log.cursor(at: .offset(offset), from: 0)
    while case .slice(let slice) = log.next(&cursor, bytes: .max) {
      var records = BatchIterator(slice.bytes, count: UInt32(slice.count), time: 0)
      var offset = slice.firstOffset
      while let record = try? records.next() {
        if filter.wants(record) { return offset }
        offset += 1
      }
    }
    return nil
  }
}
