import Glibc
import SluiceWebSocket

/// Encodes frames for clients with compression in its own memory: messages of at most 64 KiB, compressed if that makes them shorter.
///
/// On its loop only. Connections share a packer, since each frame is sent or copied before the next is encoded.
@safe
final class WebSocketPacker {
  /// The most payload bytes in one message.
  private static let largestMessage = 65_536
  /// Shorter messages, such as acknowledgements, aren't worth the time, 4 µs and more: they contain little repetition.
  static let leastLength = 256
  /// The longest head of an unmasked frame.
  private static let headSize = 10

  private let deflater: Deflater
  private let message = UnsafeMutableRawBufferPointer.allocate(byteCount: largestMessage, alignment: 16)
  /// A head followed by a payload.
  private let frame = UnsafeMutableRawBufferPointer.allocate(
    byteCount: headSize + largestMessage + 4, alignment: 16)

  init(windowBits: Int) {
    deflater = Deflater(windowBits: windowBits)
  }

  deinit {
    unsafe message.deallocate()
    unsafe frame.deallocate()
  }

  /// Encodes a frame of the next bytes.
  ///
  /// - Parameter position: the start of these bytes; afterwards the start of the next frame's.
  /// - Returns: the frame, valid until the next call.
  func pack(_ vectors: UnsafeBufferPointer<iovec>, from position: inout Position) -> UnsafeRawBufferPointer {
    let count = unsafe gather(vectors, from: &position)
    let payload = unsafe UnsafeMutableRawBufferPointer(rebasing: frame[Self.headSize...])
    let bytes = unsafe UnsafeRawBufferPointer(rebasing: message[..<count])
    let length = count < Self.leastLength ? nil : unsafe deflater.deflate(bytes, into: payload)
    if length == nil { unsafe payload.copyMemory(from: bytes) }
    var head: [UInt8] = []
    WebSocketEncoder.appendHead(.binary, length: length ?? count, isCompressed: length != nil, to: &head)
    let start = Self.headSize - head.count
    unsafe UnsafeMutableRawBufferPointer(rebasing: frame[start...]).copyBytes(from: head)
    return unsafe UnsafeRawBufferPointer(rebasing: frame[start..<Self.headSize + (length ?? count)])
  }

  /// A position in vectors.
  struct Position {
    var vector = 0
    var offset = 0
    /// Bytes before it.
    var taken = 0
  }

  /// Copies the next message's bytes, and returns their number.
  private func gather(_ vectors: UnsafeBufferPointer<iovec>, from position: inout Position) -> Int {
    var count = 0
    while position.vector < vectors.count, count < Self.largestMessage {
      let vector = unsafe vectors[position.vector]
      let part = unsafe min(vector.iov_len - position.offset, Self.largestMessage - count)
      if part > 0, let base = unsafe vector.iov_base {
        unsafe UnsafeMutableRawBufferPointer(rebasing: message[count...])
          .copyMemory(from: UnsafeRawBufferPointer(start: base + position.offset, count: part))
      }
      count += part
      position.offset += part
      if unsafe position.offset == vector.iov_len {
        position.vector += 1
        position.offset = 0
      }
    }
    position.taken += count
    return count
  }
}
