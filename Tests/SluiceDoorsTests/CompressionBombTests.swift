import SluiceWebSocket
import TestSupport
import Testing

@testable import SluiceDoors

/// A message that inflates to many times its size.
@Suite struct CompressionBombTests {
  /// The most bytes that the broker's connections read at a time.
  private static let roomSize = 65_536

  /// A gibibyte of zeros is compressed to about a megabyte. The inbox keeps the compressed bytes, not the inflated ones.
  @Test func aGibibyteOfZerosIsReadInTheReadersRoom() throws {
    var inbox = WebSocketInbox(InflaterPool())
    let payload = Self.zeros(1 << 30)
    #expect(payload.count < 2 << 20)
    var frame: [UInt8] = []
    payload.withUnsafeBytes {
      WebSocketEncoder.append(
        .binary, $0, isCompressed: true, mask: WebSocketMask((1, 2, 3, 4)), to: &frame)
    }
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.roomSize, alignment: 16)
    defer { room.deallocate() }
    var (total, most) = (0, 0)
    var rest = frame[...]
    while !rest.isEmpty || inbox.hasEarly {
      // The gateway reads no more from the client while bytes that it read earlier are left.
      var chunk = inbox.hasEarly ? [] : Array(rest.prefix(16_384))
      rest = rest.dropFirst(chunk.count)
      var answers: [UInt8] = []
      let (count, ending) = chunk.withUnsafeMutableBytes {
        inbox.inflate($0, into: room, answers: &answers)
      }
      try #require(ending == nil && answers.isEmpty)
      total += count
      most = max(most, inbox.heldBytes)
    }
    #expect(total == 1 << 30)
    #expect(most < Self.roomSize)
    #expect(inbox.heldBytes == 0)
    print("a gibibyte of zeros in \(frame.count) bytes: at most \(most) bytes are held")
  }

  /// Returns `count` zeros as one message, in blocks of 64 KiB that are as small as DEFLATE can make them. Each block has the end that only the last
  /// one omits.
  private static func zeros(_ count: Int) -> [UInt8] {
    let block =
      [UInt8](hex: "ecc101010000008090feafee080a") + [UInt8](repeating: 0, count: 63)
      + [UInt8](hex: "6a000000ffff")
    var payload: [UInt8] = []
    for _ in 0..<count / 65_536 { payload += block }
    return payload.dropLast(4)
  }

  @Test func messagesThatAreNotCompressedFindTheirPlaceBetweenThem() {
    var inbox = WebSocketInbox(InflaterPool())
    let zeros = Self.zeros(1 << 17)
    let plain = [UInt8](repeating: 9, count: 1000)
    var bytes: [UInt8] = []
    for (payload, isCompressed) in [(zeros, true), (plain, false), (zeros, true), (plain, false)] {
      payload.withUnsafeBytes {
        WebSocketEncoder.append(
          .binary, $0, isCompressed: isCompressed, mask: WebSocketMask((1, 2, 3, 4)), to: &bytes)
      }
    }
    WebSocketEncoder.appendClose(.normal, reason: "", mask: WebSocketMask((1, 2, 3, 4)), to: &bytes)
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 999, alignment: 16)
    defer { room.deallocate() }
    var received: [UInt8] = []
    var end: WebSocketEnding?
    repeat {
      var answers: [UInt8] = []
      let (count, ending) = bytes.withUnsafeMutableBytes {
        inbox.inflate($0, into: room, answers: &answers)
      }
      bytes = []
      received += Array(room[..<count])
      end = ending
    } while inbox.hasEarly
    let half = [UInt8](repeating: 0, count: 1 << 17) + plain
    #expect(received == half + half)
    #expect(end?.code == .normal, "the end comes behind what was sent before it")
  }
}
