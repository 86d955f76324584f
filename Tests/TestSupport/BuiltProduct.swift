import Glibc

/// An executable of this package, built together with the tests.
public enum BuiltProduct {
  /// The path of the executable called `name`, beside the program that runs the tests.
  ///
  /// - Throws: ``TestFailure`` if it doesn't exist.
  public static func path(_ name: String) throws -> String {
    var candidates: [String] = []
    var arguments = CommandLine.arguments[...]
    while let argument = arguments.popFirst() {
      if argument == "--test-bundle-path", let bundle = arguments.first { candidates.append(bundle) }
    }
    candidates.append(try executable)
    candidates.append(CommandLine.arguments[0])
    for candidate in candidates {
      var directory = candidate[...]
      // A bundle may be a folder with the program somewhere in it.
      while let slash = directory.lastIndex(of: "/") {
        directory = directory[..<slash]
        let path = "\(directory)/\(name)"
        if access(path, X_OK) == 0, isFile(path) { return path }
        if directory.hasSuffix("/.build") { break }
      }
    }
    throw TestFailure("no executable \(name) beside \(candidates.joined(separator: " or ")); build it first")
  }

  /// Whether the executable was built.
  public static func exists(_ name: String) -> Bool {
    (try? path(name)) != nil
  }

  private static var executable: String {
    get throws {
      var buffer = [CChar](repeating: 0, count: 4096)
      let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
      guard count > 0 else { throw TestFailure("readlink /proc/self/exe: error \(errno)") }
      return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
  }

  private static func isFile(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
  }
}
