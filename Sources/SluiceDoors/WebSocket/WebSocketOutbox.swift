import CLinux
import Glibc
import SluiceIO
import SluiceWebSocket

/// The sending side of a client's WebSocket: frames whose payloads go to the transport without a copy, and the bytes before payloads.
///
/// ```
///  front │ rest of the current payload │ control frames │ head, payload │ …
/// ```
///
/// A value; the transport is passed in.
struct WebSocketOutbox {
  /// Sent before anything else: the handshake's answer, or the rest of a frame's head.
  private var front: [UInt8] = []
  /// Control frames that wait for the end of the current frame.
  private var control: [UInt8] = []
  /// Payload bytes that the current frame still needs.
  private var missing = 0
  /// Nil if messages aren't compressed.
  private let packer: WebSocketPacker?

  init(_ packer: WebSocketPacker? = nil) {
    self.packer = packer
  }

  /// Payload bytes that are compressed at a time, so that a client with much data doesn't block the loop's other clients.
  private static let compressedWrite = 131_072

  /// Whether the last payload was cut short for fairness, so that the transport takes more but won't report it.
  private(set) var isCutShort = false

  /// Whether payload may follow.
  var isClear: Bool { front.isEmpty }

  /// Whether a frame is incomplete, so that its payload must follow.
  var isWithinFrame: Bool { missing > 0 }

  /// Bytes of waiting control frames.
  var controlBytes: Int { control.count }

  var heldBytes: Int { front.count + control.count }

  /// Appends bytes that precede all frames.
  mutating func append(answer: [UInt8]) { front += answer }

  /// Appends control frames.
  mutating func append(control frames: [UInt8]) { control += frames }

  /// Sends the bytes before payloads, as far as the transport takes them.
  ///
  /// - Returns: the transport's error; nil without one.
  mutating func flush(to transport: any ByteStream) -> IOError? {
    while true {
      if front.isEmpty, missing == 0, !control.isEmpty { swap(&front, &control) }
      guard !front.isEmpty else { return nil }
      switch unsafe front.withUnsafeBytes({ unsafe transport.write($0) }) {
      case .wrote(let count):
        guard count == front.count else {
          front.removeFirst(count)
          return nil
        }
        front = []
      case .failed(let error): return error
      }
    }
  }

  /// Writes the rest of the current frame, and a new frame with further payload; or messages, which may be compressed. Only while ``isClear``.
  ///
  /// - Parameters:
  ///   - vectors: the payload.
  ///   - total: its bytes.
  /// - Returns: how many bytes of the payload were taken.
  mutating func write(
    _ vectors: UnsafeBufferPointer<iovec>, total: Int, to transport: any ByteStream
  ) -> WriteResult {
    if let packer { return unsafe write(vectors, total: total, packer, to: transport) }
    let first = min(missing, total)
    let second = total - first
    var head: [UInt8] = []
    if second > 0 { WebSocketEncoder.appendHead(.binary, length: second, to: &head) }
    let result = unsafe Self.write(vectors, &head, behind: first, to: transport)
    guard case .wrote(let sent) = result else { return result }
    guard sent > first else {
      missing -= min(sent, first)
      return .wrote(sent)
    }
    // The frame's head was sent, at least in part, so its payload must follow.
    let ofHead = min(sent - first, head.count)
    let ofPayload = sent - first - ofHead
    front += head[ofHead...]
    missing = second - ofPayload
    return .wrote(first + ofPayload)
  }

  /// Writes messages from the packer. Keeps the bytes that the transport doesn't take, since the packer reuses its memory.
  private mutating func write(
    _ vectors: UnsafeBufferPointer<iovec>, total: Int, _ packer: WebSocketPacker,
    to transport: any ByteStream
  ) -> WriteResult {
    var position = WebSocketPacker.Position()
    while position.taken < min(total, Self.compressedWrite), front.isEmpty {
      let frame = unsafe packer.pack(vectors, from: &position)
      switch unsafe transport.write(frame) {
      case .wrote(let sent): front = unsafe Array(frame[sent...])
      case .failed(let error): return .failed(error)
      }
    }
    isCutShort = position.taken < total && front.isEmpty
    return .wrote(position.taken)
  }

  /// Writes a payload with a frame's head inserted after this many bytes.
  private static func write(
    _ vectors: UnsafeBufferPointer<iovec>, _ head: inout [UInt8], behind first: Int,
    to transport: any ByteStream
  ) -> WriteResult {
    unsafe head.withUnsafeMutableBytes { head in
      unsafe withUnsafeTemporaryAllocation(of: iovec.self, capacity: vectors.count + 2) { pieces in
        var count = 0
        var ahead = first
        var hasHead = unsafe head.isEmpty
        func add(_ base: UnsafeMutableRawPointer?, _ length: Int) {
          guard length > 0 else { return }
          unsafe pieces[count] = unsafe iovec(iov_base: base, iov_len: length)
          count += 1
        }
        for index in vectors.indices {
          let vector = unsafe vectors[index]
          let before = unsafe min(ahead, vector.iov_len)
          unsafe add(vector.iov_base, before)
          ahead -= before
          guard unsafe before < vector.iov_len else { continue }
          if !hasHead {
            unsafe add(head.baseAddress, head.count)
            hasHead = true
          }
          unsafe add(vector.iov_base + before, vector.iov_len - before)
        }
        return unsafe transport.write(UnsafeBufferPointer(start: pieces.baseAddress, count: count))
      }
    }
  }
}
