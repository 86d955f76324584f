/// Cuts a stream of bytes into frames, wherever the transport happened to cut it.
///
/// Frames that lie whole in a chunk are handed out in place, without a copy. Only a frame that straddles two chunks is assembled
/// in the decoder's own memory. That memory grows with the bytes that have arrived, never with the length in a header, and is
/// released with the frame: a decoder between frames holds none.
@safe
public struct FrameDecoder: ~Copyable {
  /// The longest body that is taken, in bytes. A change counts from the next chunk on.
  public var maximumFrame: Int {
    get { Int(limit) }
    // A frame with its header is counted in 32 bits.
    set { limit = UInt32(min(newValue, Int(UInt32.max) - FrameHeader.size)) }
  }

  /// How many bytes of the last chunk were taken up: all, unless the caller stopped early.
  public var takenBytes: Int { Int(taken) }

  // Short, as every connection has one.
  private var partial: UnsafeMutableRawPointer?
  private var partialCount: UInt32 = 0
  private var partialCapacity: UInt32 = 0
  private var limit: UInt32 = 0
  private var taken: UInt32 = 0
  /// Set until the first frame has come.
  private var opening: Side?

  /// - Parameters:
  ///   - maximumFrame: the longest body that is taken, in bytes.
  ///   - side: the side that reads the start of a connection; nil elsewhere. If no connection to that side opens with a frame of
  ///     that type, the first frame is refused as soon as its header has arrived, before its length is used.
  public init(maximumFrame: Int, openingAt side: Side? = nil) {
    opening = side
    self.maximumFrame = maximumFrame
  }

  deinit {
    unsafe partial?.deallocate()
  }

  /// So that bytes that come one by one don't each ask for memory.
  private static let smallestCapacity = 64

  /// Bytes of a frame that isn't complete yet; not 0 at the end of a stream means that it was cut off.
  public var pendingBytes: Int { Int(partialCount) }

  /// Bytes of memory that are held for that frame.
  public var heldBytes: Int { Int(partialCapacity) }

  /// Hands out every frame that `chunk` completes.
  ///
  /// `body` gets the header and the frame's body, valid during the call only, and returns false to stop after this frame:
  /// ``takenBytes`` then ends there. The rest is for the caller to pass in again, or to drop with the connection.
  ///
  /// - Throws: ``ErrorCode/frameTooLarge`` for a frame beyond the limit, as soon as its header has arrived; ``ErrorCode/notSluice``
  ///   for a peer with another protocol; any error of `body`. The decoder isn't usable after that.
  public mutating func decode(
    _ chunk: UnsafeRawBufferPointer,
    _ body: (FrameHeader, UnsafeRawBufferPointer) throws(WireError) -> Bool
  ) throws(WireError) {
    taken = UInt32(chunk.count)
    guard let start = chunk.baseAddress else { return }
    var position = unsafe start
    let end = unsafe position + chunk.count
    if partialCount > 0 {
      guard try unsafe completePartial(&position, end, body) else {
        taken = unsafe UInt32(position - start)
        return
      }
    }
    while unsafe end - position >= FrameHeader.size {
      let header = unsafe FrameHeader(at: position)
      try unsafe check(header, at: position)
      let length = Int(header.length)
      guard unsafe end - position - FrameHeader.size >= length else { break }
      let frame = unsafe UnsafeRawBufferPointer(start: position + FrameHeader.size, count: length)
      unsafe position += FrameHeader.size + length
      opening = nil
      guard try unsafe body(header, frame) else {
        taken = unsafe UInt32(position - start)
        return
      }
    }
    if unsafe position < end { unsafe keep(position, end - position) }
  }

  /// Feeds the frame that an earlier chunk began. Returns false when the chunk is used up, or `body` stopped.
  private mutating func completePartial(
    _ position: inout UnsafeRawPointer, _ end: UnsafeRawPointer,
    _ body: (FrameHeader, UnsafeRawBufferPointer) throws(WireError) -> Bool
  ) throws(WireError) -> Bool {
    if partialCount < FrameHeader.size {
      let taken = unsafe min(FrameHeader.size - pendingBytes, end - position)
      unsafe keep(position, taken)
      unsafe position += taken
      guard partialCount == FrameHeader.size else { return false }
    }
    let header = unsafe FrameHeader(at: partial!)
    try unsafe check(header, at: partial!)
    let whole = FrameHeader.size + Int(header.length)
    let taken = unsafe min(whole - pendingBytes, end - position)
    unsafe keep(position, taken)
    unsafe position += taken
    guard pendingBytes == whole else { return false }
    let memory = unsafe partial!
    unsafe partial = nil
    partialCount = 0
    partialCapacity = 0
    opening = nil
    defer { unsafe memory.deallocate() }
    return try unsafe body(
      header, UnsafeRawBufferPointer(start: memory + FrameHeader.size, count: whole - FrameHeader.size))
  }

  @inline(__always)
  private func check(_ header: FrameHeader, at bytes: UnsafeRawPointer) throws(WireError) {
    if opening != nil || header.length > limit { try unsafe checkClosely(header, at: bytes) }
  }

  @inline(never)
  private func checkClosely(_ header: FrameHeader, at bytes: UnsafeRawPointer) throws(WireError) {
    if let opening, !opening.opens(with: header.type) {
      throw WireError(
        .notSluice, unsafe "the peer doesn't speak the Sluice protocol: it began with \(shown(bytes))")
    }
    guard header.length <= limit else {
      throw WireError(
        .frameTooLarge,
        "a \(header.type) frame of \(header.length) bytes is longer than the limit of \(maximumFrame)")
    }
  }

  /// The header's bytes, for people: text as it is.
  private func shown(_ header: UnsafeRawPointer) -> String {
    let text = unsafe UnsafeRawBufferPointer(start: header, count: FrameHeader.size).reduce(into: "") {
      text, byte in
      text +=
        (0x20..<0x7F).contains(byte)
        ? String(Unicode.Scalar(byte)) : "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
    return "\"\(text)\""
  }

  private mutating func keep(_ bytes: UnsafeRawPointer, _ count: Int) {
    guard count > 0 else { return }
    let needed = pendingBytes + count
    if needed > heldBytes {
      let capacity = max(
        needed, Self.smallestCapacity, min(heldBytes * 2, FrameHeader.size + maximumFrame))
      let grown = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
      if let partial = unsafe partial {
        unsafe grown.copyMemory(from: partial, byteCount: pendingBytes)
        unsafe partial.deallocate()
      }
      unsafe partial = unsafe grown
      partialCapacity = UInt32(capacity)
    }
    unsafe (partial! + pendingBytes).copyMemory(from: bytes, byteCount: count)
    partialCount = UInt32(needed)
  }
}
