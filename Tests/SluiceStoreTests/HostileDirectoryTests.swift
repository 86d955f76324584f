import Foundation
import Glibc
import TestSupport
import Testing

@testable import SluiceStore
@testable import SluiceStoreLMDB

/// Contents of a directory that are no valid store.
@Suite("Directories that are no stores, or were tampered with")
struct HostileDirectoryTests {
  private static let accesses: [LMDBStore.Access] = [.create, .existing, .readOnly]
  private let scratch: ScratchDirectory

  init() throws {
    scratch = try ScratchDirectory()
    let store = try Self.open(directory)
    try StoreScene.fill(store)
    try store.close()
  }

  private var directory: String { "\(scratch.path)/store" }
  private var data: String { "\(directory)/data.mdb" }

  private static func open(_ path: String, _ access: LMDBStore.Access = .create) throws -> LMDBStore {
    var options = LMDBStore.Options()
    options.limit = 256 << 20
    options.access = access
    return try LMDBStore.open(at: path, options)
  }

  /// Opens a directory in every mode, each of which must fail.
  private func refusal(_ path: String, at location: SourceLocation = #_sourceLocation) -> Set<StoreError> {
    Set(
      Self.accesses.compactMap { access in
        #expect(throws: StoreError.self, "\(access)", sourceLocation: location) {
          try Self.open(path, access)
        }
      })
  }

  @Test func anEmptyFileIsNoStoreAndStaysEmpty() throws {
    #expect(truncate(data, 0) == 0)
    let refusal = refusal(directory)
    #expect(refusal.map(\.kind) == [.damaged] && refusal.allSatisfy { $0.message.contains("is empty") })
    #expect(try Data(contentsOf: URL(filePath: data)).isEmpty)
  }

  @Test("something else than a store's file", arguments: ["text", "random", "zeros"])
  func otherFiles(kind: String) throws {
    var random = SeededRandom(seed: 1)
    let bytes =
      switch kind {
      case "text": Array("hello, world\n".utf8)
      case "random": random.bytes(100_000)
      default: [UInt8](repeating: 0, count: 50_000)
      }
    try Data(bytes).write(to: URL(filePath: data))
    let refusal = refusal(directory)
    #expect(refusal.count == 1 && refusal.allSatisfy { $0.message.contains(data) })
    #expect(try Data(contentsOf: URL(filePath: data)) == Data(bytes))
  }

  @Test func aDirectoryOrAPipeInTheFilesPlace() throws {
    #expect(unlink(data) == 0 && mkdir(data, 0o700) == 0)
    #expect(refusal(directory).map(\.kind) == [.notAStore])
    #expect(rmdir(data) == 0 && mkfifo(data, 0o600) == 0)
    #expect(refusal(directory).map(\.kind) == [.notAStore])
  }

  @Test func theDirectoryMayBeALink() throws {
    let link = "\(scratch.path)/link"
    #expect(symlink("store", link) == 0)
    for access in Self.accesses {
      #expect(try StoreScene.records(Self.open(link, access)).count == 10)
    }
    #expect(symlink("nowhere", "\(scratch.path)/dangling") == 0)
    #expect(refusal("\(scratch.path)/dangling").map(\.kind) == [.notAStore])
    #expect(scratch.names == ["dangling", "link", "store"])
  }

  @Test func aFileInTheDirectorysPlace() throws {
    let refusal = refusal(data)
    #expect(refusal.map(\.kind) == [.notAStore])
    #expect(refusal.first?.message.contains("isn't a directory") == true)
  }

  @Test func whatADeadProcessLeftIsOfNoConsequence() throws {
    try Data("garbage".utf8).write(to: URL(filePath: "\(directory)/lock"))
    var random = SeededRandom(seed: 2)
    try Data(random.bytes(65_536)).write(to: URL(filePath: "\(directory)/data.mdb-lock"))
    for name in ["new.mdb", "new.mdb-lock"] {
      try Data("half a store".utf8).write(to: URL(filePath: "\(directory)/\(name)"))
    }
    for access in Self.accesses {
      #expect(try StoreScene.records(Self.open(directory, access)).count == 10)
    }
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: directory).sorted() == [
        "data.mdb", "data.mdb-lock", "lock", "reserve",
      ])
  }

  @Test("a file that was cut off is refused, or its records are damaged")
  func cutOff() throws {
    let whole = try Data(contentsOf: URL(filePath: data))
    for length in stride(from: 1_024, to: whole.count, by: 1_024) {
      try whole.prefix(length).write(to: URL(filePath: data))
      #expect(throws: StoreError.self, "\(length)") { try Self.open(directory, .readOnly).contents() }
    }
  }
}
