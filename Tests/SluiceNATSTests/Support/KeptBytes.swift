/// Memory with the lifetime of this object.
// @unchecked: it is immutable.
final class KeptBytes: @unchecked Sendable {
  let memory: UnsafeRawBufferPointer

  init(_ bytes: [UInt8]) {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
    copy.copyBytes(from: bytes)
    memory = UnsafeRawBufferPointer(copy)
  }

  deinit { memory.deallocate() }
}
