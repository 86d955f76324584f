import FoundationEssentials

/// The engine's acknowledgement of stored messages.
public struct PublishAcknowledgement: Hashable, Sendable {
  public var stream: String
  /// The sequence of the message, or of a batch's last one; the others of the batch have the sequences before it.
  public var sequence: UInt64
  /// The engine already had a message with this ID, at ``sequence``, and has stored nothing.
  public var isDuplicate = false
  /// The number of messages in a batch; 1 for a single message.
  public var count: UInt64 = 1

  public init(stream: String, sequence: UInt64, isDuplicate: Bool = false, count: UInt64 = 1) {
    self.stream = stream
    self.sequence = sequence
    self.isDuplicate = isDuplicate
    self.count = count
  }

  /// Reads an answer to a publication.
  ///
  /// Acknowledgements arrive by the thousands: usual ones are parsed in place, all others as JSON.
  ///
  /// - Throws: the engine's error, or ``NATSError/Code-swift.struct/malformedAnswer``.
  init(_ json: NATSBytes, server: String) throws(NATSError) {
    if let acknowledgement = Self(scanning: json) {
      self = acknowledgement
    } else {
      try self.init(decoding: json, server: server)
    }
  }

  private struct Answer: Decodable {
    var error: EngineError?
    var stream: String?
    var seq: UInt64?
    var duplicate: Bool?
    var count: UInt64?
  }

  init(decoding json: NATSBytes, server: String) throws(NATSError) {
    guard let answer = try? JSONDecoder().decode(Answer.self, from: Data(json.array)) else {
      throw NATSError(
        .malformedAnswer,
        "the answer to a publication isn't the JSON that it should be; is JetStream's version 2.12 or later?",
        server: server)
    }
    if let error = answer.error { throw NATSError(error, stream: answer.stream, server: server) }
    guard let stream = answer.stream, let sequence = answer.seq, sequence > 0 else {
      throw NATSError(
        .malformedAnswer, "the answer to a publication has no stream or no sequence", server: server)
    }
    self.init(
      stream: stream, sequence: sequence, isDuplicate: answer.duplicate ?? false, count: answer.count ?? 1)
  }

  /// Parses `{"stream":"S","seq":3,"batch":"b","count":3}`: one object of texts without escapes, numbers, `true` and `false`.
  ///
  /// - Returns: nil for anything else, errors included.
  init?(scanning json: NATSBytes) {
    var scanner = FlatObject(json)
    var (stream, sequence, isDuplicate, count): (String?, Int?, Bool, Int?) = (nil, nil, false, nil)
    guard scanner.begin() else { return nil }
    while let (name, value) = scanner.next() {
      switch value {
      case .text(let text) where name == "stream":
        guard stream == nil else { return nil }
        stream = text.text
      case .number(let number) where name == "seq":
        guard sequence == nil else { return nil }
        sequence = number
      case .number(let number) where name == "count":
        guard count == nil else { return nil }
        count = number
      case .flag(let flag) where name == "duplicate": isDuplicate = flag
      case .text where name == "batch" || name == "domain" || name == "val": break
      default: return nil
      }
    }
    guard scanner.isAtEnd, let stream, let sequence, sequence > 0 else { return nil }
    self.init(
      stream: stream, sequence: UInt64(sequence), isDuplicate: isDuplicate,
      count: count.map { UInt64($0) } ?? 1)
  }
}

/// The fields of a JSON object without nesting, escapes, fractions and signs.
private struct FlatObject {
  enum Value {
    case text(NATSBytes)
    case number(Int)
    case flag(Bool)
  }

  private let bytes: NATSBytes
  private var position = 0
  private var isDone = false
  private var isFirst = true

  init(_ bytes: NATSBytes) {
    self.bytes = bytes
  }

  /// Whether the object has ended, and only blanks follow.
  var isAtEnd: Bool { isDone && bytes.dropFirst(position).trimmed.isEmpty }

  mutating func begin() -> Bool { take(UInt8(ascii: "{")) }

  /// The next field; nil at the end, and for anything that this can't parse.
  mutating func next() -> (NATSBytes, Value)? {
    if take(UInt8(ascii: "}")) {
      isDone = isFirst
      return nil
    }
    guard let name = text(), take(UInt8(ascii: ":")), let value = value() else { return nil }
    isFirst = false
    if !take(UInt8(ascii: ",")) {
      guard take(UInt8(ascii: "}")) else { return nil }
      // The next call returns the end.
      position -= 1
      isFirst = true
    } else if peek() == UInt8(ascii: "}") {
      return nil
    }
    return (name, value)
  }

  private mutating func value() -> Value? {
    guard let first = peek() else { return nil }
    switch first {
    case UInt8(ascii: "\""): return text().map { .text($0) }
    case UInt8(ascii: "0")...UInt8(ascii: "9"):
      let start = position
      while let digit = rawPeek(), digit >= 0x30, digit <= 0x39 { position += 1 }
      // JSON has no leading zeros.
      guard bytes[start] != 0x30 || position == start + 1 else { return nil }
      return bytes[start..<position].number.map { .number($0) }
    case UInt8(ascii: "t"): return word("true") ? .flag(true) : nil
    case UInt8(ascii: "f"): return word("false") ? .flag(false) : nil
    default: return nil
    }
  }

  private mutating func word(_ word: String) -> Bool {
    let end = position + word.utf8.count
    guard end <= bytes.count, bytes[position..<end] == word else { return false }
    position = end
    return true
  }

  private mutating func text() -> NATSBytes? {
    guard take(UInt8(ascii: "\"")) else { return nil }
    let start = position
    while let byte = rawPeek() {
      if byte == UInt8(ascii: "\"") {
        position += 1
        return bytes[start..<position - 1]
      }
      guard byte >= 0x20, byte < 0x7F, byte != UInt8(ascii: "\\") else { return nil }
      position += 1
    }
    return nil
  }

  private func rawPeek() -> UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func peek() -> UInt8? {
    while let byte = rawPeek(), isBlank(byte) || byte == 0x0A || byte == 0x0D { position += 1 }
    return rawPeek()
  }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard peek() == byte else { return false }
    position += 1
    return true
  }
}
