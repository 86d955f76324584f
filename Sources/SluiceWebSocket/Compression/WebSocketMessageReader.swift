/// Takes parts of messages, compressed or not, and puts the messages' bytes where its user has room for them.
///
/// Bytes that don't fit are kept compressed: the few bytes of a compressed megabyte of zeros, and not the megabyte. The user takes no other part until that is
/// read as well. Between messages nothing is held.
package final class WebSocketMessageReader {
  private let inflaters: InflaterPool
  /// For the current compressed message.
  private var inflater: Inflater?
  /// The rest of a part, still compressed.
  private var rest: [UInt8] = []
  private var restIsCompressed = false
  /// Whether it is the last of a compressed message.
  private var endsMessage = false
  /// Bytes of the end of a compressed message, which isn't in its frames, that are still to be inflated.
  private var ending = 0

  /// Whether something is left, for which there was no room.
  package private(set) var isBlocked = false

  package init(_ inflaters: InflaterPool) {
    self.inflaters = inflaters
  }

  /// Bytes of memory for what is under way.
  package var heldBytes: Int { rest.capacity + (inflater == nil ? 0 : Inflater.size) }

  /// Takes a part, of which as much is put into `room` as there is room for. Only while it isn't ``isBlocked``.
  ///
  /// - Returns: how many bytes were put there.
  package func take(
    _ part: UnsafeRawBufferPointer, isCompressed: Bool, isLast: Bool,
    into room: UnsafeMutableRawBufferPointer
  ) throws(WebSocketError) -> Int {
    precondition(!isBlocked)
    var (part, left) = unsafe (part, room)
    if isCompressed {
      if inflater == nil { inflater = inflaters.take() }
      endsMessage = isLast
      if isLast { ending = Deflater.ending.count }
      try unsafe inflate(&part, &left)
    } else {
      unsafe Self.copy(&part, &left)
      isBlocked = unsafe !part.isEmpty
    }
    if isBlocked {
      rest = unsafe Array(part)
      restIsCompressed = isCompressed
    }
    return room.count - left.count
  }

  /// Puts what is left into `room`, as far as there is room. Returns how many bytes.
  package func goOn(into room: UnsafeMutableRawBufferPointer) throws(WebSocketError) -> Int {
    guard isBlocked else { return 0 }
    var left = unsafe room
    // Copied from the property, which may change while the bytes are inflated.
    let bytes = rest
    let taken = try unsafe bytes.withUnsafeBufferPointer { bytes throws(WebSocketError) in
      var part = UnsafeRawBufferPointer(bytes)
      if restIsCompressed {
        try unsafe inflate(&part, &left)
      } else {
        unsafe Self.copy(&part, &left)
        isBlocked = unsafe !part.isEmpty
      }
      return bytes.count - part.count
    }
    rest = isBlocked ? Array(bytes[taken...]) : []
    return room.count - left.count
  }

  /// Inflates a part, and then the end of the message if it has arrived.
  private func inflate(
    _ part: inout UnsafeRawBufferPointer, _ room: inout UnsafeMutableRawBufferPointer
  ) throws(WebSocketError) {
    guard let inflater else { return }
    isBlocked = try unsafe !Self.inflate(&part, &room, inflater)
    guard !isBlocked, endsMessage else { return }
    isBlocked = try unsafe Deflater.ending.withUnsafeBufferPointer { bytes throws(WebSocketError) in
      var last = unsafe UnsafeRawBufferPointer(
        UnsafeBufferPointer(rebasing: bytes[(bytes.count - ending)...]))
      defer { ending = last.count }
      return try unsafe !Self.inflate(&last, &room, inflater)
    }
    guard !isBlocked else { return }
    guard inflater.isBetweenBlocks else {
      throw WebSocketError(.invalidPayload, "a compressed message ends within its data")
    }
    self.inflater = nil
    inflaters.give(back: inflater)
  }

  /// Returns false when the room is full.
  private static func inflate(
    _ part: inout UnsafeRawBufferPointer, _ room: inout UnsafeMutableRawBufferPointer, _ inflater: Inflater
  ) throws(WebSocketError) -> Bool {
    switch unsafe inflater.inflate(&part, into: &room) {
    case .done: return true
    case .full: return false
    case .corrupt:
      throw WebSocketError(.invalidPayload, "a compressed message isn't data of DEFLATE")
    }
  }

  private static func copy(
    _ part: inout UnsafeRawBufferPointer, _ room: inout UnsafeMutableRawBufferPointer
  ) {
    let count = min(part.count, room.count)
    unsafe room.copyMemory(from: UnsafeRawBufferPointer(rebasing: part[..<count]))
    unsafe part = UnsafeRawBufferPointer(rebasing: part[count...])
    unsafe room = UnsafeMutableRawBufferPointer(rebasing: room[count...])
  }
}
