import Glibc
import TestSupport
import Testing

@testable import SluiceStore
@testable import SluiceStoreLMDB

/// The files of an open store lose their names.
@Suite struct RemovedStoreTests {
  private let scratch: ScratchDirectory
  private let store: LMDBStore

  init() throws {
    scratch = try ScratchDirectory()
    store = try Self.open("\(scratch.path)/store")
    try StoreScene.fill(store)
  }

  private static func open(_ path: String) throws -> LMDBStore {
    var options = LMDBStore.Options()
    options.limit = 256 << 20
    return try LMDBStore.open(at: path, options)
  }

  private var directory: String { "\(scratch.path)/store" }

  private func commit() throws {
    var change = TopicChange(TopicID(rawValue: 9))
    change.row = StoreScene.row("another")
    try store.commit([change])
  }

  private func expectRemoved() {
    #expect(throws: StoreError.self) { try store.checkPlace() }
    let error = #expect(throws: StoreError.self) { try commit() }
    #expect(error?.kind == .removed)
    #expect(error?.message.contains(directory) == true)
  }

  @Test func aStoreInItsPlaceTakesRecords() throws {
    try store.checkPlace()
    try commit()
  }

  @Test(arguments: ["data.mdb", "lock"])
  func aFileThatWasRemovedIsNoticed(name: String) {
    #expect(unlink("\(directory)/\(name)") == 0)
    expectRemoved()
  }

  @Test func aDirectoryThatWasMovedIsNoticedAndMayComeBack() throws {
    #expect(rename(directory, "\(directory).away") == 0)
    expectRemoved()
    #expect(rename("\(directory).away", directory) == 0)
    try store.checkPlace()
    try commit()
  }

  @Test func anotherStoreInItsPlaceIsNoticed() throws {
    #expect(rename(directory, "\(directory).away") == 0)
    let other = try Self.open(directory)
    expectRemoved()
    try other.close()
  }
}
