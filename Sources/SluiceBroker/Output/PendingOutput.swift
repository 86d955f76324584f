import Glibc
import SluiceIO
import SluiceLog
import SluiceTopics
import SluiceWire

/// Bytes that stay in place while their owner is retained.
@safe
enum HeldBytes {
  /// A part of the log.
  case segment(Segment, UnsafeRawBufferPointer)
  /// A copy.
  case copy(OwnedBytes, UnsafeRawBufferPointer)

  /// A copy of `bytes`.
  init(copying bytes: UnsafeRawBufferPointer) {
    let copy = unsafe OwnedBytes(bytes)
    self = unsafe .copy(copy, UnsafeRawBufferPointer(copy.bytes))
  }

  /// A frame with a copy of `body`.
  init(_ type: FrameType, _ body: UnsafeRawBufferPointer, stream: UInt32) {
    let frame = OwnedBytes(count: FrameHeader.size + body.count)
    unsafe FrameHeader(length: UInt32(body.count), type: type, stream: stream).write(
      at: frame.bytes.baseAddress!)
    unsafe UnsafeMutableRawBufferPointer(rebasing: frame.bytes[FrameHeader.size...]).copyMemory(from: body)
    self = unsafe .copy(frame, UnsafeRawBufferPointer(frame.bytes))
  }

  var bytes: UnsafeRawBufferPointer {
    switch self {
    case .segment(_, let bytes), .copy(_, let bytes): unsafe bytes
    }
  }

  /// Whether the bytes are in the log's memory.
  var isSegment: Bool {
    if case .segment = self { true } else { false }
  }

  /// The same without the first `count` bytes.
  func dropFirst(_ count: Int) -> HeldBytes {
    let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes.dropFirst(count))
    switch self {
    case .segment(let segment, _): return unsafe .segment(segment, rest)
    case .copy(let owner, _): return unsafe .copy(owner, rest)
    }
  }
}

/// Output that a connection couldn't write yet: its own bytes, and parts of the log's segments, which it retains.
///
/// Bounded: nothing new is gathered for a connection before this is written, so there is never more than one ``WriteBatch``.
struct PendingOutput {
  private static let vectorsAtOnce = 64

  private var chunks: [HeldBytes] = []

  var isEmpty: Bool { chunks.isEmpty }

  var byteCount: Int { chunks.reduce(0) { unsafe $0 + $1.bytes.count } }

  /// Bytes of copies that were added and haven't been written completely.
  private(set) var ownBytes = 0

  mutating func append(_ chunk: HeldBytes) {
    if !chunk.isSegment { unsafe ownBytes += chunk.bytes.count }
    chunks.append(chunk)
  }

  /// Writes as much as the transport accepts.
  ///
  /// - Returns: the number of bytes written.
  mutating func write(to stream: any ByteStream) -> Result<Int, IOError> {
    var total = 0
    while !chunks.isEmpty {
      let offered = chunks.prefix(Self.vectorsAtOnce)
      let result = unsafe withUnsafeTemporaryAllocation(of: iovec.self, capacity: offered.count) { vectors in
        for (index, chunk) in offered.enumerated() {
          unsafe vectors[index] = unsafe iovec(
            iov_base: UnsafeMutableRawPointer(mutating: chunk.bytes.baseAddress!), iov_len: chunk.bytes.count)
        }
        return unsafe stream.write(UnsafeBufferPointer(vectors))
      }
      switch result {
      case .failed(let error): return .failure(error)
      case .wrote(let count):
        total += count
        guard drop(count) >= offered.count else { return .success(total) }
      }
    }
    return .success(total)
  }

  /// Copies bytes of segments that the log has dropped, so that a client that doesn't read retains no more memory than the bytes that it has yet to
  /// get.
  mutating func releaseRetiredSegments() {
    for index in chunks.indices {
      if case .segment(let segment, let bytes) = chunks[index], segment.isRetired {
        chunks[index] = unsafe HeldBytes(copying: bytes)
        ownBytes += bytes.count
      }
    }
  }

  /// Removes the first `count` bytes. Returns how many whole chunks were removed.
  private mutating func drop(_ count: Int) -> Int {
    var left = count
    var gone = 0
    while gone < chunks.count, unsafe left >= chunks[gone].bytes.count {
      let length = unsafe chunks[gone].bytes.count
      left -= length
      if !chunks[gone].isSegment { ownBytes -= length }
      gone += 1
    }
    if left > 0 {
      if !chunks[gone].isSegment { ownBytes -= left }
      chunks[gone] = chunks[gone].dropFirst(left)
    }
    chunks.removeFirst(gone)
    return gone
  }
}
