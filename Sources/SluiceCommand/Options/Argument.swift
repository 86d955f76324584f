import Glibc
import SluiceWire

/// An argument of a command line: bytes, which are text in most places.
public struct Argument: Hashable, Sendable, ExpressibleByStringLiteral {
  public let bytes: [UInt8]
  /// The argument as text. Bytes that aren't UTF-8 are escaped, so the text is then only for messages.
  public let text: String
  /// Whether the argument is UTF-8, so that `text` is exact.
  public let isText: Bool

  public init(_ text: String) {
    (bytes, self.text, isText) = (Array(text.utf8), text, true)
  }

  public init(stringLiteral text: String) { self.init(text) }

  public init(_ bytes: some Collection<UInt8>) {
    self.bytes = Array(bytes)
    let valid = String(validating: bytes, as: UTF8.self)
    isText = valid != nil
    text = valid ?? ShownText.escaped(bytes: bytes, in: .line)
  }

  /// The process's arguments, without the program's name.
  public static var ofProcess: [Argument] {
    // Swift's array of arguments replaces bytes that aren't UTF-8.
    let count = Int(CommandLine.argc)
    return (1..<max(count, 1)).compactMap { index in
      unsafe CommandLine.unsafeArgv[index].map { pointer in
        unsafe Argument(UnsafeRawBufferPointer(start: pointer, count: strlen(pointer)))
      }
    }
  }
}

/// A path of a file as bytes, because paths needn't be UTF-8.
public struct FilePath: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
  public let bytes: [UInt8]

  /// - Parameter bytes: without a zero byte.
  public init(_ bytes: some Collection<UInt8>) { self.bytes = Array(bytes) }
  public init(_ text: String) { self.init(text.utf8) }
  public init(stringLiteral text: String) { self.init(text) }

  /// The path for messages.
  public var description: String { ShownText.escaped(bytes: bytes, in: .line) }

  /// A file in this directory.
  public func appending(_ name: String) -> FilePath { FilePath(bytes + [UInt8(ascii: "/")] + name.utf8) }

  /// Opens the file. Returns -1 and sets `errno` on failure.
  public func open(_ flags: Int32, mode: mode_t = 0) -> Int32 {
    unsafe withCString { unsafe Glibc.open($0, flags, mode) }
  }

  /// Creates the directory, and missing parent directories.
  ///
  /// - Returns: nil if the directory exists now, otherwise the system's error message.
  public func makeDirectory(mode: mode_t = 0o777) -> String? {
    let slash = UInt8(ascii: "/")
    for end in bytes.indices.dropFirst().filter({ bytes[$0] == slash }) + [bytes.endIndex] {
      let code = unsafe FilePath(bytes[..<end]).withCString { unsafe mkdir($0, mode) }
      guard code == 0 || errno == EEXIST else { return Descriptor.reason() }
    }
    return nil
  }

  private func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    unsafe (bytes + [0]).withUnsafeBytes { bytes in
      unsafe bytes.withMemoryRebound(to: CChar.self) { unsafe body($0.baseAddress!) }
    }
  }
}
