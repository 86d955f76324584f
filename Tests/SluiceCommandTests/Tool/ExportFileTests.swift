import Foundation
import Glibc
import SluiceStore
import TestSupport
import Testing

@testable import SluiceTool

/// Export files that get their final names once they are complete.
@Suite struct ExportFileTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private var names: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() }
  }

  private func make(_ name: String, _ text: String = "old") throws {
    try text.write(toFile: directory.file(name), atomically: false, encoding: .utf8)
  }

  private func write(_ text: String, to file: ExportFile) {
    let fault = Array(text.utf8).withUnsafeBytes { file.write($0) }
    #expect(fault == nil)
  }

  @Test func aFileHasItsNameOnceItIsWhole() throws {
    let file = try ExportFile(directory.file("x"), isNamedWhenWhole: true)
    write("all of it", to: file)
    #expect(try names.count == 1 && !names.contains("x"))
    try file.finish()
    #expect(try names == ["x"])
    #expect(try String(contentsOfFile: directory.file("x"), encoding: .utf8) == "all of it")
  }

  @Test func aSecondExportToTheSameFileIsRefusedAndTheFirstGoesOn() throws {
    let first = try ExportFile(directory.file("x"), isNamedWhenWhole: true)
    write("first", to: first)
    let error = #expect(throws: StoreError.self) {
      try ExportFile(directory.file("x"), isNamedWhenWhole: true)
    }
    #expect(error?.message.contains("being written by another export (process \(getpid()))") == true)
    let other = try ExportFile(directory.file("y"), isNamedWhenWhole: true)
    other.discard()
    write(" and last", to: first)
    try first.finish()
    #expect(try String(contentsOfFile: directory.file("x"), encoding: .utf8) == "first and last")
    #expect(try names == ["x"])
  }

  @Test func aFileThatIsThereIsNotReplaced() throws {
    try make("x")
    #expect(throws: StoreError.self) { try ExportFile(directory.file("x"), isNamedWhenWhole: true) }
    let file = try ExportFile(directory.file("y"), isNamedWhenWhole: true)
    try make("y")
    #expect(throws: StoreError.self) { try file.finish() }
    file.discard()
    #expect(try names == ["x", "y"])
    #expect(try String(contentsOfFile: directory.file("y"), encoding: .utf8) == "old")
  }

  @Test func aPartThatIsNotWhatWasWrittenGetsNoName() throws {
    let file = try ExportFile(directory.file("x"), isNamedWhenWhole: true)
    write("all of it", to: file)
    let part = try #require(try names.first)
    #expect(truncate(directory.file(part), 3) == 0)
    #expect(throws: StoreError.self) { try file.finish() }
    file.discard()
    #expect(try names.isEmpty)
  }

  @Test func partsOfKilledExportsAreRemovedAndOthersStay() throws {
    let left = ["a-20260101T000000Z.x.4711-beef.partial"]
    let kept = [
      "b.x.4711-beef.partial", "a-20260101T000000Z.x.partial", "a-20260101T000000Z.x",
      "a-other.x.4711-1.partial",
    ]
    for name in left + kept { try make(name) }
    let running = try ExportFile(directory.file("a-20260202T000000Z.x"), isNamedWhenWhole: true)
    BackupName(directory.file("a-{time}.x"), keeping: 1).removeAbandoned()
    #expect(try Set(names).isSuperset(of: kept) && Set(names).isDisjoint(with: left))
    #expect(try names.count == kept.count + 1)
    try running.finish()
  }

  @Test func aPartOfAnEarlierVersionIsRemovedOnceNothingIsWrittenToIt() throws {
    try make("x.partial")
    var times = [
      timespec(tv_sec: time(nil) - 7_200, tv_nsec: 0), timespec(tv_sec: time(nil) - 7_200, tv_nsec: 0),
    ]
    #expect(utimensat(AT_FDCWD, directory.file("x.partial"), &times, 0) == 0)
    BackupName(directory.file("x"), keeping: 1).removeAbandoned()
    #expect(try names.isEmpty)
  }

  @Test func aDirectoryWithTheNameOfACopyIsLeftAlone() throws {
    try FileManager.default.createDirectory(
      atPath: directory.file("a-20200101T000000Z.x"), withIntermediateDirectories: false)
    for year in 2021...2023 { try make("a-\(year)0101T000000Z.x") }
    try BackupName(directory.file("a-{time}.x"), keeping: 2).removeOld()
    #expect(
      try names == ["a-20200101T000000Z.x", "a-20220101T000000Z.x", "a-20230101T000000Z.x"])
  }
}
