extension StoreFinding: CustomStringConvertible {
  /// Where, what, and which records are gone for it, in a line.
  public var description: String {
    var text = name.map { "topic \($0)" } ?? "topic number \(topic.rawValue)"
    if let batch { text += ", batch at offset \(batch)" }
    text += ": \(problem)"
    if let missing, !missing.isEmpty { text += "; \(Self.records(missing)) missing" }
    return text
  }

  private static func records(_ range: Range<UInt64>) -> String {
    range.upperBound - range.lowerBound == 1
      ? "record \(range.lowerBound) is"
      : "records \(range.lowerBound) to \(range.upperBound - 1) are"
  }
}

extension StoreFinding.Problem: CustomStringConvertible {
  public var description: String {
    switch self {
    case .batchTooShort(let bytes): "its \(bytes) bytes can't hold a record"
    case .batchChecksum: "its checksum is wrong"
    case .batchMisplaced(let says): "it says that it begins at \(says)"
    case .batchItems(let why): why
    case .batchRecords(let says, let has): "it says that it has \(says) records, and has \(has)"
    case .batchBytes(let says, let has): "it says that its records have \(says) bytes, and they have \(has)"
    case .batchTimes(let why): why
    case .batchOverlap(let end): "it begins before \(end), where the one in front of it ends"
    case .bytesBefore(let says, let has):
      "it says that there are \(says) bytes of records before it, and there are \(has)"
    case .timeGoesBack(let from, let to): "its first record is of \(to), after one of \(from)"
    case .gap: "a gap"
    case .extentUnreadable: "which records it has can't be read"
    case .extent(let field, let says, let has):
      "it says that its \(field.rawValue) is \(says), where its batches say \(has)"
    case .extentTime(let says, let has):
      "it says that its last record is of \(says), where its batches say \(has)"
    case .row(let why), .rowIsNewer(let why), .name(let why): why
    case .superseded(let other): "it was deleted, and topic number \(other.rawValue) has its name now"
    case .state(let key, let why): "state \(Self.hexadecimal(key)): \(why)"
    case .strays: "there are batches or states, and no topic"
    case .nextTopic(let says): "the next topic would get number \(says.rawValue)"
    }
  }

  /// A word for programs.
  public var code: String {
    switch self {
    case .batchTooShort: "batch-too-short"
    case .batchChecksum: "batch-checksum"
    case .batchMisplaced: "batch-misplaced"
    case .batchItems: "batch-items"
    case .batchRecords: "batch-records"
    case .batchBytes: "batch-bytes"
    case .batchTimes: "batch-times"
    case .batchOverlap: "batch-overlap"
    case .bytesBefore: "bytes-before"
    case .timeGoesBack: "time-goes-back"
    case .gap: "gap"
    case .extentUnreadable: "extent-unreadable"
    case .extent, .extentTime: "extent"
    case .row: "row"
    case .rowIsNewer: "row-is-newer"
    case .name: "name"
    case .superseded: "superseded"
    case .state: "state"
    case .strays: "strays"
    case .nextTopic: "next-topic"
    }
  }

  private static func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = bytes.prefix(32).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    return bytes.count > 32 ? digits + "…" : digits
  }
}
