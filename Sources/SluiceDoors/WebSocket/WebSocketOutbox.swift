import CLinux
import Glibc
import SluiceIO
import SluiceWebSocket

/// What a client's WebSocket is sent: frames whose payloads go to the transport from where they are, and the bytes that stand in front of payloads.
///
/// ```
///  front │ rest of the payload under way │ control frames │ head, payload │ …
/// ```
///
/// A value; the transport is passed in.
struct WebSocketOutbox {
  /// What goes out before anything else: the handshake's answer, or the rest of a frame's head.
  private var front: [UInt8] = []
  /// Control frames that wait for the end of the frame under way.
  private var control: [UInt8] = []
  /// Bytes of payload that the frame under way still needs.
  private var missing = 0
  /// Nil where messages aren't compressed.
  private let packer: WebSocketPacker?

  init(_ packer: WebSocketPacker? = nil) {
    self.packer = packer
  }

  /// Bytes of payload that are compressed at a time, so that a client with much to come doesn't keep its loop from others.
  private static let compressedWrite = 131_072

  /// Whether the last payload was cut short to be fair, so that the transport takes more but won't report it.
  private(set) var isCutShort = false

  /// Whether payload may follow.
  var isClear: Bool { front.isEmpty }

  /// Whether a frame is under way, whose payload must follow.
  var isWithinFrame: Bool { missing > 0 }

  /// Bytes of control frames that wait.
  var controlBytes: Int { control.count }

  var heldBytes: Int { front.count + control.count }

  /// Appends what stands before all frames.
  mutating func append(answer: [UInt8]) { front += answer }

  /// Appends control frames.
  mutating func append(control frames: [UInt8]) { control += frames }

  /// Sends what stands before payloads, as far as the transport takes it.
  ///
  /// - Returns: how the transport has failed; nil where it hasn't.
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

  /// Writes what completes the frame under way, and a new frame with the rest; or messages that may be compressed. Only while ``isClear``.
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
    // The frame's head is out, at least in part: its payload must follow.
    let ofHead = min(sent - first, head.count)
    let ofPayload = sent - first - ofHead
    front += head[ofHead...]
    missing = second - ofPayload
    return .wrote(first + ofPayload)
  }

  /// Writes messages of the packer's, of which is kept what the transport doesn't take.
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

  /// Writes a payload with a frame's head in it, behind so many bytes.
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
