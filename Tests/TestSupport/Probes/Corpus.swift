import Glibc

/// The fuzzer's seed inputs and findings: see `scripts/fuzz.sh`.
public enum Corpus {
  /// Runs a target on every input of its corpus.
  ///
  /// - Returns: the number of inputs.
  /// - Throws: the first violation, with the name of its file.
  public static func replay<P: Probe>(_ target: P.Target, of probe: P.Type) throws -> Int {
    let tests = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3)
    let folder = "\(tests.joined(separator: "/"))/Fuzz/Corpus/\(target.rawValue)"
    let names = try files(in: folder)
    for name in names {
      // Printed first, because a trap leaves no other trace of its input.
      print("\(target.rawValue)/\(name)")
      do {
        try P.run(target, on: try contents("\(folder)/\(name)"))
      } catch {
        throw ProbeViolation("\(folder)/\(name): \(error)")
      }
    }
    return names.count
  }

  private static func files(in folder: String) throws -> [String] {
    guard let directory = opendir(folder) else { throw ProbeViolation("\(folder) can't be read") }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names.sorted()
  }

  private static func contents(_ path: String) throws -> [UInt8] {
    guard let file = fopen(path, "rb") else { throw ProbeViolation("\(path) can't be read") }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = fread(&chunk, 1, chunk.count, file)
      if count == 0 { return bytes }
      bytes += chunk[..<count]
    }
  }
}
