import Glibc

/// A directory for a test's files, removed with this object.
public final class TemporaryDirectory: Sendable {
  public let path: String

  public init() throws {
    var template = Array("/tmp/sluice-test-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw TestFailure("mkdtemp: error \(errno)") }
    path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  }

  deinit {
    remove()
  }

  /// Removes it, with the files in it.
  func remove() {
    guard let directory = opendir(path) else { return }
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { unlink("\(path)/\(name)") }
    }
    closedir(directory)
    rmdir(path)
  }

  public func file(_ name: String) -> String {
    "\(path)/\(name)"
  }
}

/// Whether two files have the same bytes, however large they are.
public func filesAreEqual(_ left: String, _ right: String) throws -> Bool {
  let process = try ChildProcess("/usr/bin/cmp", [left, right])
  return try process.waitForExit() == .code(0)
}
