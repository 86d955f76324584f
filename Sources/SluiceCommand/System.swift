import Glibc

/// The process's environment variables.
public enum Environment {
  /// The value of a variable; nil when it isn't set.
  public static func value(_ name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }

  /// The working directory of the process; nil if it was deleted.
  public static var workingDirectory: String? {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    guard let path = unsafe getcwd(&buffer, buffer.count) else { return nil }
    return unsafe String(cString: path)
  }

  /// Every variable, as `NAME=VALUE`: bytes, which needn't be UTF-8.
  public static var all: [Argument] {
    var result: [Argument] = []
    var entry = unsafe environ
    while let pointer = unsafe entry.pointee {
      unsafe result.append(Argument(UnsafeRawBufferPointer(start: pointer, count: strlen(pointer))))
      unsafe entry += 1
    }
    return result
  }

  /// The names of all variables that begin with `prefix`.
  public static func names(withPrefix prefix: String) -> [String] {
    all.map { String($0.text.prefix { $0 != "=" }) }.filter { $0.hasPrefix(prefix) }.sorted()
  }
}

/// Reads files and other inputs into memory, by blocking calls.
public enum FileBytes {
  public struct Failure: Error {
    /// "open" or "read".
    public var action: String
    /// The system's error message.
    public var reason: String

    /// "cannot open NAME: No such file or directory".
    public func message(of name: String) -> String { "cannot \(action) \(name): \(reason)" }
  }

  /// Reads the file at `path`, as ``read(_:limit:until:)``.
  public static func read(_ path: String, limit: Int, until last: UInt8? = nil) throws(Failure) -> [UInt8] {
    try read(FilePath(path), limit: limit, until: last)
  }

  /// Reads the file at `path`, as ``read(_:limit:until:)``.
  public static func read(
    _ path: FilePath, limit: Int, until last: UInt8? = nil
  ) throws(Failure) -> [UInt8] {
    let descriptor = path.open(O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure(action: "open", reason: Descriptor.reason()) }
    defer { close(descriptor) }
    return try read(descriptor, limit: limit, until: last)
  }

  /// Reads to the end, up to `limit` bytes. Stops early after a block that contains the byte `last`.
  public static func read(
    _ descriptor: Int32, limit: Int = .max, until last: UInt8? = nil
  ) throws(Failure) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: min(limit, 64 << 10))
    while bytes.count < limit {
      let count = unsafe Glibc.read(descriptor, &chunk, min(chunk.count, limit - bytes.count))
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw Failure(action: "read", reason: Descriptor.reason()) }
      guard count > 0 else { break }
      bytes += chunk[..<count]
      if let last, chunk[..<count].contains(last) { break }
    }
    return bytes
  }

  /// The text of a file of `/proc` or `/sys`, which is short; nil when it can't be read.
  public static func system(_ path: String) -> String? {
    (try? read(path, limit: 1 << 20)).map { String(decoding: $0, as: UTF8.self) }
  }
}

/// The standard input, output and error that the process was started with.
public enum StandardStreams {
  /// Opens closed standard streams, as by `>&-`, so that no socket or file gets the number 0, 1 or 2, and receives the program's output. Reading and writing
  /// there still fails. Called first in `main`.
  public static func reserve() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
      // Opening uses the lowest free number, which is this one. Each is opened for the wrong direction, so that using it fails.
      _ = unsafe open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }
}
