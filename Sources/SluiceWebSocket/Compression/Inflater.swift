import CZlib

/// Inflates data of DEFLATE (RFC 1951) piece by piece, as far as there is room for what comes out.
@safe
package final class Inflater {
  enum Outcome {
    /// All that was given is inflated.
    case done
    /// The room is full. More output may follow, even if all input has been read.
    case full
    case corrupt
  }

  /// The memory of one: its state and the window of the last 32 KiB, by zlib's documentation in `zconf.h`.
  package static let size = (1 << 15) + 7 * 1024

  private let stream: UnsafeMutablePointer<z_stream>

  package init() {
    unsafe stream = .allocate(capacity: 1)
    let result = unsafe sluice_inflate_init(stream)
    precondition(result == Z_OK, "zlib can't begin to inflate: \(result)")
  }

  deinit {
    unsafe inflateEnd(stream)
    unsafe stream.deallocate()
  }

  /// Forgets what came before, so that other data begins.
  func reset() { _ = unsafe inflateReset(stream) }

  /// Whether the data may end here, behind a block that isn't the last one of its stream.
  var isBetweenBlocks: Bool { unsafe stream.pointee.data_type & (128 | 64) == 128 }

  /// Inflates `input` into `room`; both are shortened by what was used of them.
  func inflate(
    _ input: inout UnsafeRawBufferPointer, into room: inout UnsafeMutableRawBufferPointer
  ) -> Outcome {
    while true {
      guard unsafe !room.isEmpty else { return .full }
      let (given, space) = (input.count, room.count)
      unsafe stream.pointee.next_in = UnsafeMutablePointer(
        mutating: input.baseAddress?.assumingMemoryBound(to: Bytef.self))
      unsafe stream.pointee.avail_in = uInt(given)
      unsafe stream.pointee.next_out = room.baseAddress?.assumingMemoryBound(to: Bytef.self)
      unsafe stream.pointee.avail_out = uInt(space)
      let result = unsafe CZlib.inflate(stream, Z_SYNC_FLUSH)
      unsafe input = UnsafeRawBufferPointer(rebasing: input[(given - Int(stream.pointee.avail_in))...])
      unsafe room = UnsafeMutableRawBufferPointer(
        rebasing: room[(space - Int(stream.pointee.avail_out))...])
      switch result {
      // Z_BUF_ERROR: nothing was left to do.
      case Z_OK, Z_BUF_ERROR:
        if unsafe room.isEmpty { return .full }
        return .done
      // Data continues after a last block (RFC 7692, section 7.2.3.4), and may refer to earlier data: inflateReset() would drop that.
      case Z_STREAM_END:
        guard unsafe inflateResetKeep(stream) == Z_OK else { return .corrupt }
        if unsafe input.isEmpty { return .done }
      default: return .corrupt
      }
    }
  }
}

/// Inflaters for messages that come one by one: one that is done with its message is kept for the next message.
///
/// For one thread.
package final class InflaterPool {
  private var spare: Inflater?

  package init() {}

  func take() -> Inflater {
    guard let inflater = spare.take() else { return Inflater() }
    inflater.reset()
    return inflater
  }

  func give(back inflater: Inflater) { spare = inflater }
}
