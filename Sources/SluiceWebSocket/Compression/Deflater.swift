import CZlib

/// Deflates messages, each by itself.
@safe
package final class Deflater {
  /// The least and the most bits of a window's size that it can have: zlib doesn't deflate with 8.
  static let windowBits = 9...15
  /// The fastest: records are deflated once for each subscriber. 64 KiB of JSON take a sixth of the time of zlib's own choice, and become 18 KiB instead of 16.
  private static let level: Int32 = 1

  private let stream: UnsafeMutablePointer<z_stream>

  /// - Parameter windowBits: the window has 2 to the power of it bytes.
  package init(windowBits: Int) {
    precondition(Self.windowBits.contains(windowBits))
    unsafe stream = .allocate(capacity: 1)
    let result = unsafe sluice_deflate_init(stream, Self.level, Int32(windowBits))
    precondition(result == Z_OK, "zlib can't begin to deflate: \(result)")
  }

  deinit {
    unsafe deflateEnd(stream)
    unsafe stream.deallocate()
  }

  /// Deflates a message as RFC 7692 has it in frames: up to an empty block, without the four bytes that all such blocks end with.
  ///
  /// - Parameter room: at least four bytes more than the message.
  /// - Returns: the number of bytes; nil if the result isn't shorter than the message.
  package func deflate(_ message: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) -> Int? {
    let space = message.count + Self.ending.count
    precondition(room.count >= space)
    unsafe deflateReset(stream)
    unsafe stream.pointee.next_in = UnsafeMutablePointer(
      mutating: message.baseAddress?.assumingMemoryBound(to: Bytef.self))
    unsafe stream.pointee.avail_in = uInt(message.count)
    unsafe stream.pointee.next_out = room.baseAddress?.assumingMemoryBound(to: Bytef.self)
    unsafe stream.pointee.avail_out = uInt(space)
    let result = unsafe CZlib.deflate(stream, Z_SYNC_FLUSH)
    // With no room left the block at the end may be incomplete.
    guard result == Z_OK, unsafe stream.pointee.avail_out > 0 else { return nil }
    return unsafe space - Int(stream.pointee.avail_out) - Self.ending.count
  }

  /// The end of the empty block after a message; not in frames.
  static let ending: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]
}
