import SluiceStore
import SluiceWire

/// The fence under which an owner of a shard writes, among the fences of the shard's stream.
struct OwnerFence {
  /// The meaning of a message in the stream for the owner.
  enum Found: Hashable {
    /// Another owner has the shard.
    case otherOwner
    /// The message belongs to the commit with that number, and counts.
    case commit(UInt64)
    case nothing
  }

  let term: UInt64
  /// A number that no other opening of the shard has.
  let opener: UInt64
  /// The sequence of the fence message under which messages are sent.
  private(set) var sequence: UInt64
  private var table: FenceTable

  init(term: UInt64, opener: UInt64, at sequence: UInt64, _ table: FenceTable) {
    self.term = term
    self.opener = opener
    self.sequence = sequence
    self.table = table
  }

  /// The body of a fence message of this owner.
  func message(_ what: EngineFence.What) -> EngineFence { EngineFence(term: term, opener: opener, what) }

  /// Whether a message at that sequence counts that was sent under the fence at `fence`.
  func counts(_ sequence: UInt64, under fence: UInt64) -> Bool { table.counts(sequence, under: fence) }

  /// Notes that a barrier of this owner is stored.
  mutating func raised(at sequence: UInt64) {
    table.take(message(.barrier), at: sequence)
    self.sequence = sequence
  }

  /// Handles the next message of the stream.
  ///
  /// - Throws: ``StoreError/Kind/damaged``, ``StoreError/Kind/newer``.
  mutating func take(
    _ payload: UnsafeRawBufferPointer, at sequence: UInt64
  ) throws(StoreError) -> Found {
    var reader = unsafe ByteReader(payload)
    let envelope = try EngineEnvelope(&reader)
    switch envelope.kind {
    case .fence:
      let found = try EngineFence(&reader)
      if found.opener != opener, found.term >= term { return .otherOwner }
      table.take(found, at: sequence)
      if found.opener == opener { self.sequence = sequence }
      return .nothing
    case .change:
      table.note(sequence, under: envelope.fence)
      return table.counts(sequence, under: envelope.fence) ? .commit(envelope.commit) : .nothing
    case .checkpoint, .front: return .nothing
    }
  }
}
