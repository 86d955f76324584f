import Glibc
import SluiceIO
import SluiceLog
import SluiceTopics
import SluiceWire

/// The frames of one write: headers and small frames in a block of memory, records as slices of the log, in order.
///
/// One per loop, used by its connections in turn: filled, written, and emptied. After a short write, the rest is returned as ``PendingOutput`` and
/// stays with the connection.
@safe
final class WriteBatch {
  /// Below the kernel's IOV_MAX.
  private static let maximumVectors = 512
  private static let blockSize = 64 << 10
  /// The free space that another round of a subscription needs: a marker, a DELIVER header with a time mark, an end.
  private static let roomForRound = 512
  private static let smallBatch = 1024
  /// Slices up to this size are always copied: one or two records, for which a client waits.
  private static let smallestBatch = 256
  private static let inBlock: Int32 = -1
  /// The bytes of a DELIVER before its records.
  static let deliverHeader = FrameHeader.size + DeliverHeader.size

  private let vectors = UnsafeMutablePointer<iovec>.allocate(capacity: maximumVectors)
  /// For each vector, the index in `held` of the owner of its bytes, or `inBlock`.
  private let holders = UnsafeMutablePointer<Int32>.allocate(capacity: maximumVectors)
  @safe @exclusivity(unchecked) private var held: [HeldBytes] = []
  private var count = 0
  private let block = UnsafeMutableRawPointer.allocate(byteCount: blockSize, alignment: 16)
  private var blockUsed = 0
  /// The bytes gathered since the last write.
  private(set) var bytes = 0
  /// Bytes of records that were read and not added, since the last call of ``takePassed()``. Reading them takes time, too.
  private var passedBytes = 0

  /// Whether subscriptions should sample the latency of a batch, and the time at which the sampled batch was appended to the log.
  var seeksBatch = true
  private var sample: MonotonicTime?

  init() {
    held.reserveCapacity(Self.maximumVectors)
  }

  deinit {
    unsafe vectors.deallocate()
    unsafe holders.deallocate()
    unsafe block.deallocate()
  }

  var isEmpty: Bool { count == 0 }

  /// Whether another DELIVER fits, with the frames that may come before and after it.
  var hasRoom: Bool {
    count + 8 <= Self.maximumVectors && blockUsed + Self.roomForRound <= Self.blockSize
  }

  /// The part of a turn's budget that was used, in bytes.
  var work: Int { bytes + passedBytes }

  /// Counts bytes of records that were read and not added.
  func passed(_ count: Int) {
    passedBytes += count
  }

  /// Records that a batch with sampled latency was added. One sample per turn is enough.
  func found(batchAppendedAt time: MonotonicTime) {
    sample = time
    seeksBatch = false
  }

  /// Returns the time at which the sampled batch was appended, and clears it; nil without a sample.
  @inline(__always)
  func takeSample() -> MonotonicTime? {
    guard sample != nil else { return nil }
    return sample.take()
  }

  func takePassed() -> Int {
    defer { passedBytes = 0 }
    return passedBytes
  }

  /// Adds encoded frames, and empties `frames`.
  func append(_ frames: inout [UInt8]) {
    guard !frames.isEmpty else { return }
    unsafe frames.withUnsafeBytes { unsafe append($0) }
    // Releases the memory of a long answer, since the next one is usually short.
    frames.removeAll(keepingCapacity: frames.capacity <= 1024)
  }

  /// Adds encoded frames without copying them.
  func append(_ frames: HeldBytes) { push(frames) }

  func append(_ frame: some Frame, stream: UInt32) {
    unsafe frame.encoded(stream: stream).withUnsafeBytes { unsafe append($0) }
  }

  /// Removes the small frame that was added last.
  func removeLast(_ length: Int) {
    unsafe vectors[count - 1].iov_len -= length
    if unsafe vectors[count - 1].iov_len == 0 { count -= 1 }
    blockUsed -= length
    bytes -= length
  }

  /// Adds a DELIVER with the records of `slice`, after a time mark if `mark` isn't nil.
  func append(_ slice: LogSlice, mark: Int64?, stream: UInt32) {
    guard unsafe slice.bytes.count > Self.smallestBatch else {
      return appendSmall(slice, mark: mark, stream: stream)
    }
    appendSlice(slice, mark: mark, stream: stream)
  }

  private func appendSlice(_ slice: LogSlice, mark: Int64?, stream: UInt32) {
    pushBlock(writeHeader(slice, mark: mark, stream: stream))
    unsafe push(.segment(slice.segment, slice.bytes))
  }

  /// Adds a DELIVER like ``append(_:mark:stream:)``, and copies a slice that may be a single record: a copy costs less than a vector.
  func appendSmall(_ slice: LogSlice, mark: Int64?, stream: UInt32) {
    let length = unsafe slice.bytes.count
    guard length <= Self.smallBatch, blockUsed + Self.roomForRound + length <= Self.blockSize else {
      return appendSlice(slice, mark: mark, stream: stream)
    }
    let header = writeHeader(slice, mark: mark, stream: stream)
    unsafe (block + blockUsed + header).copyMemory(
      from: slice.bytes.baseAddress.unsafelyUnwrapped, byteCount: length)
    pushBlock(header + length)
  }

  /// Writes the header and the time mark of a slice to the block. Returns their length.
  @inline(__always)
  private func writeHeader(_ slice: LogSlice, mark: Int64?, stream: UInt32) -> Int {
    let header = unsafe block + blockUsed
    let markLength = mark == nil ? 0 : RecordLayout.timeMarkSize
    unsafe DeliverHeader(firstOffset: slice.firstOffset, count: UInt32(slice.count))
      .write(at: header, stream: stream, batchLength: markLength + slice.bytes.count)
    if let mark { unsafe RecordLayout.writeTimeMark(mark, at: header + Self.deliverHeader) }
    return Self.deliverHeader + markLength
  }

  /// Adds a DELIVER for each run of copies, whose headroom contains the header.
  func append(_ copies: CopiedRecords, stream: UInt32) {
    let frames = unsafe copies.fill { header, firstOffset, count, length in
      unsafe DeliverHeader(firstOffset: firstOffset, count: count)
        .write(at: header, stream: stream, batchLength: length)
    }
    if let frames = unsafe frames { unsafe push(.copy(frames.owner, frames.bytes)) }
  }

  /// Writes everything to `stream`, and empties the batch.
  ///
  /// - Returns: the bytes that the transport didn't accept, which must be written before any others; or the failure.
  func write(to stream: any ByteStream) -> Result<PendingOutput, IOError> {
    defer { drop() }
    switch unsafe stream.write(UnsafeBufferPointer(start: vectors, count: count)) {
    case .wrote(let written):
      return .success(written == bytes ? PendingOutput() : rest(from: written))
    case .failed(let error):
      return .failure(error)
    }
  }

  /// Empties the batch.
  func drop() {
    count = 0
    blockUsed = 0
    bytes = 0
    held.removeAllInPlace()
  }

  // MARK: -

  private func append(_ encoded: UnsafeRawBufferPointer) {
    if encoded.count <= Self.roomForRound / 4 || encoded.count <= Self.blockSize / 2 - blockUsed {
      unsafe (block + blockUsed).copyMemory(from: encoded.baseAddress!, byteCount: encoded.count)
      pushBlock(encoded.count)
    } else {
      unsafe push(HeldBytes(copying: encoded))
    }
  }

  /// Adds the next `length` bytes of the block, which were written before.
  private func pushBlock(_ length: Int) {
    if count > 0, unsafe holders[count - 1] == Self.inBlock {
      // The block is filled from front to back, so these bytes follow those of the last vector.
      unsafe vectors[count - 1].iov_len += length
    } else {
      unsafe vectors[count] = unsafe iovec(iov_base: block + blockUsed, iov_len: length)
      unsafe holders[count] = Self.inBlock
      count += 1
    }
    blockUsed += length
    bytes += length
  }

  private func push(_ chunk: HeldBytes) {
    unsafe vectors[count] = unsafe iovec(
      iov_base: UnsafeMutableRawPointer(mutating: chunk.bytes.baseAddress!), iov_len: chunk.bytes.count)
    unsafe holders[count] = Int32(held.count)
    held.append(chunk)
    count += 1
    unsafe bytes += chunk.bytes.count
  }

  private func rest(from written: Int) -> PendingOutput {
    var pending = PendingOutput()
    var skip = written
    for index in 0..<count {
      let length = unsafe vectors[index].iov_len
      guard skip < length else {
        skip -= length
        continue
      }
      if unsafe holders[index] >= 0 {
        unsafe pending.append(held[Int(holders[index])].dropFirst(skip))
      } else {
        unsafe pending.append(
          HeldBytes(
            copying: UnsafeRawBufferPointer(start: vectors[index].iov_base + skip, count: length - skip)))
      }
      skip = 0
    }
    return pending
  }
}
