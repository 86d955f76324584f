import SluiceStore
import SluiceWire
import Testing

@testable import SluiceCluster

@Suite("An owner's fence")
struct OwnerFenceTests {
  /// Opener 5 with term 2, whose fence is at sequence 10.
  private static func owner() -> OwnerFence {
    var table = FenceTable()
    table.take(EngineFence(term: 1, opener: 4, .opened), at: 1)
    table.take(EngineFence(term: 2, opener: 5, .opened), at: 10)
    return OwnerFence(term: 2, opener: 5, at: 10, table)
  }

  private static func take(
    _ owner: inout OwnerFence, _ payload: [UInt8], at sequence: UInt64
  ) throws -> OwnerFence.Found {
    try payload.withUnsafeBytes { try owner.take($0, at: sequence) }
  }

  private static func change(under fence: UInt64, commit: UInt64) -> [UInt8] {
    EngineEnvelope(.change, fence: fence, commit: commit).writer().bytes
  }

  @Test("commits under the owner's fence count, and not those of the owner before it")
  func changes() throws {
    var owner = Self.owner()
    #expect(try Self.take(&owner, Self.change(under: 10, commit: 3), at: 11) == .commit(3))
    #expect(try Self.take(&owner, Self.change(under: 1, commit: 9), at: 12) == .nothing)
    // A message sent ahead, after a late one.
    #expect(try Self.take(&owner, Self.change(under: 10, commit: 4), at: 13) == .nothing)
    #expect(owner.counts(11, under: 10) && !owner.counts(13, under: 10))
    #expect(owner.sequence == 10)
  }

  @Test("commits count under the owner's new barrier only")
  func barrier() throws {
    var owner = Self.owner()
    owner.raised(at: 12)
    #expect(owner.sequence == 12)
    #expect(try Self.take(&owner, Self.change(under: 10, commit: 3), at: 13) == .nothing)
    owner.raised(at: 14)
    #expect(try Self.take(&owner, Self.change(under: 14, commit: 3), at: 15) == .commit(3))
    #expect(owner.message(.closed) == EngineFence(term: 2, opener: 5, .closed))
  }

  @Test("a barrier of its own that it finds is its fence, and one of a later owner ends it")
  func fences() throws {
    var owner = Self.owner()
    #expect(try Self.take(&owner, owner.message(.barrier).message(), at: 12) == .nothing)
    #expect(owner.sequence == 12)
    let former = EngineFence(term: 1, opener: 4, .barrier)
    #expect(try Self.take(&owner, former.message(), at: 13) == .nothing)
    #expect(owner.sequence == 12)
    // The same lease, reopened.
    for term in [2, 3] as [UInt64] {
      let other = EngineFence(term: term, opener: 6, .opened)
      #expect(try Self.take(&owner, other.message(), at: 14) == .otherOwner)
    }
  }

  @Test("what isn't a message of a shard is damaged")
  func damaged() {
    var owner = Self.owner()
    #expect(throws: StoreError.self) { try Self.take(&owner, [1, 2], at: 11) }
  }
}
