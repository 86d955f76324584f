/// The states of a ``StateRestore`` as they travel, so that a broker reads them a part at a time: their number doesn't decide how long a turn takes.
public struct StateEntries: Hashable, Sendable {
  /// The list's structures, one behind the other.
  private let bytes: [UInt8]
  public let count: Int

  /// The count and the bytes of a list without states.
  public init() { (bytes, count) = ([], 0) }

  public init(_ states: [StateEntry]) {
    var writer = ByteWriter()
    for state in states { writer.structure { StateEntry.layout.write(state, &$0) } }
    bytes = writer.bytes
    count = states.count
  }

  /// Reads a list that nothing follows.
  ///
  /// - Throws: ``ErrorCode/malformedFrame`` where a state is cut short. The others are read without their bytes being kept one by one.
  init(list reader: inout ByteReader) throws(WireError) {
    count = Int(try reader.integer("state", as: UInt32.self))
    let start = unsafe reader.remaining
    for _ in 0..<count {
      var state = try reader.structure("state")
      for what in ["state's key", "state's value"] as [StaticString] {
        let length: UInt32 = try state.integer(what)
        _ = try unsafe state.bytes(what, count: Int(length))
      }
    }
    bytes = unsafe Array(start.prefix(start.count - reader.count))
  }

  /// Bytes of memory that they take.
  public var byteCount: Int { bytes.count }

  func write(into writer: inout ByteWriter) {
    writer.integer(UInt32(count))
    writer.bytes += bytes
  }

  /// Reads them from the first one on.
  public func reader() -> Reader { Reader(of: self) }

  /// A place in the states.
  public struct Reader: Sendable {
    private let states: StateEntries
    private var place = 0
    /// How many haven't been read.
    public private(set) var left: Int

    fileprivate init(of states: StateEntries) {
      self.states = states
      left = states.count
    }

    /// The next states: `count`, or as many as are left.
    public mutating func next(_ count: Int) -> [StateEntry] {
      let count = min(count, left)
      left -= count
      let (read, end) = unsafe states.bytes[place...].withUnsafeBytes { bytes in
        var reader = unsafe FieldReader(bytes: ByteReader(bytes))
        // Every state's length was checked when the list came.
        let read = (0..<count).compactMap { _ in try? reader.structure("state", StateEntry.layout) }
        return (read, bytes.count - reader.bytes.count)
      }
      place += end
      return read
    }
  }
}
