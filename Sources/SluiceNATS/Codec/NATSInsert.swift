/// Bytes of a message's payload that are sent from their own memory: large ones aren't copied on their way to the
/// transport.
// @unchecked: the memory doesn't change, and its owner, which is Sendable, keeps it.
@safe
public struct NATSInsert: @unchecked Sendable {
  /// So many bytes of ``NATSMessage/payload`` are ahead of it.
  public let position: Int
  let memory: UnsafeRawBufferPointer
  private let owner: any AnyObject & Sendable

  /// - Parameters:
  ///   - position: how many bytes of the payload are ahead of it; not below that of the insert before.
  ///   - memory: the bytes. They may not change any more.
  ///   - owner: what keeps the memory as long as it lives itself.
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
