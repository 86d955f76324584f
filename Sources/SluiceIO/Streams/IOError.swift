import Glibc

/// A failure of a socket or a loop: the call, the system's error number, and what it concerned.
public struct IOError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What was tried, as a person would say it: "connect to 127.0.0.1:7420".
  public var action: String
  /// The system's `errno`.
  public var code: Int32

  /// What is wrong, where the system's text for `code` doesn't say it.
  public var reason: String?

  public init(action: String, code: Int32, reason: String? = nil) {
    self.action = action
    self.code = code
    self.reason = reason
  }

  /// "connect to 127.0.0.1:7420: Connection refused"
  public var description: String {
    "\(action): \(reason ?? Self.text(for: code))"
  }

  /// The system's words for an error number. From any thread.
  static func text(for code: Int32) -> String {
    unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      unsafe buffer.initialize(repeating: 0)
      // The importer sees the POSIX variant, which fills the buffer.
      guard let base = buffer.baseAddress, unsafe strerror_r(code, base, buffer.count) == 0
      else { return "error \(code)" }
      return unsafe String(cString: base)
    }
  }
}
