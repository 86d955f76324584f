import SluiceWire

/// Reads an export, section by section. Never traps, whatever it is given, and takes no more memory than bytes have come.
public struct ExportReader {
  /// Fills a part of the memory from its start, and returns how much; 0 at the end.
  public typealias Source = (UnsafeMutableRawBufferPointer) -> Result<Int, StoreError>

  private static let chunk = 256 << 10

  private let source: Source
  private var buffer: [UInt8] = []
  private var position = 0
  private var isAtEnd = false
  /// Of sections that were read whole.
  private var sections: UInt64 = 0
  /// Bytes of the stream before what is in the buffer.
  private var before: UInt64 = 0
  private var isBegun = false

  public init(_ source: @escaping Source) {
    self.source = source
  }

  /// Bytes that were taken from the stream.
  public var bytes: UInt64 { before + UInt64(position) }

  /// The next section; nil when the stream is at its end.
  ///
  /// - Throws: ``StoreError/Kind/damaged``, ``StoreError/Kind/newer``, ``StoreError/Kind/notAStore`` for something else than an export,
  ///   and what the source says.
  public mutating func next() throws(StoreError) -> ExportSection? {
    if !isBegun { try readPreamble() }
    guard try fill(ExportFormat.sectionHeaderSize) else {
      guard buffer.count == position else { throw cutShort() }
      return nil
    }
    let length = UInt32(littleEndian: load(4))
    guard length <= ExportFormat.maximumBody else {
      throw fault(.damaged, "it announces \(length) bytes, more than any has")
    }
    let size = ExportFormat.sectionHeaderSize + Int(length)
    guard try fill(size + ExportFormat.checksumSize) else { throw cutShort() }
    let checksum = UInt64(littleEndian: load(size))
    let start = position
    let number = sections
    let result = buffer.withUnsafeBytes { bytes -> Result<ExportSection, StoreError>? in
      let section = UnsafeRawBufferPointer(rebasing: bytes[start..<(start + size)])
      guard ExportFormat.checksum(section, section: number) == checksum else { return nil }
      return Result { () throws(StoreError) in
        try ExportSection(
          kind: section[0], body: UnsafeRawBufferPointer(rebasing: section[ExportFormat.sectionHeaderSize...])
        )
      }
    }
    guard let result else { throw fault(.damaged, "its checksum is wrong") }
    switch result {
    case .success(let section):
      position += size + ExportFormat.checksumSize
      sections += 1
      return section
    case .failure(let error): throw fault(error.kind, error.message)
    }
  }

  private mutating func readPreamble() throws(StoreError) {
    let isThere = try fill(ExportFormat.preambleSize)
    guard isThere, buffer.starts(with: ExportFormat.magic) else {
      throw StoreError(.notAStore, "this isn't an export of a store: it doesn't begin as one")
    }
    let version = UInt16(littleEndian: load(ExportFormat.magic.count))
    guard version == ExportFormat.version else {
      throw StoreError(
        .newer, "the export has version \(version), and this software knows \(ExportFormat.version)")
    }
    position += ExportFormat.preambleSize
    isBegun = true
  }

  private func load<Number: FixedWidthInteger & BitwiseCopyable>(_ offset: Int) -> Number {
    buffer.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: position + offset, as: Number.self) }
  }

  /// Sees to it that so many bytes lie in the buffer from the position on. Returns false when the stream ends before.
  private mutating func fill(_ count: Int) throws(StoreError) -> Bool {
    while buffer.count - position < count {
      guard !isAtEnd else { return false }
      if position > 0 {
        before += UInt64(position)
        buffer.removeSubrange(..<position)
        position = 0
      }
      let used = buffer.count
      // Never as much as a length says that nobody has checked yet, but what has come once more: appending stays cheap.
      buffer.append(contentsOf: repeatElement(0, count: max(Self.chunk, min(used, count - used))))
      let result = buffer.withUnsafeMutableBytes { bytes in
        source(UnsafeMutableRawBufferPointer(rebasing: bytes[used...]))
      }
      switch result {
      case .success(let read):
        buffer.removeLast(buffer.count - used - min(max(read, 0), buffer.count - used))
        isAtEnd = read <= 0
      case .failure(let error):
        buffer.removeLast(buffer.count - used)
        throw error
      }
    }
    return true
  }

  private func cutShort() -> StoreError {
    fault(.damaged, "the stream ends within it")
  }

  private func fault(_ kind: StoreError.Kind, _ message: String) -> StoreError {
    StoreError(kind, "section \(sections) of the export, at byte \(bytes): \(message)")
  }
}
