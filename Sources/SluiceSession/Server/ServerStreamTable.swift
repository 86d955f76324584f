import SluiceWire

/// The streams of one connection, by number: what each one is, how often its number was used, and the object that serves it.
struct ServerStreamTable {
  enum State {
    /// Never used, or given back by the client.
    case free
    /// Ended by the broker; the client may not have heard yet, so what it still sends is dropped.
    case ended
    case subscription(grantedThrough: UInt64)
    /// A subscription to a pattern, of which more positions are to come.
    indirect case opening(SubscribePattern)
    case publication(PublicationCredit)
    /// A publication that the client has left or completed. Its number isn't free before CANCELLED is sent.
    case leaving(PublicationCredit)
    /// A request that wasn't answered yet.
    case request
  }

  private struct Slot {
    var state = State.free
    /// Grows with each use of the number, and when a use ends.
    var generation: UInt32 = 0
    var object: (any ServerStream)?
    /// The charge for what the stream's frames make the broker keep, given back when it is released; nil while nothing is charged.
    var charge: AnyObject?
  }

  static var bytesPerStream: Int { MemoryLayout<Slot>.stride }

  /// As far as streams are in use.
  private var slots: [Slot] = []
  /// So many streams directly behind the slots are ended, and need none.
  private var endedBehind: UInt32 = 0
  /// The highest number that was ever used.
  private(set) var highest: UInt32 = 0
  /// Where the uses of a slot that is made are counted from: behind those of slots that were given up.
  private var firstGeneration: UInt32 = 0

  var bytes: Int { slots.capacity * Self.bytesPerStream }

  /// Every number that may be in use.
  var numbers: Range<UInt32> { 1..<UInt32(slots.count + 1) }

  subscript(stream: UInt32) -> State {
    get {
      let index = Int(stream) - 1
      if slots.indices.contains(index) { return slots[index].state }
      return isEndedBehind(stream) ? .ended : .free
    }
    set {
      restore(stream)
      let index = Int(stream) - 1
      if slots.indices.contains(index) { slots[index].state = newValue }
    }
  }

  private func isEndedBehind(_ stream: UInt32) -> Bool {
    stream > slots.count && UInt64(stream) <= UInt64(slots.count) + UInt64(endedBehind)
  }

  mutating func makeRoom(for stream: UInt32) {
    highest = max(highest, stream)
    while slots.count < Int(stream) {
      slots.append(Slot(state: endedBehind > 0 ? .ended : .free, generation: firstGeneration))
      if endedBehind > 0 { endedBehind -= 1 }
    }
  }

  /// Makes the slot of a stream again that was given up.
  private mutating func restore(_ stream: UInt32) {
    if stream > slots.count, stream <= highest { makeRoom(for: stream) }
  }

  /// Gives up slots at the end that say no more than ``endedBehind``. The room isn't kept where few are left.
  private mutating func shrink() {
    var count = slots.count
    search: while count > 0, slots[count - 1].object == nil {
      switch slots[count - 1].state {
      case .ended: endedBehind += 1
      case .free where endedBehind == 0: break
      default: break search
      }
      firstGeneration = max(firstGeneration, slots[count - 1].generation)
      count -= 1
    }
    guard count < slots.count else { return }
    slots.removeLast(slots.count - count)
    if count <= Self.few || slots.capacity > 4 * count { slots = slots.map(\.self) }
  }

  private static let few = 4

  /// Ends the present use of a number, whatever served it, and gives it another state.
  mutating func end(_ stream: UInt32, _ state: State) {
    restore(stream)
    let index = Int(stream) - 1
    guard slots.indices.contains(index) else { return }
    slots[index].state = state
    slots[index].object = nil
    slots[index].charge = nil
    slots[index].generation &+= 1
    shrink()
  }

  // MARK: Objects

  func object(_ stream: UInt32) -> (any ServerStream)? {
    let index = Int(stream) - 1
    return slots.indices.contains(index) ? slots[index].object : nil
  }

  mutating func attach(_ object: any ServerStream, to stream: UInt32) {
    if stream > slots.count { makeRoom(for: stream) }
    slots[Int(stream) - 1].object = object
  }

  /// The charge of the stream's present use.
  func charge(_ stream: UInt32) -> AnyObject? {
    let index = Int(stream) - 1
    return slots.indices.contains(index) ? slots[index].charge : nil
  }

  /// Sets the charge of the stream's present use, which the end of that use releases.
  mutating func charge(_ stream: UInt32, _ charge: AnyObject?) {
    let index = Int(stream) - 1
    if slots.indices.contains(index) { slots[index].charge = charge }
  }

  mutating func detach(_ stream: UInt32) {
    guard object(stream) != nil else { return charge(stream, nil) }
    var state = self[stream]
    if case .leaving = state { state = .free }
    end(stream, state)
  }

  func token(of stream: UInt32) -> StreamToken {
    let index = Int(stream) - 1
    return StreamToken(
      stream: stream,
      generation: slots.indices.contains(index) ? slots[index].generation : firstGeneration)
  }

  // MARK: All of them

  /// Subscriptions and publications, in ascending order.
  var open: [UInt32] {
    slots.indices.compactMap {
      switch slots[$0].state {
      case .free, .ended, .opening, .leaving, .request: nil
      case .subscription, .publication: UInt32($0 + 1)
      }
    }
  }

  /// Whether something is under way: a request without its answer, or a subscription of which more is to come.
  var hasRequests: Bool {
    slots.contains {
      switch $0.state {
      case .opening, .request: true
      case .free, .ended, .subscription, .publication, .leaving: false
      }
    }
  }
}

/// The positions in patterns' topics that have come for subscriptions that are opening.
struct PendingPositions {
  /// About the memory that they take.
  private(set) var bytes = 0
  private var count: Int32 = 0

  mutating func add(_ positions: [TopicPosition]) {
    count += Int32(positions.count)
    bytes += Self.memory(of: positions)
  }

  mutating func remove(_ positions: [TopicPosition]) {
    count -= Int32(positions.count)
    bytes -= Self.memory(of: positions)
  }

  func exceed(_ rules: borrowing ServerSessionRules) -> Bool {
    Int(count) > rules.maximumPositions || bytes > rules.maximumPositionBytes
  }

  /// A position, and the block of memory with its topic's name.
  private static func memory(of positions: [TopicPosition]) -> Int {
    positions.reduce(0) { $0 + MemoryLayout<TopicPosition>.stride + 32 + $1.topic.utf8.count }
  }
}
