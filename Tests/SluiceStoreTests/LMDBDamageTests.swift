import Glibc
import Testing

@testable import SluiceStore
@testable import SluiceStoreLMDB

/// Reading a file that was damaged after its last commit.
extension LMDBStoreTests {
  /// Changes the file of a store with a large batch.
  private static func damaged(_ change: (Int32) -> Void) throws -> (ScratchDirectory, LMDBStore.Options) {
    let scratch = try ScratchDirectory()
    let store = try LMDBStore.open(at: scratch.path, options())
    try store.add(topic, row: .named("a"), payloads: [[1], Array(repeating: 7, count: 1 << 20)])
    try store.close()
    let file = open("\(scratch.path)/data.mdb", O_RDWR)
    change(file)
    close(file)
    return (scratch, options())
  }

  @Test func aFileThatWasCutOffIsReadAsFarAsItGoes() throws {
    let (scratch, options) = try Self.damaged { file in
      var status = stat()
      fstat(file, &status)
      ftruncate(file, status.st_size - 600_000)
    }
    let error = #expect(throws: StoreError.self) {
      _ = try LMDBStore.open(at: scratch.path, Self.options(.readOnly))
    }
    #expect(error?.kind == .damaged)
    do {
      let store = try LMDBStore.open(at: scratch.path, options)
      for batch in try store.stored(Self.topic) {
        let isWhole = batch.bytes.withUnsafeBytes { BatchView($0, of: Self.topic, at: batch.offset) != nil }
        #expect(isWhole == (batch.offset == 0))
      }
    } catch let error as StoreError {
      #expect(error.kind == .damaged)
    }
  }

  @Test func aFileOfSomethingElseIsRefused() throws {
    let (scratch, options) = try Self.damaged { file in
      _ = pwrite(file, [UInt8](repeating: 0xAB, count: 8192), 8192, 0)
    }
    let error = #expect(throws: StoreError.self) { _ = try LMDBStore.open(at: scratch.path, options) }
    #expect(error?.kind == .damaged)
    #expect(error?.message.contains(scratch.path) == true)
  }

  @Test func aFileWithNothingInItIsRefused() throws {
    let (scratch, options) = try Self.damaged { file in ftruncate(file, 0) }
    let error = #expect(throws: StoreError.self) { _ = try LMDBStore.open(at: scratch.path, options) }
    #expect(error?.kind == .damaged)
  }

  @Test func aTopicsEntryIsCheckedToTheLastBit() {
    let entry = TopicEntry(.named("a"))
    var bytes = [UInt8](repeating: 0, count: entry.count)
    bytes.withUnsafeMutableBytes { entry.write(to: $0, for: Self.topic) }
    func isRead(_ bytes: [UInt8], _ topic: TopicID) -> Bool {
      bytes.withUnsafeBytes { TopicEntry($0, of: topic) != nil }
    }
    #expect(isRead(bytes, Self.topic))
    #expect(!isRead(bytes, TopicID(rawValue: 2)))
    #expect(!isRead([], Self.topic))
    for index in bytes.indices {
      var other = bytes
      other[index] ^= 1
      #expect(!isRead(other, Self.topic))
      #expect(!isRead(Array(bytes[..<index]), Self.topic))
    }
  }
}
