import Foundation
import SluiceStore
import SluiceStoreLMDB
import SluiceWire
import TestSupport
import Testing

/// Maintaining a store from the command line, with real processes.
@Suite(.onItsOwnThread) struct ToolStoreTests {
  private let store: TemporaryDirectory
  private let other: TemporaryDirectory

  init() throws {
    store = try TemporaryDirectory()
    other = try TemporaryDirectory()
    try open { store in
      try Self.fill(store, "orders", id: 1, batches: 20)
      try Self.fill(store, "prices", id: 2, batches: 1)
    }
  }

  /// The sections of an export without the topics' epochs; an import starts its own epochs.
  private static func contents(of file: String) throws -> [ExportSection] {
    var rest = try readFile(file)[...]
    var reader = ExportReader { target in
      let count = min(rest.count, target.count)
      target.copyBytes(from: rest.prefix(count))
      rest = rest.dropFirst(count)
      return .success(count)
    }
    var contents: [ExportSection] = []
    while var section = try reader.next() {
      if case .topic(var row) = section {
        (row.epoch, row.lineage) = (0, [])
        section = .topic(row)
      }
      contents.append(section)
    }
    return contents
  }

  // MARK: Stores

  /// Creates a topic of batches with ten records each, and a cursor.
  private static func fill(_ store: LMDBStore, _ name: String, id: UInt64, batches: UInt64) throws {
    var change = TopicChange(TopicID(rawValue: id))
    var settings = TopicSettings(replayRecords: 1_000)
    settings.storage = .durable
    change.row = StoredTopic(name: name, settings: settings, epoch: id)
    for batch in 0..<batches {
      let block = BatchBlock(
        firstOffset: batch * 10, bytesBefore: change.batches.last?.bytesThrough ?? 0)
      for record in 0..<10 {
        let payload = Array("\(name)-\(batch)-\(record)".utf8)
        let item =
          withUnsafeBytes(of: RecordLayout.word(.plain, length: payload.count).littleEndian) { Array($0) }
          + payload
        _ = item.withUnsafeBytes { block.append($0, count: 1, time: 1_770_091_506_000 + Int64(batch)) }
      }
      block.seal(for: change.topic)
      change.batches.append(block)
    }
    change.states = [.init(.cursor, key: Array("billing".utf8), value: [1])]
    try store.commit([change])
  }

  /// Opens the store while `body` runs.
  private func open(_ body: (LMDBStore) throws -> Void) throws {
    let store = try LMDBStore.open(at: store.path)
    try body(store)
    try store.close()
  }

  /// Replaces these bytes everywhere in the store's file, which may contain old copies of a page.
  private func damage(_ text: String, _ replacement: String) throws {
    let file = URL(filePath: store.file("data.mdb"))
    var data = try Data(contentsOf: file)
    try #require(data.range(of: Data(text.utf8)) != nil)
    while let range = data.range(of: Data(text.utf8)) {
      data.replaceSubrange(range, with: Data(replacement.utf8))
    }
    try data.write(to: file)
  }

  private func run(
    _ arguments: String..., input: ChildProcess.Input = .nothing, output: ChildProcess.Output = .captured,
    code: Int32 = 0, at location: SourceLocation = #_sourceLocation
  ) throws -> (output: String, errors: String) {
    let process = try ChildProcess(
      BuiltProduct.path("sluice"), ["store"] + arguments, input: input, output: output)
    let exit = try process.waitForExit()
    #expect(exit == .code(code), "\(arguments): \(process.messages)", sourceLocation: location)
    return (process.standardOutput.text, process.standardError.text)
  }

  private func lines(_ text: String) -> [String] { text.split(separator: "\n").map(String.init) }

  // MARK: Looking

  @Test func whatIsThereIsShown() throws {
    let list = lines(try run("stat", store.path).output)
    try #require(list.count == 4)
    #expect(list[0].split(separator: " ").prefix(4) == ["TOPIC", "STATE", "RECORDS", "FROM"])
    #expect(list[1].split(separator: " ").prefix(4) == ["orders", "open", "200", "0"])
    #expect(list[1].contains("2026-02-03T04:05:06.000Z"))
    #expect(list[2].split(separator: " ").prefix(3) == ["prices", "open", "10"])
    #expect(list[3].hasPrefix("2 topics, 210 records; "))

    let show = try run("stat", store.path, "orders").output
    #expect(show.contains("200 kept, offsets 0 to 199") && show.contains("replay-records  1000"))
    #expect(try run("stat", store.path, "oders", code: 1).errors.contains("there is no topic oders"))

    let objects = lines(try run("stat", store.path, "--json").output)
    try #require(objects.count == 3)
    #expect(objects[0].contains("\"topic\":\"orders\"") && objects[0].contains("\"next_offset\":200"))
    #expect(objects[2].contains("\"topics\":2,\"records\":210") && objects[2].contains("\"closed\":true"))
    #expect(try run("verify", store.path).output.hasSuffix(": no damage\n"))
  }

  @Test func aRunningBrokersStoreIsLeftAlone() throws {
    let file = other.file("export")
    _ = try run("export", store.path, file)
    try open { _ in
      for arguments in [["stat"], ["verify"], ["repair"], ["repair", "--dry-run"], ["compact"]] {
        let process = try ChildProcess(
          BuiltProduct.path("sluice"), ["store", arguments[0], store.path] + arguments.dropFirst())
        #expect(try process.waitForExit() == .code(1))
        #expect(process.standardError.text.contains("is in use by process \(getpid());"))
        #expect(process.standardOutput.text.isEmpty)
      }
      #expect(try run("import", store.path, file, code: 1).errors.contains("is in use by process"))
    }
  }

  @Test func nothingIsMadeWhereNoStoreIs() throws {
    let missing = other.file("missing")
    for command in ["stat", "verify", "repair", "compact", "export"] {
      #expect(try run(command, missing, code: 1).errors.contains("there is no store at \(missing)"))
      #expect(try run(command, other.path, code: 1).errors.contains("it has no data.mdb"))
    }
    #expect(
      try run("import", missing, input: .bytes(Array("garbage".utf8)), code: 1).errors.contains(
        "isn't an export"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: other.path).isEmpty)
  }

  // MARK: Damage

  @Test func damageIsFoundAndMended() throws {
    try damage("orders-7-3", "orders-7-4")
    let found = try run("verify", store.path, code: 1)
    #expect(
      lines(found.output).first
        == "topic orders, batch at offset 70: its checksum is wrong; records 70 to 79 are missing")
    #expect(lines(found.output).last?.hasSuffix("1 finding, 10 records missing") == true)
    #expect(found.errors.contains("is damaged (1 finding); sluice store repair"))
    let objects = lines(try run("verify", store.path, "--json", code: 1).output)
    #expect(
      objects.count == 2 && objects[0].contains("\"problem\":\"batch-checksum\"")
        && objects[0].contains("\"missing\":10,\"missing_from\":70,\"missing_to\":79"))

    let step = "topic orders: the batch at offset 70 is removed, and with it records 70 to 79"
    let dry = try run("repair", store.path, "--dry-run", code: 1)
    #expect(lines(dry.output) == [step, "1 repair needed; 10 records lost"])
    #expect(dry.errors.contains("nothing was changed"))
    #expect(lines(try run("repair", store.path).output) == [step, "1 repair made; 10 records lost"])
    #expect(try run("repair", store.path).output == "nothing to repair\n")
    let after = lines(try run("verify", store.path).output)
    #expect(after.first == "topic orders: a gap; records 70 to 79 are missing")
    #expect(after.last?.hasSuffix(": no damage, 10 records missing") == true)
    var extent: StoredExtent?
    try open { extent = try $0.extent(of: TopicID(rawValue: 1)) }
    #expect(extent?.head == 200)
  }

  @Test func whatIsDamagedIsNotExported() throws {
    try damage("orders-7-3", "orders-7-4")
    let file = other.file("export")
    let export = try run("export", store.path, file, code: 1)
    #expect(export.errors.contains("left out: topic orders, batch at offset 70: its checksum is wrong"))
    #expect(
      export.errors.contains(
        "exported 2 topics with 200 records and the states of 2 producers, cursors and groups"))
    _ = try run("import", other.file("copy"), file)
    #expect(try run("verify", other.file("copy")).output.contains("no damage"))
    try FileManager.default.removeItem(atPath: other.file("copy"))
  }

  @Test("a file whose structure is damaged is said to be so", arguments: [1, 2, 3, 4, 5, 6, 7])
  func structure(page: Int) throws {
    let file = URL(filePath: store.file("data.mdb"))
    let data = try Data(contentsOf: file)
    for garbage in [Data(repeating: 0xFF, count: 4096), Data(count: 4096), Data("garbage!".utf8)] {
      var damaged = data
      let start = page * 4096
      guard start + garbage.count <= damaged.count else { return }
      damaged.replaceSubrange(start..<start + garbage.count, with: garbage)
      try damaged.write(to: file)
      for command in ["stat", "verify", "export"] {
        let process = try ChildProcess(
          BuiltProduct.path("sluice"), ["store", command, store.path], output: .nothing)
        let exit = try process.waitForExit()
        // A damaged page that isn't in use does no harm.
        #expect(exit == .code(0) || exit == .code(1), "\(command): \(exit)")
        #expect(exit == .code(0) || process.standardError.text.hasPrefix("sluice: "))
      }
    }
  }

  @Test func aFileThatIsCutOffIsSaidToBeSo() throws {
    let file = URL(filePath: store.file("data.mdb"))
    let data = try Data(contentsOf: file)
    for length in [0, 100, 4096, 8192, 3 * 4096, data.count / 2] {
      try data.prefix(length).write(to: file)
      for command in ["stat", "verify", "export"] {
        let process = try ChildProcess(
          BuiltProduct.path("sluice"), ["store", command, store.path], output: .nothing)
        #expect(try process.waitForExit() == .code(1), "\(command) of \(length) bytes")
        #expect(process.standardError.text.hasPrefix("sluice: "))
      }
    }
  }

  // MARK: From one to another

  @Test func topicsAreCopied() throws {
    let (first, second) = (other.file("first"), other.file("second"))
    #expect(
      try run("export", store.path, first).errors
        == "sluice: exported 2 topics with 210 records and the states of 2 producers, cursors and groups\n")
    #expect(try run("export", store.path, first, code: 1).errors.contains("exists already"))
    let copy = try TemporaryDirectory()
    #expect(
      try run("import", copy.path, first).errors
        == "sluice: imported 2 topics with 210 records and the states of 2 producers, cursors and groups\n")
    #expect(try run("export", copy.path, second, "--quiet").errors.isEmpty)
    // An import starts its own epochs: the copy of the copy differs only in them.
    #expect(try Data(contentsOf: URL(filePath: second)).count > Data(contentsOf: URL(filePath: first)).count)
    #expect(try run("stat", copy.path).output.hasPrefix(lines(try run("stat", store.path).output)[0]))

    #expect(try run("import", copy.path, first, code: 1).errors.contains("there is a topic orders already"))
    _ = try run("import", copy.path, first, "--replace")
    #expect(try run("verify", copy.path).output.hasPrefix("2 topics, 210 records in 21 batches"))
  }

  @Test func oneTopicThroughAPipe() throws {
    let file = other.file("export")
    _ = try run("export", store.path, "--topic", "prices", output: .file(file))
    let copy = try TemporaryDirectory()
    _ = try run("import", copy.path, "-", input: .file(file))
    #expect(lines(try run("stat", copy.path, "--json").output).count == 2)
    #expect(try run("export", store.path, "--topic", "x", code: 1).errors.contains("there is no topic x"))
    // A reader may close its end early.
    #expect(try run("export", store.path, output: .closedPipe).errors.isEmpty)
  }

  @Test func aStreamThatIsCutOffBringsNothing() throws {
    let file = other.file("export")
    _ = try run("export", store.path, file)
    let bytes = try Array(Data(contentsOf: URL(filePath: file)))
    let copy = try TemporaryDirectory()
    let cut = try run("import", copy.path, input: .bytes(Array(bytes.dropLast(50))), code: 1)
    #expect(cut.errors.contains("the stream ends within it"))
    #expect(try run("stat", copy.path).output.hasPrefix("0 topics, 0 records"))
  }

  @Test func ctrlCInTheMiddleOfAnImportBringsNothing() throws {
    let file = other.file("export")
    _ = try run("export", store.path, file)
    let bytes = try Array(Data(contentsOf: URL(filePath: file)))
    let copy = try TemporaryDirectory()
    let process = try ChildProcess(
      BuiltProduct.path("sluice"), ["store", "import", copy.path], input: .open)
    try process.write(Array(bytes.dropLast(50)))
    try eventually("a store") { FileManager.default.fileExists(atPath: copy.file("data.mdb-lock")) }
    process.signal(SIGINT)
    #expect(try process.waitForExit() == .code(130))
    #expect(try run("verify", copy.path).output == "0 topics, 0 records in 0 batches, 0 B: no damage\n")
  }

  @Test func freeSpaceIsGivenBack() throws {
    try open { store in
      for id in UInt64(3)...200 { try Self.fill(store, "topic.\(id)", id: id, batches: 1) }
      try store.commit(
        (UInt64(3)...200).map { id in
          var change = TopicChange(TopicID(rawValue: id))
          change.isDeletion = true
          return change
        })
    }
    let file = other.file("export")
    _ = try run("export", store.path, file)
    let before = try FileManager.default.attributesOfItem(atPath: store.file("data.mdb"))[.size] as? Int
    #expect(try run("compact", store.path).errors.hasPrefix("sluice: compacted \(store.path) from "))
    let after = try FileManager.default.attributesOfItem(atPath: store.file("data.mdb"))[.size] as? Int
    #expect(after ?? 0 < before ?? 0)
    _ = try run("export", store.path, other.file("after"))
    #expect(try filesAreEqual(file, other.file("after")))
    #expect(try run("verify", store.path).output.contains("no damage"))
  }

  @Test("a command that is killed leaves a store that is as before, or as it would be")
  func killed() throws {
    var random = SeededRandom.printed(for: "killed commands")
    try open { store in
      for id: UInt64 in 3...20 { try Self.fill(store, "topic.\(id)", id: id, batches: 60) }
    }
    let file = other.file("export")
    _ = try run("export", store.path, file, "--quiet")
    let commands = [["compact", store.path], ["import", store.path, file, "--replace"]]
    for round in 0..<12 {
      let process = try ChildProcess(BuiltProduct.path("sluice"), ["store"] + commands[round % 2])
      pause(.random(in: 0...0.15, using: &random))
      process.signal(SIGKILL)
      _ = try process.waitForExit()
      let after = other.file("after-\(round)")
      _ = try run("export", store.path, after, "--quiet")
      #expect(try Self.contents(of: after) == Self.contents(of: file), "\(commands[round % 2])")
    }
    #expect(try run("verify", store.path).output.contains("no damage"))
    _ = try run("compact", store.path)
    #expect(try run("verify", store.path).output.hasPrefix("20 topics"))
  }
}
