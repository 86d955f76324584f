import Foundation
import Testing

/// What the fuzzer starts from and what it has found: see `scripts/fuzz.sh`.
@Suite("Fuzzer's corpus for tokens and access files")
struct AccessCorpusTests {
  @Test("every kept input is taken or refused, not worse", arguments: AccessProbe.Target.allCases)
  func replay(_ target: AccessProbe.Target) throws {
    let folder = URL(filePath: #filePath).appending(path: "../../Fuzz/Corpus/\(target.rawValue)").standardized
    let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    #expect(!files.isEmpty)
    for file in files {
      #expect(throws: Never.self, "\(file.lastPathComponent)") {
        try AccessProbe.run(target, on: Array(Data(contentsOf: file)))
      }
    }
  }
}
