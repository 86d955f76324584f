import Glibc
import SluiceCommand

/// Reads records from a descriptor in large blocks, and passes each on without copying it.
///
/// Takes the memory of a block, or of a record if that is longer, and never more than that of the longest record allowed.
@safe
struct RecordReader: ~Copyable {
  /// Receives a record; returns false to stop reading. The bytes are valid only during the call.
  typealias Body = (UnsafeRawBufferPointer) throws(InputError) -> Bool

  private static let block = 256 << 10

  private let descriptor: Int32
  private let limit: Int
  private var buffer: UnsafeMutableRawBufferPointer
  /// The bytes that were read and not passed on yet.
  private var filled: Range<Int> = 0..<0
  /// The number of the next record, from 1.
  private var number = 1
  /// The offset of the buffer's start in the input.
  private var base = 0

  /// - Parameters:
  ///   - descriptor: read with blocking calls; isn't closed.
  ///   - limit: the longest record, in bytes.
  init(_ descriptor: Int32, limit: Int) {
    self.descriptor = descriptor
    self.limit = limit
    unsafe buffer = .allocate(byteCount: Self.block, alignment: 16)
  }

  deinit {
    unsafe buffer.deallocate()
  }

  /// Passes on every record up to the end of the input, or until `body` returns false.
  ///
  /// - Throws: `InputError`, after all records before the error were passed on.
  mutating func forEach(_ framing: Framing, _ body: Body) throws(InputError) {
    switch framing {
    case .delimited(let delimiter): try unsafe readDelimited(delimiter, body)
    case .whole: try unsafe readWhole(body)
    case .lengthPrefixed: try unsafe readFrames(body)
    }
  }

  private mutating func readDelimited(_ delimiter: UInt8, _ body: Body) throws(InputError) {
    // A long record takes several reads; only the new bytes are searched.
    var searched = 0
    while true {
      while let found = position(of: delimiter, in: filled.lowerBound + searched..<filled.upperBound) {
        guard found - filled.lowerBound <= limit else { throw tooLong(delimiter) }
        let record = filled.lowerBound..<found
        filled = found + 1..<filled.upperBound
        searched = 0
        guard try unsafe handOut(record, body) else { return }
      }
      searched = filled.count
      guard searched <= limit else { throw tooLong(delimiter) }
      guard try fill() > 0 else { break }
    }
    if !filled.isEmpty { _ = try unsafe handOut(filled, body) }
  }

  private mutating func readWhole(_ body: Body) throws(InputError) {
    repeat {
      guard filled.count <= limit else { throw .tooLong("the input", limit: limit) }
    } while try fill() > 0
    _ = try unsafe handOut(filled, body)
  }

  private mutating func readFrames(_ body: Body) throws(InputError) {
    while true {
      while filled.count < 4 {
        if try fill() > 0 { continue }
        guard filled.isEmpty else { throw truncated("has \(filled.count) of the 4 bytes of its length") }
        return
      }
      let length = unsafe Int(
        UInt32(littleEndian: buffer.loadUnaligned(fromByteOffset: filled.lowerBound, as: UInt32.self)))
      guard length <= limit else {
        throw InputError(
          description:
            "record \(number), at byte \(base + filled.lowerBound), has the length \(length), and the broker's limit is "
            + "\(ByteSize.exact(UInt64(limit))); does the input have a length in front of each record?")
      }
      while filled.count < 4 + length {
        if try fill() == 0 { throw truncated("has \(filled.count - 4) of \(length) bytes") }
      }
      let record = filled.lowerBound + 4..<filled.lowerBound + 4 + length
      filled = record.upperBound..<filled.upperBound
      guard try unsafe handOut(record, body) else { return }
    }
  }

  private mutating func handOut(_ range: Range<Int>, _ body: Body) throws(InputError) -> Bool {
    defer { number += 1 }
    return try unsafe body(UnsafeRawBufferPointer(rebasing: buffer[range]))
  }

  private func position(of byte: UInt8, in range: Range<Int>) -> Int? {
    guard !range.isEmpty, let start = unsafe buffer.baseAddress,
      let found = unsafe memchr(start + range.lowerBound, Int32(byte), range.count)
    else { return nil }
    return unsafe found - start
  }

  /// Waits for input and reads the available bytes. Returns their number; 0 at the end of the input.
  private mutating func fill() throws(InputError) -> Int {
    makeRoom()
    while true {
      let count = unsafe read(
        descriptor, buffer.baseAddress! + filled.upperBound, buffer.count - filled.upperBound)
      if count >= 0 {
        filled = filled.lowerBound..<filled.upperBound + count
        return count
      }
      switch errno {
      case EINTR: continue
      case EAGAIN:
        // Another process has made the shared pipe or terminal non-blocking.
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = unsafe poll(&waiting, 1, -1)
      default:
        throw InputError(description: "cannot read the input: \(Descriptor.reason())")
      }
    }
  }

  private mutating func makeRoom() {
    if filled.isEmpty {
      base += filled.lowerBound
      filled = 0..<0
    }
    guard unsafe filled.upperBound == buffer.count else { return }
    base += filled.lowerBound
    // Moves the record to the front if that frees half of the buffer; otherwise the record is long, and the buffer grows.
    let isWorthwhile = unsafe filled.lowerBound >= buffer.count / 2
    let target =
      unsafe isWorthwhile
      ? buffer : .allocate(byteCount: min(buffer.count * 2, max(limit + 5, buffer.count + 1)), alignment: 16)
    if let source = unsafe buffer.baseAddress, let destination = target.baseAddress {
      unsafe memmove(destination, source + filled.lowerBound, filled.count)
    }
    if !isWorthwhile {
      unsafe buffer.deallocate()
      unsafe buffer = unsafe target
    }
    filled = 0..<filled.count
  }

  private func tooLong(_ delimiter: UInt8) -> InputError {
    .tooLong(delimiter == UInt8(ascii: "\n") ? "line \(number)" : "record \(number)", limit: limit)
  }

  private func truncated(_ how: String) -> InputError {
    InputError(description: "the input ends within record \(number), which \(how)")
  }
}

/// The framing of records in a stream of bytes.
enum Framing: Equatable {
  /// Each record ends with this byte, which isn't part of it; the last one may lack it.
  case delimited(UInt8)
  /// The whole input is one record.
  case whole
  /// Each record has its length in front, as `u32`, little-endian.
  case lengthPrefixed
}

/// The opened source of records.
enum Input {
  case messages([[UInt8]])
  case descriptor(Int32)

  /// - Throws: `InputError` if the file can't be opened.
  init(_ source: PubCommand.Source) throws(InputError) {
    switch source {
    case .messages(let messages):
      self = .messages(messages)
    case .standardInput:
      self = .descriptor(STDIN_FILENO)
    case .file(let path):
      let descriptor = path.open(O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else {
        throw InputError(description: "cannot open \(path): \(Descriptor.reason())")
      }
      self = .descriptor(descriptor)
    }
  }
}

/// The reason why the rest of the input can't be read.
struct InputError: Error, Equatable, CustomStringConvertible {
  var description: String

  /// - Parameter what: the name of the record in the message.
  static func tooLong(_ what: String, limit: Int) -> InputError {
    InputError(
      description: "\(what) is longer than the broker's limit of \(ByteSize.exact(UInt64(limit))); "
        + "split it, or raise --max-record")
  }
}
