import SluiceWire

/// Reads an export, section by section. Never traps on any input, and uses no more memory than bytes have arrived.
@safe
public struct ExportReader {
  /// Fills a part of the memory from its start, and returns how much; 0 at the end.
  public typealias Source = (UnsafeMutableRawBufferPointer) -> Result<Int, StoreError>

  private let source: Source
  private let queue = ByteQueue()
  /// Of sections that were read whole.
  private var sections: UInt64 = 0
  private var isBegun = false
  /// Bytes that were taken from the stream.
  public private(set) var bytes: UInt64 = 0

  public init(_ source: @escaping Source) {
    unsafe self.source = unsafe source
  }

  /// The next section; nil when the stream is at its end.
  ///
  /// - Throws: ``StoreError/Kind/damaged``, ``StoreError/Kind/newer``, ``StoreError/Kind/notAStore`` for something else than an export,
  ///   and what the source says.
  public mutating func next() throws(StoreError) -> ExportSection? {
    try begin()
    guard try fill(ExportFormat.sectionHeaderSize) else {
      guard unsafe queue.bytes.isEmpty else { throw cutShort() }
      return nil
    }
    let length: UInt32 = load(4)
    guard length <= ExportFormat.maximumBody else {
      throw fault(.damaged, "it announces \(length) bytes, more than any has")
    }
    let size = ExportFormat.sectionHeaderSize + Int(length)
    guard try fill(size + ExportFormat.checksumSize) else { throw cutShort() }
    let section = unsafe UnsafeRawBufferPointer(rebasing: queue.bytes[..<size])
    guard unsafe ExportFormat.checksum(section, section: sections) == load(size) else {
      throw fault(.damaged, "its checksum is wrong")
    }
    do throws(StoreError) {
      let decoded = try unsafe ExportSection(
        kind: section[0], body: UnsafeRawBufferPointer(rebasing: section[ExportFormat.sectionHeaderSize...]))
      remove(size + ExportFormat.checksumSize)
      sections += 1
      return decoded
    } catch {
      throw fault(error.kind, error.message)
    }
  }

  /// Sees whether it is an export at all. The first ``next()`` does so otherwise.
  ///
  /// - Throws: as that.
  public mutating func begin() throws(StoreError) {
    if isBegun { return }
    guard try fill(ExportFormat.preambleSize), unsafe queue.bytes.starts(with: ExportFormat.magic) else {
      throw StoreError(.notAStore, "this isn't an export of a store: it doesn't begin as one")
    }
    let version: UInt16 = load(ExportFormat.magic.count)
    guard version == ExportFormat.version else {
      throw StoreError(
        .newer, "the export has version \(version), and this software knows \(ExportFormat.version)")
    }
    remove(ExportFormat.preambleSize)
    isBegun = true
  }

  private func load<Number: FixedWidthInteger & BitwiseCopyable>(_ offset: Int) -> Number {
    unsafe Number(littleEndian: queue.bytes.loadUnaligned(fromByteOffset: offset, as: Number.self))
  }

  private mutating func remove(_ count: Int) {
    queue.remove(count)
    bytes += UInt64(count)
  }

  /// Sees to it that so many bytes have come and aren't used. Returns false when the stream ends before.
  private func fill(_ count: Int) throws(StoreError) -> Bool {
    while unsafe queue.bytes.count < count {
      guard try unsafe queue.fill(source) > 0 else { return false }
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

/// Bytes that have come and aren't used yet, without gaps.
@safe
final class ByteQueue {
  private var memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  private var start = 0
  private var end = 0

  deinit {
    unsafe memory.deallocate()
  }

  /// The available bytes; valid until the next change.
  var bytes: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(rebasing: memory[start..<end]) }

  /// `body` fills memory after the available bytes, and returns how many bytes it has written. The memory is no larger than twice what has come
  /// already, or 64 KiB.
  ///
  /// - Returns: how much was filled.
  func fill(_ body: (UnsafeMutableRawBufferPointer) -> Result<Int, StoreError>) throws(StoreError) -> Int {
    if start > 0, unsafe start == end || end == memory.count {
      unsafe memory.baseAddress!.copyMemory(from: memory.baseAddress! + start, byteCount: end - start)
      end -= start
      start = 0
    }
    if unsafe end == memory.count {
      let larger = unsafe UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * memory.count, alignment: 16)
      unsafe larger.copyMemory(from: bytes)
      unsafe memory.deallocate()
      unsafe memory = unsafe larger
    }
    let count = unsafe min(
      max(try body(UnsafeMutableRawBufferPointer(rebasing: memory[end...])).get(), 0), memory.count - end)
    end += count
    return count
  }

  func remove(_ count: Int) {
    start += min(count, end - start)
  }
}
