import SluiceWire

/// Writes an export, section by section.
@safe
public struct ExportWriter {
  /// Takes bytes, all of them, and returns why it can't.
  public typealias Sink = (UnsafeRawBufferPointer) -> StoreError?

  private let sink: Sink
  private var sections: UInt64 = 0
  private var writer = ByteWriter()

  /// Writes the preamble.
  public init(_ sink: @escaping Sink) throws(StoreError) {
    unsafe self.sink = unsafe sink
    let fault = unsafe ExportFormat.preamble.withUnsafeBytes { unsafe sink($0) }
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
    unsafe writer.raw(body)
    try end(kind)
  }

  /// Writes a batch that lies in a store.
  mutating func write(batch value: UnsafeRawBufferPointer) throws(StoreError) {
    begin()
    unsafe writer.raw(UnsafeRawBufferPointer(rebasing: value[ExportSection.batchChecksumSize...]))
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
    let checksum = unsafe writer.bytes.withUnsafeMutableBytes { bytes in
      unsafe bytes[0] = kind
      unsafe bytes.storeBytes(of: length.littleEndian, toByteOffset: 4, as: UInt32.self)
      return unsafe ExportFormat.checksum(UnsafeRawBufferPointer(bytes), section: number)
    }
    writer.integer(checksum)
    sections += 1
    let fault = unsafe writer.bytes.withUnsafeBytes { unsafe sink($0) }
    if let fault { throw fault }
  }
}
