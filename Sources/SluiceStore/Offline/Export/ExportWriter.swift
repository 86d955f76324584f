import SluiceWire

/// Writes an export, section by section.
public struct ExportWriter {
  /// Takes bytes, all of them, and returns why it can't.
  public typealias Sink = (UnsafeRawBufferPointer) -> StoreError?

  private let sink: Sink
  private var sections: UInt64 = 0
  private var writer = ByteWriter()

  /// Writes the preamble.
  public init(_ sink: @escaping Sink) throws(StoreError) {
    self.sink = sink
    let fault = ExportFormat.preamble.withUnsafeBytes { sink($0) }
    if let fault { throw fault }
  }

  public mutating func write(_ section: ExportSection) throws(StoreError) {
    begin()
    let kind = section.encodeBody(into: &writer)
    try end(kind)
  }

  /// Writes a section of any kind, as its body is.
  public mutating func write(kind: UInt8, body: UnsafeRawBufferPointer) throws(StoreError) {
    begin()
    writer.raw(body)
    try end(kind)
  }

  /// Writes a batch that lies in a store.
  mutating func write(batch value: UnsafeRawBufferPointer) throws(StoreError) {
    begin()
    writer.raw(UnsafeRawBufferPointer(rebasing: value[ExportSection.batchChecksumSize...]))
    try end(ExportFormat.Kind.batch.rawValue)
  }

  private mutating func begin() {
    writer.bytes.removeAll(keepingCapacity: true)
    // What isn't known yet is filled in when it is.
    writer.bytes.append(contentsOf: repeatElement(0, count: ExportFormat.sectionHeaderSize))
  }

  private mutating func end(_ kind: UInt8) throws(StoreError) {
    let length = UInt32(clamping: writer.bytes.count - ExportFormat.sectionHeaderSize)
    let number = sections
    let checksum = writer.bytes.withUnsafeMutableBytes { bytes in
      bytes[0] = kind
      bytes.storeBytes(of: length.littleEndian, toByteOffset: 4, as: UInt32.self)
      return ExportFormat.checksum(UnsafeRawBufferPointer(bytes), section: number)
    }
    writer.integer(checksum)
    sections += 1
    let fault = writer.bytes.withUnsafeBytes { sink($0) }
    if let fault { throw fault }
  }
}
