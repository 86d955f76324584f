/// The topics to which a client publishes, by the bytes of their names, so that a message needs neither a string nor a look-up in the broker.
///
/// Contains the most recently used names. A new name replaces the least recently used one.
struct PublicationTable: Sendable {
  private struct Entry {
    var topic: [UInt8]
    var number: UInt16
    var lastUse: UInt64
  }

  private var entries: [Entry] = []
  private var uses: UInt64 = 0
  /// Where the last search ended.
  private var hint = 0

  static let maximumCount = 32

  var isEmpty: Bool { entries.isEmpty }

  /// The number of the topic's publication; nil if there is none.
  mutating func number(of topic: UnsafeRawBufferPointer) -> UInt16? {
    uses += 1
    if hint < entries.count, unsafe Self.isEqual(entries[hint].topic, topic) {
      entries[hint].lastUse = uses
      return entries[hint].number
    }
    for index in entries.indices where unsafe Self.isEqual(entries[index].topic, topic) {
      hint = index
      entries[index].lastUse = uses
      return entries[index].number
    }
    return nil
  }

  /// Assigns a number to a topic.
  ///
  /// - Returns: the number, and whether it was another topic's before.
  mutating func insert(_ topic: UnsafeRawBufferPointer) -> (number: UInt16, isReused: Bool) {
    uses += 1
    if entries.count < Self.maximumCount {
      hint = entries.count
      let number = UInt16(entries.count)
      unsafe entries.append(Entry(topic: Array(topic), number: number, lastUse: uses))
      return (number, false)
    }
    hint = entries.indices.min { entries[$0].lastUse < entries[$1].lastUse } ?? 0
    unsafe entries[hint].topic = Array(topic)
    entries[hint].lastUse = uses
    return (entries[hint].number, true)
  }

  /// Removes a publication that has ended: the next message to its topic opens another one.
  mutating func remove(_ number: UInt16) {
    for index in entries.indices where entries[index].number == number { entries[index].topic = [] }
  }

  @inline(__always)
  private static func isEqual(_ left: [UInt8], _ right: UnsafeRawBufferPointer) -> Bool {
    guard left.count == right.count else { return false }
    return unsafe left.withUnsafeBytes { left in
      var index = 0
      while index &+ 8 <= left.count {
        let (one, other) = unsafe (
          left.loadUnaligned(fromByteOffset: index, as: UInt64.self),
          right.loadUnaligned(fromByteOffset: index, as: UInt64.self)
        )
        if one != other { return false }
        index &+= 8
      }
      while index < left.count {
        if unsafe left[index] != right[index] { return false }
        index &+= 1
      }
      return true
    }
  }
}
