/// Bytes of a message's payload that are sent from their own memory, so that large ones aren't copied on their way to the transport.
// @unchecked: the memory doesn't change, and its owner, which is Sendable, retains it.
@safe
public struct NATSInsert: @unchecked Sendable {
  /// The number of bytes of ``NATSMessage/payload`` before it.
  public let position: Int
  let memory: UnsafeRawBufferPointer
  private let owner: any AnyObject & Sendable

  /// - Parameters:
  ///   - position: the number of bytes of the payload before it; not below that of the previous insert.
  ///   - memory: the bytes. They must not change any more.
  ///   - owner: an object that retains the memory.
  public init(at position: Int, _ memory: UnsafeRawBufferPointer, of owner: any AnyObject & Sendable) {
    self.position = position
    unsafe self.memory = memory
    self.owner = owner
  }

  public var count: Int { unsafe memory.count }
}

extension NATSInsert: Hashable {
  public static func == (one: NATSInsert, other: NATSInsert) -> Bool {
    unsafe one.position == other.position && one.memory.elementsEqual(other.memory)
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(position)
    unsafe hasher.combine(bytes: memory)
  }
}
