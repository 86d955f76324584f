import Glibc
import TestSupport

/// Writes a file.
public func write(_ text: String, to path: String) throws {
  guard let file = fopen(path, "w") else { throw TestFailure("\(path) can't be written: error \(errno)") }
  defer { fclose(file) }
  let bytes = Array(text.utf8)
  guard fwrite(bytes, 1, bytes.count, file) == bytes.count else {
    throw TestFailure("\(path) wasn't written")
  }
}
